// Reductions of much into little: in two steps, so that the first one has rows for all threads. Both are fixed by the
// sizes, so the result does not depend on the number of threads. Values as `simplified` leaves them.
#include "compiler/fusion/FusePass.h"
#include "compiler/fusion/Nodes.h"
#include "dialects/dlc/Rules.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

/// Below this many elements one thread is as fast.
constexpr int64_t kManyElements = 128 << 10;
/// Fewer results than this leave threads without work, unless they lie side by side: then lanes and strips take many.
constexpr int64_t kFewResults = 8, kFewColumns = 512;
/// Results of the first step: enough for the threads, little work for the second one.
constexpr int64_t kFewestParts = 8, kMostParts = 4096;

class Splitter {
public:
  explicit Splitter(func::FuncOp func) : func_(func), symbols_(func), layouts_(symbols_) {}

  void run() {
    setFunctionLayouts(func_, layouts_);
    for (Operation &op : llvm::make_early_inc_range(func_.getBody().front())) {
      const OpInfo *info = infoOf(&op);
      if (info && info->kind == OpKind::Reduce && op.getNumResults() == 1 && canSplit(&op, *info))
        split(&op);
    }
  }

private:
  /// Reductions of which parts may be reduced again, with results as exact as the parts.
  static bool canSplit(Operation *op, const OpInfo &info) {
    std::optional<ReduceForm> form = reduceForm(info);
    if (!form ||
        (form->combine != ReduceForm::Add && form->combine != ReduceForm::Max && form->combine != ReduceForm::Min))
      return false;
    bool list = llvm::any_of(info.params, [](const ParamInfo &p) {
      return StringRef(p.name) == "dim" && (p.kind == ParamKind::IntList || p.kind == ParamKind::IntListOpt);
    });
    DType in = dtypeOf(op->getOperand(0)), out = dtypeOf(op->getResult(0));
    return list && itemSize(out) >= 4 && (in == out || !isFloat(out));
  }

  struct Shape {
    Dims sizes;
    SmallVector<int64_t> dims; ///< reduced, ascending
    int64_t results = 1, length = 1;
    bool columns = false; ///< the fastest dim is kept
  };

  Shape shapeOf(Operation *op) {
    Shape s;
    s.sizes = symbols_.sizes(op->getOperand(0));
    int64_t rank = static_cast<int64_t>(s.sizes.size());
    if (auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dim"))
      for (int64_t d : dims.asArrayRef())
        s.dims.push_back(d < 0 ? d + rank : d);
    if (s.dims.empty())
      s.dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    llvm::sort(s.dims);
    for (int64_t d = 0; d < rank; ++d)
      (llvm::is_contained(s.dims, d) ? s.length : s.results) *= s.sizes[d].value();
    std::optional<size_t> fastest = layouts_.fastestDim(op->getOperand(0));
    s.columns = fastest && !llvm::is_contained(s.dims, static_cast<int64_t>(*fastest));
    return s;
  }

  void split(Operation *op) {
    Shape s = shapeOf(op);
    bool few = s.results < kFewResults || (s.columns && s.results <= kFewColumns);
    if (!few || s.dims.empty() || s.results * s.length < kManyElements)
      return;
    // At a border between reduced dims, or else inside the first one.
    int64_t parts = 1;
    for (size_t k = 1; k < s.dims.size(); ++k) {
      parts *= s.sizes[s.dims[k - 1]].value();
      if (parts >= kFewestParts && parts <= kMostParts && s.length / parts >= 64)
        return replace(op, op->getOperand(0), s, ArrayRef<int64_t>(s.dims).take_front(k),
                       SmallVector<int64_t>(ArrayRef<int64_t>(s.dims).drop_front(k)));
    }
    if (s.sizes[s.dims[0]].isConst())
      splitDim(op, s);
  }

  void splitDim(Operation *op, const Shape &s) {
    int64_t first = s.dims[0], size = s.sizes[first].value();
    for (int64_t parts : {64, 32, 128, 96, 48, 16, 256, 512, 8}) {
      if (size % parts || s.length / parts < 64)
        continue;
      Dims sizes = s.sizes;
      sizes[first] = Dim(size / parts);
      sizes.insert(static_cast<size_t>(first), Dim(parts));
      OpBuilder b(op);
      Value viewed = viewTo(b, op->getLoc(), op->getOperand(0), sizes);
      if (!layouts_.isFreeView(viewed.getDefiningOp())) {
        layouts_.forget(viewed);
        viewed.getDefiningOp()->erase();
        return;
      }
      SmallVector<int64_t> inner;
      for (int64_t d : s.dims)
        inner.push_back(d + 1);
      Shape wide = s;
      wide.sizes = sizes;
      return replace(op, viewed, wide, {first}, inner);
    }
  }

  /// Reduces `inner` dims of `from`, then the `outer` ones (which come before them).
  void replace(Operation *op, Value from, const Shape &s, ArrayRef<int64_t> outer, ArrayRef<int64_t> inner) {
    Value part = reduced(op, from, s.sizes, inner);
    Value whole = reduced(op, part, symbols_.sizes(part), outer);
    OpBuilder b(op);
    if (whole.getType() != op->getResult(0).getType())
      whole = viewTo(b, op->getLoc(), whole, symbols_.sizes(op->getResult(0)));
    op->getResult(0).replaceAllUsesWith(whole);
    op->erase();
  }

  Value reduced(Operation *op, Value from, const Dims &sizes, ArrayRef<int64_t> dims) {
    OpBuilder b(op);
    Operation *copy = b.clone(*op);
    copy->setOperand(0, from);
    copy->setAttr("dim", b.getDenseI64ArrayAttr(dims));
    copy->setAttr("keepdim", b.getBoolAttr(false));
    Dims kept;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (!llvm::is_contained(dims, static_cast<int64_t>(d)))
        kept.push_back(sizes[d]);
    Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
    copy->getResult(0).setType(ir::tensorType(element, kept, static_cast<unsigned>(symbols_.count())));
    return copy->getResult(0);
  }

  Value viewTo(OpBuilder &b, Location loc, Value v, const Dims &sizes) {
    ir::OpParts parts;
    parts.operands.push_back({v});
    SmallVector<Value, 2> values;
    for (const Dim &d : sizes)
      values.push_back(ir::materialize(b, loc, d, func_));
    parts.operands.push_back(values);
    Type element = cast<RankedTensorType>(v.getType()).getElementType();
    Type type = ir::tensorType(element, sizes, static_cast<unsigned>(symbols_.count()));
    return ir::createOp(b, loc, *findOp("view"), parts, {type})->getResult(0);
  }

  func::FuncOp func_;
  Symbols symbols_;
  Layouts layouts_;
};

class SplitReductionsPass : public PassWrapper<SplitReductionsPass, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SplitReductionsPass)
  StringRef getArgument() const final { return "dlc-split-reductions"; }
  StringRef getDescription() const final { return "Reduce in two steps what is reduced to little"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<ir::DlcDialect>(); }
  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    try {
      Splitter(getOperation()).run();
    } catch (const Error &e) {
      getOperation().emitError(e.what());
      signalPassFailure();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createSplitReductionsPass() { return std::make_unique<SplitReductionsPass>(); }

} // namespace dlc::compiler
