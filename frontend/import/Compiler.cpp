// The backend of compiled functions: import, run the pipeline, keep the plan.
#include "compiler/pipeline/Pipelines.h"
#include "frontend/import/Import.h"
#include "frontend/import/Install.h"
#include "dialects/dlc/DlcDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

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
  static const mlir::DialectRegistry *registry = [] {
    auto *r = new mlir::DialectRegistry;
    compiler::registerCompilerDialects(*r);
    return r;
  }();
  // A context a graph: nothing of one outlives its compilation, and threads share nothing.
  mlir::MLIRContext context(*registry, mlir::MLIRContext::Threading::DISABLED);
  context
      .loadDialect<ir::DlcDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::affine::AffineDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(&context, graph, options);
  return std::make_shared<Compiled>(compiler::compileModule(*module, compileOptions));
}

} // namespace

void installCompiler() { setBackend(compileGraph); }

} // namespace dlc
