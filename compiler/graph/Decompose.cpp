// Rules of the op records over IR values, applied to every composite that has no kernel of its own in the compiler.
#include "compiler/graph/Passes.h"
#include "dialects/dlc/Rules.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

class DecomposePass : public PassWrapper<DecomposePass, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DecomposePass)
  StringRef getArgument() const final { return "dlc-decompose"; }
  StringRef getDescription() const final { return "Replace composites by the ops of their rules"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<ir::DlcDialect, arith::ArithDialect, affine::AffineDialect>();
  }
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    bool again = true;
    while (again) { // a rule may use composites
      again = false;
      for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
        const OpInfo *info = ir::infoOf(&op);
        if (!info || !info->has(kHasRule))
          continue;
        if (failed(expand(&op)))
          return signalPassFailure();
        again = true;
      }
    }
  }

private:
  LogicalResult expand(Operation *op) {
    OpBuilder b(op);
    SmallVector<Value> results;
    try {
      if (!ir::applyRule(b, op, results))
        return op->emitError("has a rule that cannot be applied");
    } catch (const Error &e) {
      return op->emitError(e.what());
    }
    for (size_t i = 0; i < results.size() && i < op->getNumResults(); ++i) {
      if (results[i] && results[i].getType() != op->getResult(static_cast<unsigned>(i)).getType() &&
          !op->getResult(static_cast<unsigned>(i)).use_empty())
        return op->emitError("its rule gives ") << results[i].getType() << " for result " << i;
      if (results[i])
        op->getResult(static_cast<unsigned>(i)).replaceAllUsesWith(results[i]);
    }
    if (!op->use_empty())
      return op->emitError("its rule leaves out a result that is used");
    op->erase();
    return success();
  }
};

} // namespace

std::unique_ptr<Pass> createDecomposePass() { return std::make_unique<DecomposePass>(); }

} // namespace dlc::compiler
