// Copies that the later phases rely on: every view has strides on its root, every result is computed by an op.
#include "compiler/graph/Layouts.h"
#include "compiler/graph/Passes.h"
#include "dialects/dlc/DlcDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

Value cloneOf(OpBuilder &b, Location loc, Value v) {
  const OpInfo *clone = findOp("clone");
  ir::OpParts parts;
  parts.operands.push_back({v});
  parts.operands.emplace_back();
  parts.attributes.push_back(b.getNamedAttr("memory_format", b.getStringAttr("contiguous_format")));
  return ir::createOp(b, loc, *clone, parts, {v.getType()})->getResult(0);
}

class MaterializePass : public PassWrapper<MaterializePass, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MaterializePass)
  StringRef getArgument() const final { return "dlc-materialize"; }
  StringRef getDescription() const final { return "Copy where a view has no strides, and results that no op computes"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<ir::DlcDialect>(); }
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    Symbols symbols(func);
    Layouts layouts(symbols);
    setFunctionLayouts(func, layouts);
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
      const OpInfo *info = infoOf(&op);
      if (!info || info->kind != OpKind::View || layouts.isFreeView(&op))
        continue;
      OpBuilder b(&op);
      op.setOperand(0, cloneOf(b, op.getLoc(), op.getOperand(0)));
      layouts.forget(op.getResult(0));
    }
    copyResults(func, layouts);
  }

private:
  /// A result that is written back may be anything: the plan copies it at the end anyhow.
  void copyResults(func::FuncOp func, Layouts &layouts) {
    Operation *ret = func.getBody().front().getTerminator();
    DenseSet<Value> seen;
    OpBuilder b(ret);
    for (OpOperand &operand : ret->getOpOperands()) {
      Value v = operand.get();
      bool computed = v.getDefiningOp() && layouts.of(v).root == v && seen.insert(v).second;
      if (!computed)
        operand.set(cloneOf(b, ret->getLoc(), v));
    }
  }
};

} // namespace

std::unique_ptr<Pass> createMaterializePass() { return std::make_unique<MaterializePass>(); }

} // namespace dlc::compiler
