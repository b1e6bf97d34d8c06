// Attention written out, softmax(q @ k.T * scale, masked) @ v, becomes the one-pass op; so does its gradient, when both
// are in one function. Runs on simplified functions, before composites are decomposed.
#include "compiler/graph/Passes.h"
#include "compiler/graph/RaiseParts.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

/// What stands between the first product and the softmax.
struct Scores {
  Operation *product = nullptr;   ///< q @ k.T of matrices in batches
  Value scale;                    ///< a number that multiplies the scores, or
  bool divides = false;           ///< divides them
  Value hidden, seen, bias, fill; ///< at most one of the first three; `fill` replaces the scores of hidden keys
  Dims sizes;                     ///< (batch, heads, queries, keys) or (batch, queries, keys)
};

/// The ops of one attention and of its gradient.
struct Attention {
  Operation *softmax = nullptr;
  Scores scores;
  Value p;                        ///< the probabilities as `output` reads them
  Operation *output = nullptr;    ///< p @ v
  Operation *gradP = nullptr;     ///< the gradient of the probabilities; null without a gradient
  Operation *gradValue = nullptr; ///< p.T @ the gradient of the output
  Operation *gradSoftmax = nullptr;
  Value gradScores;          ///< that of the first product
  Value gradScale, gradFill; ///< what multiplies it, and what it is where scores are replaced; null: 1, 0
  Operation *gradQuery = nullptr, *gradKey = nullptr;
};

class Raiser {
public:
  explicit Raiser(func::FuncOp func) : func_(func), symbols_(func), parts_(func, symbols_) {}

  void run() {
    SmallVector<Operation *> found;
    for (Operation &op : func_.getBody().front())
      if (isOp(&op, "softmax"))
        found.push_back(&op);
    for (Operation *op : found) {
      Attention a;
      a.softmax = op;
      if (matchScores(op, a.scores) && matchOutput(a))
        rewrite(a);
    }
  }

private:
  //===--- Matching ---===//

  bool matchScores(Operation *softmax, Scores &s) {
    Value x = softmax->getOperand(0);
    s.sizes = symbols_.sizes(x);
    int64_t rank = static_cast<int64_t>(s.sizes.size()), dim = softmax->getAttrOfType<IntegerAttr>("dim").getInt();
    DType type = dtypeOf(x);
    if ((rank != 3 && rank != 4) || (dim != -1 && dim != rank - 1) || (type != DType::F32 && type != DType::F64) ||
        dtypeOf(softmax->getResult(0)) != type)
      return false;
    x = matchMask(x, s);
    x = matchScale(x, s);
    if (rank == 4) {
      Operation *view = onlyUse(x) ? x.getDefiningOp() : nullptr;
      if (!isOp(view, "view"))
        return false;
      x = view->getOperand(0);
    }
    if (!onlyUse(x) || !isOp(x.getDefiningOp(), "bmm"))
      return false;
    s.product = x.getDefiningOp();
    return isFlat(x, s.sizes);
  }

  static bool onlyUse(Value v) { return v.getDefiningOp() && v.hasOneUse(); }
  static bool isTensor(Value v) { return v && isa<RankedTensorType>(v.getType()); }

  /// masked_fill, where, or a sum with a tensor; gives what it masks.
  Value matchMask(Value x, Scores &s) {
    Operation *op = onlyUse(x) ? x.getDefiningOp() : nullptr;
    const OpInfo *info = op ? infoOf(op) : nullptr;
    if (!info)
      return x;
    OperandRanges in(op, *info);
    if (isOp(op, "masked_fill") && !isTensor(in["value"]) && keepsType(in["self"], x)) {
      s.hidden = in["mask"], s.fill = in["value"];
      return in["self"];
    }
    if (isOp(op, "where") && dtypeOf(in["condition"]) == DType::Bool) {
      Value self = in["self"], other = in["other"];
      if (isTensor(self) && !isTensor(other) && keepsType(self, x)) {
        s.seen = in["condition"], s.fill = other;
        return self;
      }
      if (isTensor(other) && !isTensor(self) && keepsType(other, x)) {
        s.hidden = in["condition"], s.fill = self;
        return other;
      }
    }
    if (isOp(op, "add") && isTensor(in["other"]) && numberOf(in["alpha"]).isConst(1)) {
      Value self = in["self"], other = in["other"];
      if (dtypeOf(self) != dtypeOf(other))
        return x;
      // Either may be the mask; the scores end in the product.
      for (auto [scores, bias] : {std::pair(self, other), std::pair(other, self)}) {
        Scores probe;
        if (keepsType(scores, x) && leadsToProduct(scores, probe)) {
          s.bias = bias;
          return scores;
        }
      }
    }
    return x;
  }

  static bool keepsType(Value v, Value x) { return isTensor(v) && v.getType() == x.getType(); }

  bool leadsToProduct(Value v, Scores &probe) {
    v = matchScale(v, probe);
    Operation *op = onlyUse(v) ? v.getDefiningOp() : nullptr;
    return isOp(op, "bmm") ||
           (isOp(op, "view") && onlyUse(op->getOperand(0)) && isOp(op->getOperand(0).getDefiningOp(), "bmm"));
  }

  Value matchScale(Value x, Scores &s) {
    Operation *op = onlyUse(x) ? x.getDefiningOp() : nullptr;
    bool times = isOp(op, "mul"), over = isOp(op, "div") && !op->getAttr("rounding_mode");
    if (!times && !over)
      return x;
    Value self = op->getOperand(0), number = op->getOperand(1);
    if (!keepsType(self, x) || isTensor(number))
      return x;
    s.scale = number;
    s.divides = over;
    return self;
  }

  /// The product with the values, and what else reads the probabilities: nothing, or all of the gradient.
  bool matchOutput(Attention &a) {
    bool flat = a.scores.sizes.size() == 3;
    a.p = a.softmax->getResult(0);
    Operation *view = nullptr;
    for (Operation *user : a.p.getUsers()) {
      if (isOp(user, "softmax_backward") && !a.gradSoftmax && user->getOperand(1) == a.p && user->getOperand(0) != a.p)
        a.gradSoftmax = user;
      else if (!flat && isOp(user, "view") && !view)
        view = user;
      else if (!flat || isOp(user, "softmax_backward"))
        return false;
    }
    if (!flat) {
      if (!view)
        return false;
      a.p = view->getResult(0);
    }
    Operation *transposed = nullptr;
    for (Operation *user : a.p.getUsers()) {
      if (isOp(user, "bmm") && !a.output && user->getOperand(0) == a.p && user->getOperand(1) != a.p)
        a.output = user;
      else if (isSwap(user) && !transposed)
        transposed = user;
      else if (user != a.gradSoftmax)
        return false;
    }
    if (!a.output || !isFlat(a.p, a.scores.sizes))
      return false;
    if (!a.gradSoftmax && !transposed)
      return true;
    return a.gradSoftmax && transposed && matchGradient(a, transposed);
  }

  /// Batches and heads are one dimension of `v`, the others are those of the scores.
  bool isFlat(Value v, const Dims &scores) {
    Dims sizes = symbols_.sizes(v);
    return sizes.size() == 3 && sizes[1].same(scores[scores.size() - 2]) && sizes[2].same(scores.back());
  }

  /// transpose of the last two of three dims.
  static bool isSwap(Operation *op) {
    if (!isOp(op, "transpose") || cast<RankedTensorType>(op->getOperand(0).getType()).getRank() != 3)
      return false;
    auto dim = [&](StringRef name) { return (op->getAttrOfType<IntegerAttr>(name).getInt() + 3) % 3; };
    return dim("dim0") + dim("dim1") == 3;
  }
  static bool isSwapOf(Value v, Value of) {
    return v.getDefiningOp() && isSwap(v.getDefiningOp()) && v.getDefiningOp()->getOperand(0) == of;
  }
  /// v is x with its last two dims swapped, whichever of them was made from the other.
  static bool areSwapped(Value v, Value x) { return isSwapOf(v, x) || isSwapOf(x, v); }

  bool matchGradient(Attention &a, Operation *transposed) {
    Value pT = transposed->getResult(0), q = a.scores.product->getOperand(0), kT = a.scores.product->getOperand(1);
    if (!onlyUse(pT) || !isOp(*pT.user_begin(), "bmm") || (*pT.user_begin())->getOperand(0) != pT)
      return false;
    a.gradValue = *pT.user_begin();
    Value g = a.gradValue->getOperand(1), gp = a.gradSoftmax->getOperand(0);
    if (onlyUse(gp) && isOp(gp.getDefiningOp(), "view"))
      gp = gp.getDefiningOp()->getOperand(0);
    a.gradP = onlyUse(gp) && isOp(gp.getDefiningOp(), "bmm") ? gp.getDefiningOp() : nullptr;
    if (!a.gradP || a.gradP->getOperand(0) != g || !areSwapped(a.gradP->getOperand(1), a.output->getOperand(1)))
      return false;
    Value ds = matchGradMask(a, a.gradSoftmax->getResult(0));
    ds = ds ? matchGradScale(a, ds) : ds;
    if (!ds)
      return false;
    if (a.scores.sizes.size() == 4) {
      if (!onlyUse(ds) || !isOp(*ds.user_begin(), "view"))
        return false;
      ds = (*ds.user_begin())->getResult(0);
    }
    a.gradScores = ds;
    if (!isFlat(ds, a.scores.sizes))
      return false;
    for (Operation *user : ds.getUsers()) {
      if (!isOp(user, "bmm"))
        return false;
      if (!a.gradQuery && user->getOperand(0) == ds && areSwapped(user->getOperand(1), kT))
        a.gradQuery = user;
      else if (!a.gradKey && user->getOperand(1) == ds && areSwapped(user->getOperand(0), q))
        a.gradKey = user;
      else
        return false;
    }
    return a.gradQuery || a.gradKey;
  }

  /// A number that can be had anywhere in the function.
  static bool isPlainNumber(Value v) { return !isTensor(v) && (isa<BlockArgument>(v) || !numberOf(v).ref()); }

  /// Past the op that keeps gradients from masked scores; null if there should be one and is none.
  Value matchGradMask(Attention &a, Value ds) {
    const Scores &s = a.scores;
    if (!s.hidden && !s.seen)
      return s.bias && !onlyUse(ds) ? Value() : ds;
    Operation *op = onlyUse(ds) ? *ds.user_begin() : nullptr;
    if (!op)
      return {};
    OperandRanges in(op, *infoOf(op));
    if (isOp(op, "masked_fill"))
      a.gradFill = s.hidden == in["mask"] && in["self"] == ds ? in["value"] : Value();
    else if (isOp(op, "where") && s.seen)
      a.gradFill = in["condition"] == s.seen && in["self"] == ds ? in["other"] : Value();
    else if (isOp(op, "where"))
      a.gradFill = in["condition"] == s.hidden && in["other"] == ds ? in["self"] : Value();
    return a.gradFill && isPlainNumber(a.gradFill) ? op->getResult(0) : Value();
  }

  Value matchGradScale(Attention &a, Value ds) {
    const Scores &s = a.scores;
    if (!s.scale)
      return ds;
    Operation *op = onlyUse(ds) ? *ds.user_begin() : nullptr;
    if (!isOp(op, s.divides ? "div" : "mul") || op->getOperand(0) != ds || !isPlainNumber(op->getOperand(1)) ||
        op->getAttr("rounding_mode"))
      return {};
    a.gradScale = op->getOperand(1);
    return op->getResult(0);
  }

  //===--- Rewriting ---===//

  void rewrite(Attention &a) {
    const Scores &s = a.scores;
    bool flat = s.sizes.size() == 3;
    Dims q = symbols_.sizes(s.product->getOperand(0)), v = symbols_.sizes(a.output->getOperand(1));
    Dim batch = s.sizes[0], heads = flat ? Dim(1) : s.sizes[1], queries = q[1], keys = v[1];
    parts_.at(a.output);
    RaisedAttention call;
    call.query = parts_.unflatten(s.product->getOperand(0), Dims{batch, heads, queries, q[2]});
    call.key = parts_.unflattenSwapped(s.product->getOperand(1), Dims{batch, heads, keys, q[2]});
    call.value = parts_.unflatten(a.output->getOperand(1), Dims{batch, heads, keys, v[2]});
    if (Value mask = s.hidden ? s.hidden : s.seen ? s.seen : s.bias)
      call.mask = parts_.maskOf(mask, flat, static_cast<bool>(s.hidden));
    call.divides = s.divides;
    call.scale = s.scale ? s.scale : parts_.number(1);
    call.fill = s.fill ? s.fill : parts_.number(-std::numeric_limits<double>::infinity());
    Operation *forward = parts_.attention(call);
    Value out = parts_.swapHeads(forward->getResult(0));
    if (a.gradSoftmax)
      rewriteGradient(a, call, forward);
    parts_.at(a.output);
    parts_.replaceFlat(a.output, out, false);
  }

  void rewriteGradient(Attention &a, const RaisedAttention &call, Operation *forward) {
    Dims sizes = symbols_.sizes(forward->getResult(0));
    parts_.at(first(a));
    Value g = parts_.unflatten(a.gradValue->getOperand(1), Dims{sizes[0], sizes[2], sizes[1], sizes[3]});
    Operation *grad = parts_.attentionBackward(call, parts_.swapHeads(g), forward,
                                               a.gradScale ? parts_.again(a.gradScale) : parts_.number(1),
                                               a.gradFill ? parts_.again(a.gradFill) : parts_.number(0));
    if (a.gradQuery)
      parts_.replaceFlat(a.gradQuery, parts_.swapHeads(grad->getResult(0)), false);
    if (a.gradKey) // the gradient of k.T
      parts_.replaceFlat(a.gradKey, parts_.swapHeads(grad->getResult(1)), true);
    parts_.replaceFlat(a.gradValue, parts_.swapHeads(grad->getResult(2)), false);
  }

  /// The first of the ops whose results are replaced: the gradient's operands are there, and its results early enough.
  Operation *first(const Attention &a) {
    Operation *op = a.gradValue;
    for (Operation *other : {a.gradQuery, a.gradKey})
      if (other && other->isBeforeInBlock(op))
        op = other;
    return op;
  }

  func::FuncOp func_;
  Symbols symbols_;
  RaiseParts parts_;
};

class RaiseAttentionPass : public PassWrapper<RaiseAttentionPass, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RaiseAttentionPass)
  StringRef getArgument() const final { return "dlc-raise-attention"; }
  StringRef getDescription() const final { return "Products around a softmax become attention in one pass"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<ir::DlcDialect>(); }
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isDeclaration())
      return;
    try {
      Raiser(func).run();
    } catch (const Error &e) {
      func.emitError(e.what());
      return signalPassFailure();
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace

std::unique_ptr<Pass> createRaiseAttentionPass() { return std::make_unique<RaiseAttentionPass>(); }

} // namespace dlc::compiler
