// A compiled graph, as the front end and tools see it. MLIR-free.
#pragma once
#include "runtime/exec/LaunchPlan.h"
#include <functional>

namespace dlc::compiler {

/// How a graph is compiled. Part of the cache key of what is compiled.
struct CompileOptions {
  bool fuse = true;        ///< false: one kernel an op
  int64_t fusionFuel = -1; ///< merges allowed; -1: any number
  int64_t contract = -1;   ///< matrix products as kernels: -1 some, 0 none, 1 all that can be
  std::string dumpDir;     ///< one numbered file a phase, if not empty
  std::string name = "graph";
  double tuningSeconds = 0; ///< budget for measuring schedules (mode max-autotune); 0: what is known is looked up
  enum class Progress : uint8_t { Auto, On, Off } tuningProgress = Progress::Auto; ///< the bar; Auto: on terminals
  /// The options that the knobs (DLC_MODE, DLC_FUSION_FUEL, DLC_DUMP_DIR) ask for.
  static CompileOptions fromKnobs();
};

/// What a compiled graph is made of and what compiling it took.
struct ExecutableStats {
  int64_t kernels = 0;          ///< generated kernels launched in a run
  int64_t distinctKernels = 0;  ///< different ones among them
  int64_t libraryCalls = 0;     ///< matrix products, convolutions
  int64_t otherSteps = 0;       ///< ops that run their eager kernel
  int64_t memorySteps = 0;      ///< copies and fills
  int64_t stateSteps = 0;       ///< that run only when a parameter has changed
  int64_t llvmCompilations = 0; ///< kernels that went through LLVM
  int64_t cacheHits = 0;        ///< kernels whose code came from the persistent cache
  int64_t tuningOpen = 0;       ///< kernels that the tuner's budget did not reach
  int64_t arenaBytes = 0;       ///< memory of temporaries for the recorded sizes
  double compileSeconds = 0;
};

class Executable {
public:
  Executable(std::shared_ptr<LaunchPlan> plan, ExecutableStats stats, std::vector<int64_t> hints)
      : plan_(std::move(plan)), stats_(stats), hints_(std::move(hints)) {}
  /// Runs the graph. `numbers`: its number operands in order; `symbols`: the values of its symbols. See
  /// LaunchPlan::run.
  void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outputs) const {
    plan_->run(inputs, numbers, symbols, outputs);
  }
  const ExecutableStats &stats() const { return stats_; }
  const LaunchPlan &plan() const { return *plan_; }
  const std::shared_ptr<LaunchPlan> &sharedPlan() const { return plan_; }
  /// The values of the symbols when the graph was compiled.
  const std::vector<int64_t> &hints() const { return hints_; }
  /// One line a step: what it runs, its ops, bytes read and written.
  std::string describe() const;
  /// The steps as a JSON object: nodes (name, class, ops, bytes) and edges (from, to, bytes), for pictures.
  std::string json() const;

private:
  std::shared_ptr<LaunchPlan> plan_;
  ExecutableStats stats_;
  std::vector<int64_t> hints_;
};

} // namespace dlc::compiler
