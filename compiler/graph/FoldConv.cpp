// Convolutions become conv2d_packed: the weight is packed by an op of its own, a normalisation by running statistics
// becomes a scale and a shift of the sums, and a sum and an activation that follow are part of the op. Before
// dlc-decompose, which would take the normalisation apart.
#include "compiler/graph/Layouts.h"
#include "compiler/graph/Passes.h"
#include "compiler/graph/StatePart.h"
#include "dialects/dlc/DlcDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

/// Output pixels from which packing a weight in every call is little work beside the products.
constexpr int64_t kPixelsForPacking = 512;

bool isOp(Operation *op, StringRef name) {
  return op && op->getName().getStringRef().starts_with("dlc.") && op->getName().stripDialect() == name;
}

Operation *onlyUser(Value v) { return v.hasOneUse() ? *v.getUsers().begin() : nullptr; }

/// One convolution and what is folded into it.
struct Folded {
  Operation *conv;
  Value mean, variance, gamma, beta, residual; // null where there is none
  double eps = 0;
  StringRef activation = "none";
  Operation *last; ///< the op whose result this computes
  Value result;
};

class Folder {
public:
  explicit Folder(func::FuncOp func) : func_(func), symbols_(func) {}

  void run() {
    Block &block = func_.getBody().front();
    for (Operation &op : block) {
      hasGradients_ |= isOp(&op, "conv2d_backward_weight");
      if (isOp(&op, "conv2d_backward_input") && !isConvolution(&op))
        return; // it wants its operands in NCHW
    }
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isOp(&op, "conv2d") && isWanted(&op))
        convs_.push_back(&op);
      else if (isOp(&op, "max_pool2d"))
        dropIndices(&op);
      else if (isOp(&op, "adaptive_avg_pool2d"))
        averageAll(&op);
      else if (isOp(&op, "conv2d_backward_input"))
        flipped(&op);
    }
    // The last one first: of two convolutions that are added, the later one takes the sum.
    for (Operation *conv : llvm::reverse(convs_))
      rewrite(match(conv));
  }

private:
  bool isWanted(Operation *op) {
    OperandRanges in(op, *infoOf(op));
    auto weight = cast<RankedTensorType>(in["weight"].getType());
    Value out = op->getResult(0);
    if (dtypeOf(out) != DType::F32 || cast<RankedTensorType>(out.getType()).getRank() != 4 ||
        !weight.hasStaticShape() || weight.getNumElements() == 0 || out.use_empty())
      return false;
    int64_t groups = op->getAttrOfType<IntegerAttr>("groups").getInt(), perGroup = weight.getDimSize(1);
    bool depthwise = perGroup == 1 && weight.getDimSize(0) == groups;
    if (groups != 1 && !depthwise && (perGroup < 4 || weight.getDimSize(0) / groups < 4))
      return false;
    // The first half of a training step, whose second half wants the sums and row-major.
    for (Operation *user : out.getUsers())
      if (!hasGradients_ && (user->hasTrait<OpTrait::IsTerminator>() ||
                             (isOp(user, "batch_norm") && user->getAttrOfType<BoolAttr>("training").getValue())))
        return false;
    Dims sizes = symbols_.sizes(out);
    return isState(func_, in["weight"]) || (sizes[0] * sizes[2] * sizes[3]).value() >= kPixelsForPacking;
  }

  /// Whether the gradient for the input is itself a convolution, by the flipped weight: its steps are 1.
  bool isConvolution(Operation *op) {
    OperandRanges in(op, *infoOf(op));
    auto weight = cast<RankedTensorType>(in["weight"].getType());
    if (dtypeOf(op->getResult(0)) != DType::F32 || cast<RankedTensorType>(in["grad"].getType()).getRank() != 4 ||
        !weight.hasStaticShape() || weight.getNumElements() == 0 ||
        op->getAttrOfType<IntegerAttr>("groups").getInt() != 1)
      return false;
    for (int i = 0; i < 2; ++i)
      if (entry(op, "stride", i) != 1 ||
          entry(op, "padding", i) > entry(op, "dilation", i) * (weight.getDimSize(2 + i) - 1))
        return false;
    return true;
  }

  static int64_t entry(Operation *op, StringRef name, int i) {
    ArrayRef<int64_t> list = op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef();
    return list[list.size() == 1 ? 0 : i];
  }

  void flipped(Operation *op) {
    OpBuilder b(op);
    OperandRanges in(op, *infoOf(op));
    Value turned =
        create(b, "transpose", {in["weight"]},
               {b.getNamedAttr("dim0", b.getI64IntegerAttr(0)), b.getNamedAttr("dim1", b.getI64IntegerAttr(1))});
    turned = create(b, "flip", {turned}, {b.getNamedAttr("dims", b.getDenseI64ArrayAttr({2, 3}))});
    auto weight = cast<RankedTensorType>(turned.getType());
    SmallVector<int64_t> padding;
    for (int i = 0; i < 2; ++i)
      padding.push_back(entry(op, "dilation", i) * (weight.getDimSize(2 + i) - 1) - entry(op, "padding", i));
    NamedAttribute groups = b.getNamedAttr("groups", op->getAttr("groups"));
    NamedAttribute planar = b.getNamedAttr("planar", b.getBoolAttr(false));
    Value packed = create(b, "conv2d_pack", {turned}, {groups, planar});
    Value out =
        create(b, "conv2d_packed", {in["grad"], packed},
               {groups, planar, b.getNamedAttr("activation", b.getStringAttr("none")),
                b.getNamedAttr("weight_sizes", b.getDenseI64ArrayAttr(weight.getShape())),
                b.getNamedAttr("stride", op->getAttr("stride")), b.getNamedAttr("dilation", op->getAttr("dilation")),
                b.getNamedAttr("padding", b.getDenseI64ArrayAttr(padding))});
    if (out.getType() != op->getResult(0).getType())
      return;
    op->getResult(0).replaceAllUsesWith(out);
    op->erase();
  }

  Folded match(Operation *conv) {
    Folded f{conv, {}, {}, {}, {}, {}, 0, "none", conv, conv->getResult(0)};
    matchNorm(f);
    Operation *user = onlyUser(f.result);
    if (isOp(user, "add")) {
      OperandRanges in(user, *infoOf(user));
      Value other = in["self"] == f.result ? in["other"] : in["self"];
      Value alpha = in["alpha"];
      if (user->getResult(0).getType() == f.result.getType() && other.getType() == f.result.getType() &&
          numberOf(alpha).isConst(1)) {
        f.residual = other;
        f.last = user;
        f.result = user->getResult(0);
      }
    }
    matchActivation(f);
    return f;
  }

  void matchNorm(Folded &f) {
    Operation *norm = onlyUser(f.result);
    if (!isOp(norm, "batch_norm") || norm->getAttrOfType<BoolAttr>("training").getValue())
      return;
    OperandRanges in(norm, *infoOf(norm));
    Value mean = in["running_mean"], variance = in["running_var"];
    if (!mean || !variance || in["input"] != f.result || !norm->getResult(1).use_empty() ||
        !norm->getResult(2).use_empty())
      return;
    for (Value v : {mean, variance, in["weight"], in["bias"]})
      if (v && dtypeOf(v) != DType::F32)
        return;
    f.mean = mean, f.variance = variance, f.gamma = in["weight"], f.beta = in["bias"];
    f.eps = norm->getAttrOfType<FloatAttr>("eps").getValueAsDouble();
    // Without training the statistics stay as they are.
    norm->getResult(3).replaceAllUsesWith(mean);
    norm->getResult(4).replaceAllUsesWith(variance);
    f.last = norm;
    f.result = norm->getResult(0);
  }

  void matchActivation(Folded &f) {
    Operation *user = onlyUser(f.result);
    if (!user || user->getNumResults() != 1 || user->getResult(0).getType() != f.result.getType())
      return;
    for (StringRef name : {"relu", "hardswish", "hardsigmoid"})
      if (isOp(user, name))
        f.activation = name;
    if (isOp(user, "hardtanh")) {
      OperandRanges in(user, *infoOf(user));
      if (numberOf(in["min_val"]).isConst(0) && numberOf(in["max_val"]).isConst(6))
        f.activation = "relu6";
    }
    if (f.activation == "none")
      return;
    f.last = user;
    f.result = user->getResult(0);
  }

  Value create(OpBuilder &b, StringRef name, ArrayRef<Value> operands, ArrayRef<NamedAttribute> attributes = {}) {
    const OpInfo &info = *findOp(name);
    ir::OpParts parts;
    size_t next = 0;
    for (const ParamInfo &p : info.params) {
      SmallVector<Value, 2> &own = parts.operands.emplace_back();
      if (!ir::isOperandKind(p.kind))
        continue;
      if (next < operands.size() && operands[next])
        own.push_back(operands[next]);
      ++next;
    }
    parts.attributes.assign(attributes.begin(), attributes.end());
    return ir::createOp(b, b.getUnknownLoc(), info, parts)->getResult(0);
  }

  void rewrite(const Folded &f) {
    OpBuilder b(f.last);
    OperandRanges in(f.conv, *infoOf(f.conv));
    Value one = b.create<arith::ConstantOp>(f.conv->getLoc(), b.getI64IntegerAttr(1));
    Value scale, shift = in["bias"];
    if (f.mean) {
      Value eps = b.create<arith::ConstantOp>(f.conv->getLoc(), b.getF64FloatAttr(f.eps));
      scale = create(b, "rsqrt", {create(b, "add", {f.variance, eps, one})});
      if (f.gamma)
        scale = create(b, "mul", {scale, f.gamma});
      // (sum + bias - mean) * scale + beta
      Value mean = shift ? create(b, "sub", {f.mean, shift, one}) : f.mean;
      shift = create(b, "mul", {mean, scale});
      shift = f.beta ? create(b, "sub", {f.beta, shift, one}) : create(b, "neg", {shift});
    }
    auto weight = cast<RankedTensorType>(in["weight"].getType());
    NamedAttribute groups = b.getNamedAttr("groups", f.conv->getAttr("groups"));
    NamedAttribute planar = b.getNamedAttr("planar", b.getBoolAttr(false));
    Value packed = create(b, "conv2d_pack", {in["weight"]}, {groups, planar});
    SmallVector<NamedAttribute> attributes{groups, planar, b.getNamedAttr("activation", b.getStringAttr(f.activation)),
                                           b.getNamedAttr("weight_sizes", b.getDenseI64ArrayAttr(weight.getShape()))};
    for (StringRef name : {"stride", "padding", "dilation"})
      attributes.push_back(b.getNamedAttr(name, f.conv->getAttr(name)));
    Value out = create(b, "conv2d_packed", {in["input"], packed, scale, shift, f.residual}, attributes);
    Value old = f.result;
    old.replaceAllUsesWith(out);
    // From the last op back to the convolution, whose results are now unused.
    for (Operation *op = f.last; op;) {
      Operation *before = op == f.conv ? nullptr : producerIn(op, f);
      op->erase();
      op = before;
    }
  }

  /// The op of the chain whose result `op` takes.
  Operation *producerIn(Operation *op, const Folded &f) {
    for (Value v : op->getOperands())
      if (v != f.residual)
        if (Operation *def = v.getDefiningOp(); def && isa<RankedTensorType>(v.getType()) && v.hasOneUse() &&
                                                (def == f.conv || isOp(def, "batch_norm") || isOp(def, "add")))
          return def;
    return nullptr;
  }

  /// max_pool2d whose indices nobody reads.
  void dropIndices(Operation *op) {
    if (!op->getResult(1).use_empty() || cast<RankedTensorType>(op->getResult(0).getType()).getRank() != 4)
      return;
    OpBuilder b(op);
    SmallVector<NamedAttribute> attributes;
    for (StringRef name : {"kernel_size", "stride", "padding", "dilation", "ceil_mode"})
      if (Attribute a = op->getAttr(name))
        attributes.push_back(b.getNamedAttr(name, a));
    op->getResult(0).replaceAllUsesWith(create(b, "max_pool2d_values", {op->getOperand(0)}, attributes));
    op->erase();
  }

  /// Adaptive pooling to one element a plane is a mean, which fuses.
  void averageAll(Operation *op) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t rank = type.getRank();
    if (dtypeOf(op->getResult(0)) != DType::F32 || type.getDimSize(rank - 1) != 1 || type.getDimSize(rank - 2) != 1)
      return;
    OpBuilder b(op);
    Value average = create(b, "mean", {op->getOperand(0)},
                           {b.getNamedAttr("dim", b.getDenseI64ArrayAttr({rank - 2, rank - 1})),
                            b.getNamedAttr("keepdim", b.getBoolAttr(true))});
    op->getResult(0).replaceAllUsesWith(average);
    op->erase();
  }

  func::FuncOp func_;
  Symbols symbols_;
  SmallVector<Operation *> convs_;
  bool hasGradients_ = false;
};

class FoldConvPass : public PassWrapper<FoldConvPass, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldConvPass)
  StringRef getArgument() const final { return "dlc-fold-conv"; }
  StringRef getDescription() const final { return "Convolutions with packed weights and what follows them"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<ir::DlcDialect, arith::ArithDialect>();
  }
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    try {
      Folder(func).run();
    } catch (const Error &e) {
      func.emitError(e.what());
      signalPassFailure();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createFoldConvPass() { return std::make_unique<FoldConvPass>(); }

} // namespace dlc::compiler
