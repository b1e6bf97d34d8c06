// The backend of compiled functions: import, run the pipeline, keep the plan.
#include "compiler/pipeline/Pipelines.h"
#include "frontend/import/Import.h"
#include "frontend/import/Install.h"

namespace dlc {
namespace {

class Compiled final : public CompiledGraph {
public:
  explicit Compiled(std::shared_ptr<compiler::Executable> executable) : executable_(std::move(executable)) {}
  void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) override {
    executable_->run(inputs, numbers, symbols, outs);
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

std::shared_ptr<CompiledGraph> compileGraph(const Graph &graph, const BackendOptions &options) {
  compiler::CompileOptions compileOptions = compiler::CompileOptions::fromKnobs();
  compileOptions.name = options.name;
  std::unique_ptr<mlir::MLIRContext> context = compiler::makeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(context.get(), graph, options);
  return std::make_shared<Compiled>(compiler::compileModule(*module, compileOptions));
}

} // namespace

void installCompiler() { setBackend(compileGraph); }

} // namespace dlc
