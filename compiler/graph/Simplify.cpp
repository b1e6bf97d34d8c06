// Rewrites that change no bit of any result.
#include "compiler/graph/Layouts.h"
#include "compiler/graph/Passes.h"
#include "dialects/dlc/Rules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

/// Simplifies one op at a time, in program order; operands are simple already.
class Simplifier {
public:
  explicit Simplifier(func::FuncOp func) : func_(func), symbols_(func), layouts_(symbols_) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(func_.getBody().front())) {
      const OpInfo *info = infoOf(&op);
      if (!info || op.getNumResults() != 1)
        continue;
      normalizeDims(&op, *info);
      if (Value v = simplified(&op, *info)) {
        op.getResult(0).replaceAllUsesWith(v);
        op.erase();
      }
    }
  }

private:
  /// Reductions count dims from the front, so that equal ones are seen to be equal.
  void normalizeDims(Operation *op, const OpInfo &info) {
    auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dim");
    if (info.kind != OpKind::Reduce || !dims)
      return;
    int64_t rank = cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
    SmallVector<int64_t> wrapped;
    for (int64_t d : dims.asArrayRef())
      wrapped.push_back(d < 0 ? d + rank : d);
    llvm::sort(wrapped);
    op->setAttr("dim", DenseI64ArrayAttr::get(op->getContext(), wrapped));
  }

  Value simplified(Operation *op, const OpInfo &info) {
    StringRef name = info.name;
    Value self = op->getNumOperands() ? op->getOperand(0) : Value();
    if (self && self.getType() == op->getResult(0).getType()) {
      if (info.kind == OpKind::View)
        return sameView(op, name);
      if (name == "cast" || name == "clone") // values have no layout; dlc-materialize copies where memory needs it
        return self;
      if (isIdentityNumber(op, info, name))
        return self;
    }
    if (name == "view")
      return viewOfTransposed(op);
    if (name == "transpose")
      return transposedProduct(op);
    if (name == "cast")
      return widenedAndBack(op);
    if (name == "as_strided")
      return gatherOfScatter(op);
    if (name == "as_strided_scatter" || name == "slice_scatter" || name == "select_scatter")
      return fullScatter(op, info);
    if (name == "cat" && op->getNumOperands() == 1)
      return self;
    if (name == "add")
      joinScatters(op);
    return {};
  }

  /// Part of a sum of slice_scatters into zeros: what is written to [start, end) of dim `dim`.
  struct Slice {
    Value src, zeros;
    int64_t dim, start, end;
  };
  std::optional<Slice> sliceOf(Operation *op) {
    if (!op || op->getName().getStringRef() != "dlc.slice_scatter")
      return std::nullopt;
    OperandRanges operands(op, *infoOf(op));
    Slice s{operands["src"], operands["self"], op->getAttrOfType<IntegerAttr>("dim").getInt(), 0, 0};
    Operation *fill = s.zeros.getDefiningOp();
    if (!fill || fill->getName().getStringRef() != "dlc.full" || s.zeros.getType() != op->getResult(0).getType())
      return std::nullopt;
    Value zero = OperandRanges(fill, *infoOf(fill))["fill_value"];
    auto bound = [&](StringRef name) { return operands[name] ? symbols_.dim(operands[name]) : std::nullopt; };
    std::optional<Dim> start = bound("start"), end = bound("end"), step = bound("step");
    if (!isNumber(zero, 0) || std::signbit(numberOf(zero).toDouble()) || !start || !end || !step || !step->same(1) ||
        !start->isConst() || !end->isConst() || dtypeOf(s.src) != dtypeOf(s.zeros))
      return std::nullopt;
    s.start = start->value();
    s.end = end->value();
    return s;
  }

  bool slicesOf(Value sum, SmallVectorImpl<Slice> &slices) {
    Operation *op = sum.getDefiningOp();
    if (op && op->getName().getStringRef() == "dlc.add") {
      OperandRanges operands(op, *infoOf(op));
      return isNumber(operands["alpha"], 1) && isa<RankedTensorType>(operands["other"].getType()) &&
             slicesOf(operands["self"], slices) && slicesOf(operands["other"], slices);
    }
    std::optional<Slice> s = sliceOf(op);
    if (s)
      slices.push_back(*s);
    return s.has_value();
  }

  /// The gradient of a tensor that was cut into parts, a sum of slice_scatters into zeros that cover everything once,
  /// becomes their cat plus zero: adding zeros often is adding zero once (which turns -0.0 into 0.0).
  void joinScatters(Operation *op) {
    SmallVector<Slice> slices;
    if (!isa<RankedTensorType>(op->getOperand(1).getType()) || !slicesOf(op->getResult(0), slices))
      return;
    llvm::sort(slices, [](const Slice &a, const Slice &b) { return a.start < b.start; });
    Dims sizes = symbols_.sizes(op->getResult(0));
    int64_t rank = static_cast<int64_t>(sizes.size()), dim = slices[0].dim + (slices[0].dim < 0 ? rank : 0), at = 0;
    ir::OpParts parts;
    parts.operands.emplace_back();
    for (const Slice &s : slices) {
      if (s.dim + (s.dim < 0 ? rank : 0) != dim || s.start != at || s.end <= at ||
          s.zeros.getType() != op->getResult(0).getType())
        return;
      at = s.end;
      parts.operands[0].push_back(s.src);
    }
    if (!sizes[dim].same(Dim(at)))
      return;
    OpBuilder b(op);
    parts.operands.emplace_back();
    parts.attributes.push_back(b.getNamedAttr("dim", b.getI64IntegerAttr(dim)));
    Value joined = ir::createOp(b, op->getLoc(), *findOp("cat"), parts, {op->getResult(0).getType()})->getResult(0);
    op->setOperand(0, joined);
    op->setOperand(1, slices[0].zeros);
  }

  /// A view that is its operand: same sizes, strides and offset. For a row-major operand that is what the layout says.
  Value sameView(Operation *op, StringRef name) {
    if (name == "detach" || name == "view" || name == "expand" || name == "squeeze")
      return op->getOperand(0);
    const Layout &in = layouts_.of(op->getOperand(0)), &out = layouts_.of(op->getResult(0));
    bool equal = out.root == in.root && out.root != op->getResult(0) && same(out.sizes, in.sizes) &&
                 same(out.strides, in.strides) && out.offset.same(in.offset);
    return equal ? op->getOperand(0) : Value();
  }

  /// Joining the leading dims of a matrix whose last two are swapped: join first, so that the copy that joining may
  /// take is not a transposition as well.
  Value viewOfTransposed(Operation *op) {
    Operation *inner = op->getOperand(0).getDefiningOp();
    Dims out = symbols_.sizes(op->getResult(0)), in = symbols_.sizes(op->getOperand(0));
    size_t rank = in.size(), last = out.size();
    if (!inner || inner->getName().getStringRef() != "dlc.transpose" || rank < 3 || last < 2 || layouts_.isFreeView(op))
      return {};
    auto wrapped = [&](StringRef name) {
      int64_t d = inner->getAttrOfType<IntegerAttr>(name).getInt();
      return static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(rank) : d);
    };
    size_t a = wrapped("dim0"), b = wrapped("dim1");
    if (std::min(a, b) != rank - 2 || std::max(a, b) != rank - 1 || !out[last - 1].same(in[rank - 1]) ||
        !out[last - 2].same(in[rank - 2]))
      return {};
    Dims swapped = out;
    std::swap(swapped[last - 1], swapped[last - 2]);
    OpBuilder builder(op);
    Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
    Value joined = viewTo(builder, op->getLoc(), inner->getOperand(0), swapped, element);
    ir::OpParts parts;
    parts.operands.push_back({joined});
    parts.operands.resize(3);
    parts.attributes.push_back(builder.getNamedAttr("dim0", builder.getI64IntegerAttr(-2)));
    parts.attributes.push_back(builder.getNamedAttr("dim1", builder.getI64IntegerAttr(-1)));
    return ir::createOp(builder, op->getLoc(), *findOp("transpose"), parts, {op->getResult(0).getType()})->getResult(0);
  }

  /// (a b)^T is b^T a^T, row-major for whoever reads it: the gradient of a weight has the layout of the weight.
  Value transposedProduct(Operation *op) {
    Operation *product = op->getOperand(0).getDefiningOp();
    if (!product || product->getName().getStringRef() != "dlc.mm" || !product->getResult(0).hasOneUse() ||
        op->getAttrOfType<IntegerAttr>("dim0").getInt() == op->getAttrOfType<IntegerAttr>("dim1").getInt() ||
        leavesTransposed(op->getResult(0)))
      return {};
    OpBuilder b(op);
    ir::OpParts parts;
    parts.operands.push_back({transposed(b, product->getOperand(1))});
    parts.operands.push_back({transposed(b, product->getOperand(0))});
    return ir::createOp(b, product->getLoc(), *findOp("mm"), parts, {op->getResult(0).getType()})->getResult(0);
  }

  /// Whether a value is a result that must lie in memory as it does now, or a copy of it is.
  bool leavesTransposed(Value v) {
    for (OpOperand &use : v.getUses()) {
      Operation *user = use.getOwner();
      const OpInfo *info = infoOf(user);
      if (isa<func::ReturnOp>(user) && func_.getResultAttr(use.getOperandNumber(), "dlc.strides"))
        return true;
      if (info && (info->kind == OpKind::View || StringRef(info->name) == "clone") &&
          leavesTransposed(user->getResult(0)))
        return true;
    }
    return false;
  }

  Value transposed(OpBuilder &b, Value matrix) {
    Operation *inner = matrix.getDefiningOp();
    if (inner && inner->getName().getStringRef() == "dlc.transpose" &&
        inner->getAttrOfType<IntegerAttr>("dim0").getInt() != inner->getAttrOfType<IntegerAttr>("dim1").getInt())
      return inner->getOperand(0);
    ir::OpParts parts;
    parts.operands.push_back({matrix});
    parts.operands.resize(3);
    parts.attributes.push_back(b.getNamedAttr("dim0", b.getI64IntegerAttr(0)));
    parts.attributes.push_back(b.getNamedAttr("dim1", b.getI64IntegerAttr(1)));
    Dims sizes = symbols_.sizes(matrix);
    std::swap(sizes[0], sizes[1]);
    Type type = ir::tensorType(cast<RankedTensorType>(matrix.getType()).getElementType(), sizes,
                               static_cast<unsigned>(symbols_.count()));
    return ir::createOp(b, matrix.getLoc(), *findOp("transpose"), parts, {type})->getResult(0);
  }

  Value viewTo(OpBuilder &b, Location loc, Value v, const Dims &sizes, Type element) {
    ir::OpParts parts;
    parts.operands.push_back({v});
    SmallVector<Value, 2> values;
    for (const Dim &d : sizes)
      values.push_back(ir::materialize(b, loc, d, func_));
    parts.operands.push_back(values);
    Type type = ir::tensorType(element, sizes, static_cast<unsigned>(symbols_.count()));
    return ir::createOp(b, loc, *findOp("view"), parts, {type})->getResult(0);
  }

  bool isNumber(Value v, double x) { return v && !isa<RankedTensorType>(v.getType()) && numberOf(v).isConst(x); }

  /// x * 1, x / 1, x - 0 and, for integers, x + 0 (x + 0.0 turns -0.0 into 0.0, so not for floats).
  bool isIdentityNumber(Operation *op, const OpInfo &info, StringRef name) {
    if (info.kind != OpKind::Elementwise)
      return false;
    OperandRanges operands(op, info);
    Value other = operands["other"];
    bool plainDiv = name == "div" && !op->getAttr("rounding_mode");
    if (name == "mul" || plainDiv)
      return isNumber(other, 1);
    if (name == "pow")
      return isNumber(operands["exponent"], 1);
    if (!isNumber(other, 0) || (name != "add" && name != "sub"))
      return false;
    if (!isFloat(dtypeOf(op->getResult(0))))
      return true;
    // x - (+0.0) is x for every x, with a positive alpha; -0.0 would not be.
    Number zero = numberOf(other);
    return name == "sub" && isNumber(operands["alpha"], 1) && !(zero.isFloat() && std::signbit(zero.toDouble()));
  }

  /// cast(cast(x, wider), original): exact when every value of the original has an equal in the wider type.
  Value widenedAndBack(Operation *op) {
    Operation *inner = op->getOperand(0).getDefiningOp();
    if (!inner || inner->getName().getStringRef() != "dlc.cast" ||
        inner->getOperand(0).getType() != op->getResult(0).getType())
      return {};
    DType from = dtypeOf(inner->getOperand(0)), wide = dtypeOf(inner->getResult(0));
    return holds(wide, from) ? inner->getOperand(0) : Value();
  }

  static bool holds(DType wide, DType narrow) {
    if (isFloat(narrow) != isFloat(wide))
      return !isFloat(narrow) &&
             (wide == DType::F64 ? itemSize(narrow) <= 4 : wide == DType::F32 && itemSize(narrow) <= 2);
    if (isFloat(narrow))
      return wide == DType::F64 || (wide == DType::F32 && itemSize(narrow) == 2);
    if (narrow == DType::Bool)
      return wide != DType::Bool;
    return itemSize(wide) > itemSize(narrow) && (isSigned(wide) || !isSigned(narrow));
  }

  /// Sizes, strides and offset of an as_strided(_scatter); none if an operand is no expression of the symbols.
  struct Window {
    Dims sizes, strides;
    Dim offset;
  };
  std::optional<Window> windowOf(Operation *op) {
    const OpInfo &info = *infoOf(op);
    OperandRanges ranges(op, info);
    Window w;
    for (size_t p = 0; p < info.params.size(); ++p) {
      StringRef name = info.params[p].name;
      for (Value v : ranges[p]) {
        if (isa<RankedTensorType>(v.getType()))
          continue;
        std::optional<Dim> d = symbols_.dim(v);
        if (!d)
          return std::nullopt;
        if (name == "size")
          w.sizes.push_back(*d);
        else if (name == "stride")
          w.strides.push_back(*d);
        else
          w.offset = *d;
      }
    }
    return w;
  }

  static bool equal(const Window &a, const Window &b) {
    return same(a.sizes, b.sizes) && same(a.strides, b.strides) && a.offset.same(b.offset);
  }

  /// The last step of a write and a read through one view: the value that was written.
  Value gatherOfScatter(Operation *op) {
    std::optional<Window> w = windowOf(op);
    if (!w)
      return {};
    Value self = op->getOperand(0);
    if (self.getType() == op->getResult(0).getType() && w->offset.same(Dim(0)) && isRowMajor(w->sizes, w->strides))
      return self;
    Operation *scatter = self.getDefiningOp();
    if (!scatter || scatter->getName().getStringRef() != "dlc.as_strided_scatter")
      return {};
    std::optional<Window> written = windowOf(scatter);
    Value src = scatter->getOperand(1);
    if (!written || !equal(*w, *written) || !isNonOverlapping(*w) || src.getType() != op->getResult(0).getType())
      return {};
    return src;
  }

  /// Each element of the window has an address of its own, seen from its strides alone: sorted by stride, each one
  /// reaches past all smaller dims.
  static bool isNonOverlapping(const Window &w) {
    SmallVector<std::pair<Dim, Dim>> dims;
    for (size_t k = 0; k < w.sizes.size(); ++k)
      if (!w.sizes[k].same(Dim(1)))
        dims.push_back({w.strides[k], w.sizes[k]});
    while (!dims.empty()) {
      // Peel the outermost dim: its stride is at least what the others span, for every value of the symbols.
      bool peeled = false;
      for (size_t i = 0; i < dims.size() && !peeled; ++i) {
        Dim dense(1);
        for (size_t j = 0; j < dims.size(); ++j)
          if (j != i)
            dense *= dims[j].second;
        bool covers = dims[i].first.same(dense) ||
                      (dims[i].first.isConst() && dense.isConst() && dims[i].first.value() >= span(dims, i));
        if (covers) {
          dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
          peeled = true;
        }
      }
      if (!peeled)
        return false;
    }
    return true;
  }

  /// How far the other dims reach; only for constants.
  static int64_t span(ArrayRef<std::pair<Dim, Dim>> dims, size_t except) {
    int64_t reach = 1;
    for (size_t j = 0; j < dims.size(); ++j)
      if (j != except) {
        if (!dims[j].first.isConst() || !dims[j].second.isConst())
          return INT64_MAX;
        reach += (dims[j].second.value() - 1) * std::abs(dims[j].first.value());
      }
    return reach;
  }

  /// A scatter that covers its whole base is the value it writes.
  Value fullScatter(Operation *op, const OpInfo &info) {
    Value base = op->getOperand(0), src = op->getOperand(1);
    if (StringRef(info.name) != "as_strided_scatter") {
      if (StringRef(info.name) == "slice_scatter" && base.getType() == src.getType()) {
        // A slice of equal size starts at the start: bounds are clamped and steps positive.
        return src;
      }
      return {};
    }
    std::optional<Window> w = windowOf(op);
    if (!w || !w->offset.same(Dim(0)) || !isRowMajor(w->sizes, w->strides))
      return {};
    Dim covered(1), total(1);
    for (const Dim &d : w->sizes)
      covered *= d;
    for (const Dim &d : symbols_.sizes(base))
      total *= d;
    if (!covered.same(total))
      return {};
    if (src.getType() == op->getResult(0).getType())
      return src;
    return viewAs(op, src);
  }

  /// `src` reshaped to the type of the op's result.
  Value viewAs(Operation *op, Value src) {
    if (dtypeOf(src) != dtypeOf(op->getResult(0)))
      return {};
    OpBuilder b(op);
    Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
    return viewTo(b, op->getLoc(), src, symbols_.sizes(op->getResult(0)), element);
  }

  func::FuncOp func_;
  Symbols symbols_;
  Layouts layouts_;
};

class SimplifyPass : public PassWrapper<SimplifyPass, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SimplifyPass)
  StringRef getArgument() const final { return "dlc-simplify"; }
  StringRef getDescription() const final {
    return "Exact identities, views of views, scatter and gather pairs, common and dead ops";
  }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<ir::DlcDialect>(); }
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    try {
      Simplifier(func).run();
    } catch (const Error &e) {
      func.emitError(e.what());
      return signalPassFailure();
    }
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(func);
    eliminateCommonSubExpressions(rewriter, dominance, func);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace

std::unique_ptr<Pass> createSimplifyPass() { return std::make_unique<SimplifyPass>(); }

void registerGraphPasses() {
  registerPass(createDecomposePass);
  registerPass(createSimplifyPass);
  registerPass(createMaterializePass);
  registerPass(createRaiseAttentionPass);
  registerPass(createStatePartPass);
  registerPass(createFoldConvPass);
  registerPass(createChannelsLastPass);
}

} // namespace dlc::compiler
