// Hand-written device helpers that emitted kernels use; each is printed once a program, and only if used.
#ifndef DLC_COMPILER_CUDA_CUDAPRELUDE_H
#define DLC_COMPILER_CUDA_CUDAPRELUDE_H

#include <set>
#include <string>

namespace dlc::compiler {

/// Names of helpers; what a helper needs itself comes with it.
enum class CudaHelper {
  Raise,
  IntPow,
  Half,
  BFloat,
  SafeDivide,
  FloorIndex,
  IndexDivide,
  Combine,
  Pair,
  Shuffle,
  RowReduce,
  ColumnReduce
};

/// Returns the text of the helpers in `used` and of those they need.
std::string cudaPrelude(std::set<CudaHelper> used);

} // namespace dlc::compiler

#endif // DLC_COMPILER_CUDA_CUDAPRELUDE_H
