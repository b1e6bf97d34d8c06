// Convolution regions in channels-last memory. It starts at convolutions, and pooling and point-by-point ops keep the
// layout of their operands; all others read and write row-major values. After dlc-decompose, before dlc-materialize.
#include "compiler/graph/Layouts.h"
#include "compiler/graph/Passes.h"
#include "dialects/dlc/DlcDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

bool isNamed(Operation *op, StringRef name) {
  return op->getName().getStringRef().starts_with("dlc.") && op->getName().stripDialect() == name;
}

/// Neighbouring pixels are neighbouring channels' vectors only if there are several of both.
bool isImage(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  return type && type.getRank() == 4 && type.getDimSize(1) != 1;
}

RankedTensorType image(Value v) { return cast<RankedTensorType>(v.getType()); }

class ChannelsLastPass : public PassWrapper<ChannelsLastPass, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChannelsLastPass)
  StringRef getArgument() const final { return "dlc-channels-last"; }
  StringRef getDescription() const final { return "Choose channels-last memory for convolution regions"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<ir::DlcDialect>(); }
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    Operation *ret = func.getBody().front().getTerminator();
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
      const OpInfo *info = infoOf(&op);
      if (!info || op.getNumResults() == 0 || !isImage(op.getResult(0)))
        continue;
      Value out = op.getResult(0);
      if (isNamed(&op, "conv2d_packed")) {
        readPlanes(&op, *info);
        setChannelsLast(out);
        continue;
      }
      if (isNamed(&op, "max_pool2d") || isNamed(&op, "max_pool2d_values") || isNamed(&op, "max_pool2d_backward")) {
        for (Value result : op.getResults())
          if (isChannelsLast(op.getOperand(0)))
            setChannelsLast(result);
        continue;
      }
      bool keeps = info->kind == OpKind::Elementwise && op.getNumResults() == 1;
      bool isResult = llvm::is_contained(ret->getOperands(), out);
      if (keeps && !isResult && llvm::any_of(op.getOperands(), [&](Value v) {
            return isChannelsLast(v) && cast<RankedTensorType>(v.getType()).getShape() == image(out).getShape();
          }))
        setChannelsLast(out);
    }
  }

private:
  /// An input that is not channels-last is read as planes, and the weight is packed for that.
  void readPlanes(Operation *op, const OpInfo &info) {
    OperandRanges in(op, info);
    Value input = in["input"], packed = in["packed"];
    auto type = cast<RankedTensorType>(input.getType());
    bool onePixel = type.getDimSize(2) == 1 && type.getDimSize(3) == 1;
    bool depthwise = op->getAttrOfType<IntegerAttr>("groups").getInt() == type.getDimSize(1);
    Operation *pack = packed.getDefiningOp();
    if (isChannelsLast(input) || onePixel || (depthwise && type.getDimSize(1) != 1) || !pack ||
        !isNamed(pack, "conv2d_pack"))
      return;
    if (!packed.hasOneUse()) {
      OpBuilder b(pack);
      pack = b.clone(*pack);
      op->replaceUsesOfWith(packed, pack->getResult(0));
    }
    for (Operation *o : {pack, op})
      o->setAttr("planar", BoolAttr::get(&getContext(), true));
  }
};

} // namespace

std::unique_ptr<Pass> createChannelsLastPass() { return std::make_unique<ChannelsLastPass>(); }

} // namespace dlc::compiler
