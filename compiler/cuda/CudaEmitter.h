// Prints kernels (dialect `kernel`, phase "fused") as CUDA C++ text. The text is deterministic, includes no header and
// assumes -fmad=false with IEEE division and square root, so that elementwise results equal those of the CPU.
//
// Parameters of a printed kernel, all passed by value: the pointers of the kernel's binary interface in the order of
// `bufs` (the last one the error slot), then its `ints` as `long long` (f64 scalars bit-cast), without the parallel
// range.
#ifndef DLC_COMPILER_CUDA_CUDAEMITTER_H
#define DLC_COMPILER_CUDA_CUDAEMITTER_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace dlc::compiler {

/// How to launch one printed kernel.
struct CudaKernel {
  std::string symbol; ///< of the kernel.func
  std::string name;   ///< in the text: the symbol as a C identifier after "k_", so that it can't be a function of C
  unsigned threadsX = 1, threadsY = 1;
  /// Points of the parallel range that a block takes at a time; any grid is right, ceil(points / this) is best.
  unsigned pointsPerBlock = 1;
  /// Sizes whose product is the number of points: a constant, or -(i + 1) for number i of `ints`. Of several ranges
  /// (a kernel with unrelated outputs) the first.
  std::vector<int64_t> pointDims;
  unsigned numBufs = 0, numInts = 0;
  std::vector<uint32_t> outputs; ///< numbers of the buffers that are written
  /// (input, output) buffers that may lie in the same memory, as in KernelInfo.
  std::vector<std::pair<uint32_t, uint32_t>> mayShare;
};

/// The text of a program and its kernels, in module order.
struct CudaProgram {
  std::string text;
  std::vector<CudaKernel> kernels;
};

/// Prints every kernel.func of a module. Emits an error on a kernel that can't be printed.
mlir::FailureOr<CudaProgram> emitCuda(mlir::ModuleOp module);

/// The `--emit-cuda` of the tools: prints the text to `out`.
mlir::LogicalResult printCuda(mlir::ModuleOp module, llvm::raw_ostream &out);

/// Returns the number of blocks to launch for the given `ints`, at most `limit`.
int64_t cudaGrid(const CudaKernel &kernel, const int64_t *ints, int64_t limit);

} // namespace dlc::compiler

#endif // DLC_COMPILER_CUDA_CUDAEMITTER_H
