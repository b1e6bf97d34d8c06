// The backend of compiled functions: import, run the pipeline, keep the plan.
#include "compiler/autotune/TuningStore.h"
#include "compiler/pipeline/GraphCache.h"
#include "compiler/pipeline/Pipelines.h"
#include "frontend/import/Import.h"
#include "frontend/import/Install.h"
#include "dialects/dlc/DlcDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/core/PhaseTimes.h"
#include "runtime/graph/GraphBytes.h"

namespace dlc {
namespace {

class Compiled final : public CompiledGraph {
public:
  explicit Compiled(std::shared_ptr<compiler::Executable> executable) : executable_(std::move(executable)) {}
  void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) override {
    executable_->run(inputs, numbers, symbols, outs);
  }
  bool runSteps(const PlanSteps &steps, Span<const Number> numbers, Ints symbols) override {
    return executable_->plan().runSteps(steps, numbers, symbols);
  }
  GraphStats stats() const override {
    const compiler::ExecutableStats &s = executable_->stats();
    return {s.kernels, s.libraryCalls, s.otherSteps, s.llvmCompilations, s.cacheHits, s.compileSeconds, s.arenaBytes};
  }
  std::string describe() const override { return executable_->describe(); }
  std::string json() const override { return executable_->json(); }

private:
  std::shared_ptr<compiler::Executable> executable_;
};

std::shared_ptr<compiler::Executable> compileAnew(const Graph &graph, const BackendOptions &options,
                                                  const compiler::CompileOptions &compileOptions,
                                                  std::vector<compiler::CompiledKernel> &kernels) {
  PhaseTimer starting("MLIR context");
  static const mlir::DialectRegistry *registry = [] {
    auto *r = new mlir::DialectRegistry;
    compiler::registerCompilerDialects(*r);
    return r;
  }();
  // A context a graph: nothing of one outlives its compilation, and threads share nothing.
  mlir::MLIRContext context(*registry, mlir::MLIRContext::Threading::DISABLED);
  context
      .loadDialect<ir::DlcDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::affine::AffineDialect>();
  starting.stop();
  PhaseTimer importing("import");
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(&context, graph, options);
  importing.stop();
  return compiler::compileModule(*module, compileOptions, &kernels);
}

std::string sourceOf(const Graph &graph, const BackendOptions &options,
                     const compiler::CompileOptions &compileOptions) {
  PhaseTimer timer("graph key");
  std::string bytes = graphBytes(graph);
  for (bool shared : options.sharedInput)
    bytes += shared ? '1' : '0';
  for (bool state : options.stateInput)
    bytes += state ? 's' : '.';
  return compiler::graphSource(bytes, compileOptions);
}

/// Tuning changed what a graph is found by. One that was tuned to the end serves compilations of both kinds.
void keep(const Graph &graph, const BackendOptions &options, compiler::CompileOptions compileOptions,
          std::string source, const compiler::Executable &made, const std::vector<compiler::CompiledKernel> &kernels,
          const std::vector<Fact> &facts) {
  if (compileOptions.tuningSeconds > 0) {
    if (made.stats().tuningOpen == 0)
      compiler::storeGraph(sourceOf(graph, options, compileOptions), made, kernels, facts);
    compileOptions.tuningSeconds = 0;
    source = sourceOf(graph, options, compileOptions);
  }
  compiler::storeGraph(source, made, kernels, facts);
}

std::shared_ptr<CompiledGraph> compileGraph(const Graph &graph, const BackendOptions &options) {
  compiler::CompileOptions compileOptions = compiler::CompileOptions::fromKnobs();
  compileOptions.name = options.name;
  compileOptions.tuningSeconds = options.tuningSeconds;
  compileOptions.tuningProgress = static_cast<compiler::CompileOptions::Progress>(options.tuningProgress);
  std::string source = sourceOf(graph, options, compileOptions);
  Ints symbols(graph.symbols);
  if (!source.empty())
    if (auto found = compiler::loadGraph(source, symbols))
      return std::make_shared<Compiled>(found);
  std::shared_ptr<compiler::Executable> made;
  std::vector<Fact> facts;
  std::vector<compiler::CompiledKernel> kernels;
  {
    FactSink sink;
    made = compileAnew(graph, options, compileOptions, kernels);
    facts = sink.take();
  }
  compiler::recordFacts(facts, symbols);
  if (!source.empty())
    keep(graph, options, compileOptions, source, *made, kernels, facts);
  return std::make_shared<Compiled>(made);
}

} // namespace

std::optional<std::string> loadKept(const std::string &source) { return compiler::loadData(source); }
void storeKept(const std::string &source, const std::string &data) { compiler::storeData(source, data); }
std::vector<std::pair<std::string, std::string>> tuningEntries() { return compiler::TuningStore::get().dump(); }
bool loadTuningEntry(const std::string &key, const std::string &value) {
  return compiler::TuningStore::get().load(key, value);
}
std::string tuningHost() { return compiler::tuningHost(); }

void installCompiler() { setBackend(compileGraph); }

} // namespace dlc
