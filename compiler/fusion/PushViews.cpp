// Slices of computed values: f(x)[i] becomes f(x[i]), so that the slice reads memory that is there instead of asking
// for the whole of f(x). Done where every use of f(x) is a slice.
#include "compiler/fusion/Contract.h"
#include "compiler/fusion/FusePass.h"
#include "compiler/fusion/Group.h"
#include "compiler/fusion/ScalarCode.h"
#include "compiler/graph/StatePart.h"
#include "dialects/dlc/Rules.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

constexpr int64_t kMaxCost = 4;
constexpr size_t kMaxSlices = 8;

class Pusher {
public:
  explicit Pusher(func::FuncOp func) : func_(func), symbols_(func) {}

  void run() {
    splitCreations();
    // A push may free the way for another one: f(g(x))[i].
    for (bool changed = true; changed;) {
      changed = false;
      SmallVector<Operation *> slices;
      for (Operation &op : func_.getBody().front())
        if (isSlice(&op))
          slices.push_back(&op);
      for (Operation *slice : slices)
        changed |= push(slice);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func_.getBody().front())))
        if (isOpTriviallyDead(&op))
          op.erase();
    }
  }

private:
  static bool isSlice(Operation *op) {
    StringRef name = op->getName().getStringRef();
    return name == "dlc.select" || name == "dlc.slice";
  }

  static bool isPointView(Operation *op) {
    const OpInfo *info = op ? infoOf(op) : nullptr;
    return info && info->kind == OpKind::View && keepsPoints(*info);
  }

  /// A tensor made from nothing belongs to each of its users: one loop index each instead of memory.
  void splitCreations() {
    for (Operation &op : llvm::make_early_inc_range(func_.getBody().front())) {
      const OpInfo *info = infoOf(&op);
      if (!info || info->kind != OpKind::Creation || !hasScalarCode(&op, *info))
        continue;
      OpBuilder b(&op);
      while (!op.use_empty() && !op.getResult(0).hasOneUse())
        op.getResult(0).use_begin()->set(b.clone(op)->getResult(0));
    }
  }

  /// Counts the slices that `v` reaches through views; false if anything else uses it.
  bool onlySliced(Value v, size_t &slices) {
    for (Operation *user : v.getUsers()) {
      if (isSlice(user))
        ++slices;
      else if (!isPointView(user) || !onlySliced(user->getResult(0), slices))
        return false;
    }
    return true;
  }

  bool push(Operation *slice) {
    SmallVector<Operation *> chain{slice};
    Operation *point = slice->getOperand(0).getDefiningOp();
    while (isPointView(point)) {
      chain.push_back(point);
      point = point->getOperand(0).getDefiningOp();
    }
    const OpInfo *info = point ? infoOf(point) : nullptr;
    size_t slices = 0;
    if (!info || info->kind != OpKind::Elementwise || !hasScalarCode(point, *info) ||
        scalarCost(point, *info, symbols_).cost > kMaxCost || scalarCost(point, *info, symbols_).mayFail ||
        !onlySliced(point->getResult(0), slices) || slices > kMaxSlices)
      return false;
    if (llvm::any_of(point->getOperands(), [&](Value v) { return isGeneratedProduct(v); }))
      return false;
    OpBuilder b(slice);
    Type pointType = point->getResult(0).getType();
    IRMapping map;
    for (Value v : point->getOperands()) {
      if (!isa<RankedTensorType>(v.getType()) || map.contains(v))
        continue;
      map.map(v, through(b, expanded(b, v, pointType), chain));
    }
    Operation *moved = b.clone(*point, map);
    auto sliced = cast<RankedTensorType>(slice->getResult(0).getType());
    moved->getResult(0).setType(sliced);
    slice->getResult(0).replaceAllUsesWith(moved->getResult(0));
    slice->erase();
    return true;
  }

  /// A product of which the point op is to be the epilogue, for all slices at once; perhaps after other point ops.
  bool isGeneratedProduct(Value v, unsigned depth = 0) {
    Operation *product = v.getDefiningOp();
    while (isPointView(product))
      product = product->getOperand(0).getDefiningOp();
    const OpInfo *info = product ? infoOf(product) : nullptr;
    if (info && info->kind == OpKind::Elementwise && depth < 4)
      return llvm::any_of(product->getOperands(), [&](Value o) { return isGeneratedProduct(o, depth + 1); });
    if (!info || info->kind != OpKind::Contraction)
      return false;
    if (isLargeProduct(symbols_.sizes(product->getResult(0))))
      return true;
    Value weight = product->getOperand(product->getNumOperands() - 1);
    while (Operation *view = weight.getDefiningOp()) {
      if (!isPointView(view))
        return false;
      weight = view->getOperand(0);
    }
    return isState(func_, weight);
  }

  /// `v` broadcast to the sizes of `like`.
  Value expanded(OpBuilder &b, Value v, Type like) {
    if (same(symbols_.sizes(v), symbols_.sizes(like)))
      return v;
    ir::OpParts parts;
    parts.operands.push_back({v});
    SmallVector<Value, 2> sizes;
    for (const Dim &d : symbols_.sizes(like))
      sizes.push_back(ir::materialize(b, v.getLoc(), d, func_));
    parts.operands.push_back(sizes);
    return ir::createOp(b, v.getLoc(), *findOp("expand"), parts, {retyped(like, v)})->getResult(0);
  }

  static Type retyped(Type like, Value v) {
    auto t = cast<RankedTensorType>(like);
    return RankedTensorType::get(t.getShape(), cast<RankedTensorType>(v.getType()).getElementType(), t.getEncoding());
  }

  /// The views of the chain (the slice first) applied to `v`.
  Value through(OpBuilder &b, Value v, ArrayRef<Operation *> chain) {
    for (Operation *view : llvm::reverse(chain)) {
      Operation *copy = b.clone(*view);
      copy->setOperand(0, v);
      copy->getResult(0).setType(retyped(view->getResult(0).getType(), v));
      v = copy->getResult(0);
    }
    return v;
  }

  func::FuncOp func_;
  Symbols symbols_;
};

class PushViewsPass : public PassWrapper<PushViewsPass, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PushViewsPass)
  StringRef getArgument() const final { return "dlc-push-views"; }
  StringRef getDescription() const final { return "Slice the operands of point ops instead of their results"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<ir::DlcDialect>(); }
  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    try {
      Pusher(getOperation()).run();
    } catch (const Error &e) {
      getOperation().emitError(e.what());
      signalPassFailure();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createPushViewsPass() { return std::make_unique<PushViewsPass>(); }

} // namespace dlc::compiler
