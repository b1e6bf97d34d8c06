// What the cache needs of a compiler: turn a graph into something that runs. The compiler registers itself here, so
// that recording and caching work (in the interpreter) without it.
#pragma once
#include "runtime/exec/PlanSteps.h"
#include "runtime/graph/Graph.h"
#include <memory>
#include <string>

namespace dlc {

/// What one compiled graph consists of and did.
struct GraphStats {
  int64_t kernels = 0, libraryCalls = 0, otherSteps = 0;
  int64_t llvmCompilations = 0, cacheHits = 0;
  double compileSeconds = 0;
  int64_t arenaBytes = 0;
};

/// A compiled graph. Any number of threads may run it.
class CompiledGraph {
public:
  virtual ~CompiledGraph() = default;
  /// As interpret(): one tensor per output, write-backs performed. Throws before anything was written.
  virtual void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) = 0;
  /// Runs it once for each row of places (see LaunchPlan::runSteps). False: it can't, and nothing was done.
  virtual bool runSteps(const PlanSteps &, Span<const Number>, Ints) { return false; }
  virtual GraphStats stats() const { return {}; }
  /// The plan, one step a line: kind, ops, bytes.
  virtual std::string describe() const { return {}; }
  /// The fused graph as JSON (nodes are steps), for pictures.
  virtual std::string json() const { return "{}"; }
};

struct BackendOptions {
  std::string name;              ///< for dumps and messages
  std::vector<bool> sharedInput; ///< inputs whose storage another input views too: never written early
  std::vector<bool> stateInput;  ///< inputs that belong to the program and that no graph writes; may be shorter
  double tuningSeconds = 0;      ///< how long schedules may be measured (mode max-autotune)
  int tuningProgress = 0;        ///< its bar: 0 on a terminal, 1 always, 2 never
};

/// Compiles; throws dlc::Error (message: what failed, last line: how to replay) when it can't.
using Backend = std::shared_ptr<CompiledGraph> (*)(const Graph &graph, const BackendOptions &options);
void setBackend(Backend backend);
Backend currentBackend();

} // namespace dlc
