// Links objects into this process (JITLink in memory: no child process, no file).
#ifndef DLC_COMPILER_CPU_JIT_H
#define DLC_COMPILER_CPU_JIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace dlc::compiler {

/// One linked object; its code lives as long as this.
class LinkedObject {
public:
  virtual ~LinkedObject() = default;
  /// Returns the address of a symbol of the object.
  virtual llvm::Expected<void *> lookup(llvm::StringRef symbol) = 0;
};

/// The linker of the process. Thread safe.
class Jit {
public:
  /// Returns the process's one linker (made at the first use), or why there is none.
  static llvm::Expected<Jit *> get();

  /// Links an object. It may call the C library's scalar functions and nothing else.
  llvm::Expected<std::shared_ptr<LinkedObject>> link(llvm::ArrayRef<char> object);

private:
  struct State;
  explicit Jit(std::unique_ptr<State> state);
  ~Jit();
  friend struct JitHolder;
  std::unique_ptr<State> state_;
};

} // namespace dlc::compiler

#endif
