// Runs compiled kernels on memory like that of the graph, and takes the time. Free of MLIR.
#pragma once
#include "compiler/api/CompiledKernel.h"
#include "runtime/core/DType.h"
#include <memory>
#include <string>
#include <vector>

namespace dlc::compiler {

/// One launch: what a kernel is given.
struct KernelProblem {
  struct Buffer {
    DType dtype = DType::F32;
    int64_t elements = 0; ///< that the kernel may touch
    int64_t first = 0;    ///< where its pointer stands
  };
  std::vector<Buffer> buffers; ///< without the error slot
  std::vector<int64_t> ints;
  int64_t streamBytes = 0; ///< memory that the graph goes through between two launches
};

/// The memory of a problem, in as many copies as it takes that a launch finds as little in the caches as in the graph.
/// Kernels write to it; nothing of it is looked at.
class KernelBench {
public:
  explicit KernelBench(const KernelProblem &problem);
  ~KernelBench();

  /// Seconds of one run on the threads in use, the mean of enough runs to be measured (50 us).
  double sample(const CompiledKernel &kernel);
  /// Runs that sample() did.
  int64_t runs() const { return runs_; }

private:
  void run(const CompiledKernel &kernel);

  struct Copy;
  KernelProblem problem_;
  std::vector<std::unique_ptr<Copy>> copies_;
  size_t next_ = 0;
  int64_t runs_ = 0;
};

/// Seconds of a piece of arithmetic that always takes the same, 20 us or so: slower means that others use the core.
double canarySeconds();

} // namespace dlc::compiler
