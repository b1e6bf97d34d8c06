// What compiling a kernel gives: a function, what a launcher must know about it, and the lifetime of its code.
// MLIR-free and LLVM-free.
#ifndef DLC_COMPILER_API_COMPILEDKERNEL_H
#define DLC_COMPILER_API_COMPILEDKERNEL_H

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlc::compiler {

/// `bufs`: pointer to the first element of each buffer, the error slot (int64_t) last. `ints`: strides, sizes and
/// scalars (f64 bit-cast) in the order of the kernel's arguments, then [begin, end) of the parallel range.
using KernelFn = void (*)(void *const *bufs, const int64_t *ints);

/// A size: ints[index], or `constant` if index < 0.
struct SizeRef {
  int32_t index = -1;
  int64_t constant = 1;
};

/// What a launcher needs to run a kernel.
struct KernelInfo {
  std::string name;
  uint32_t numBufs = 0; ///< with the error slot
  uint32_t numInts = 0; ///< without the parallel range
  /// The parallel range is [0, product of these); empty: [0, 1), one call.
  std::vector<SizeRef> parallelDims;
  /// The points of the kernel are the product of these.
  std::vector<SizeRef> domainDims;
  /// Floating-point operations of each point of some dims; their sum over the stages is the kernel's work.
  struct Work {
    std::vector<SizeRef> dims;
    int64_t flops = 0;
  };
  std::vector<Work> work;
  /// Pieces of the range should begin at multiples of this (a vector).
  int64_t rangeMultiple = 1;
  /// Estimated time of one point on one core.
  double nsPerPoint = 0;
  /// Numbers of the buffers that are written.
  std::vector<uint32_t> outputs;
  /// (input, output) buffers that may lie in the same memory, if sizes and strides agree. All other buffers written
  /// must not overlap any other.
  std::vector<std::pair<uint32_t, uint32_t>> mayShare;
};

/// A kernel ready to run. `code` keeps the machine code alive.
struct CompiledKernel {
  KernelFn fn = nullptr;
  KernelInfo info;
  std::shared_ptr<const void> code;
};

/// What the compiler of a process has done so far.
struct KernelCompileStats {
  int64_t llvmCompilations = 0; ///< kernels that went through LLVM
  int64_t cacheHits = 0;        ///< kernels whose object came from disk
  int64_t shared = 0;           ///< kernels that were equal to one already in memory
  int64_t badEntries = 0;       ///< cache entries ignored because they were damaged or not ours
};

} // namespace dlc::compiler

#endif
