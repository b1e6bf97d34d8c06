// LLVM module to object code for this machine, with our own short pass pipeline.
#ifndef DLC_COMPILER_CPU_CODEGEN_H
#define DLC_COMPILER_CPU_CODEGEN_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace dlc::compiler {

/// The processor that code is made for.
struct CpuTarget {
  std::string triple, cpu, features;
  unsigned vectorBits = 256; ///< widest registers that code should use

  /// Returns this machine.
  static const CpuTarget &host();
};

/// Compiles modules; one for each thread.
class CodeGen {
public:
  static llvm::Expected<std::unique_ptr<CodeGen>> create(const CpuTarget &target);
  ~CodeGen();

  /// Sets target, attributes and data layout, optimises, and emits an ELF object. `assembly` gives text instead.
  llvm::Expected<llvm::SmallVector<char, 0>> compile(llvm::Module &module, bool assembly = false);

private:
  explicit CodeGen(const CpuTarget &target) : target_(target) {}
  void setAttributes(llvm::Module &module);
  void optimise(llvm::Module &module);

  CpuTarget target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

} // namespace dlc::compiler

#endif
