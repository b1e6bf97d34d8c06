// The scalar primitives as CUDA device functions: each one that a program uses is printed once, from the same templates
// as the eager kernels. Does not see MLIR.
#ifndef DLC_COMPILER_CUDA_CUDAPRIMS_H
#define DLC_COMPILER_CUDA_CUDAPRIMS_H

#include "runtime/scalar/Kind.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlc::compiler {

/// A printed primitive: call it with the operands, and the error slot first if it raises.
struct CudaPrim {
  std::string function;
  scalar::Kind result = scalar::Kind::F32;
  bool raises = false;
};

/// The device functions of one program.
class CudaPrims {
public:
  /// Returns the function for a primitive on operands of these kinds, or null if there is no such primitive.
  const CudaPrim *use(std::string_view name, const std::vector<scalar::Kind> &kinds);

  /// Returns an expression over `operands` for a primitive that is one C++ operator on these kinds, else "".
  static std::string asOperator(std::string_view name, const std::vector<scalar::Kind> &kinds,
                                const std::vector<std::string> &operands);

  /// Returns the text of all functions used, in the order of their names.
  std::string text() const;

private:
  struct Entry {
    CudaPrim prim;
    std::string text;
  };
  std::map<std::string, Entry> entries_;
};

} // namespace dlc::compiler

#endif // DLC_COMPILER_CUDA_CUDAPRIMS_H
