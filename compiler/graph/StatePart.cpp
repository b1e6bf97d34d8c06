// The part of a function that follows from its state arguments alone becomes functions of their own, which run only
// when a state argument has changed: weights folded, joined or transposed, masks and tables of large size. What is
// cheap where it is used stays there. Runs at the end of phase `simplified`.
#include "compiler/graph/Layouts.h"
#include "compiler/graph/Passes.h"
#include "compiler/graph/StatePart.h"
#include "dialects/dlc/DlcDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace dlc::compiler {

func::FuncOp addDerivedFunction(func::FuncOp func, Type result, ArrayRef<Value> from, Value &argument) {
  MLIRContext *c = func.getContext();
  SmallVector<int64_t> sources;
  SmallVector<Type> types;
  for (Value v : from) {
    auto arg = cast<BlockArgument>(v);
    sources.push_back(derivedSourceOf(func, arg));
    types.push_back(v.getType());
  }
  auto module = func->getParentOfType<ModuleOp>();
  SymbolTable table(module);
  OpBuilder b(func);
  b.setInsertionPointAfter(func);
  auto made =
      b.create<func::FuncOp>(func.getLoc(), (func.getName() + "_state").str(), b.getFunctionType(types, {result}));
  made->setAttr("dlc.symbols", b.getDenseI64ArrayAttr({}));
  table.insert(made);
  made.addEntryBlock();
  for (size_t k = 0; k < from.size(); ++k)
    if (Attribute strides = func.getArgAttr(cast<BlockArgument>(from[k]).getArgNumber(), "dlc.strides"))
      made.setArgAttr(static_cast<unsigned>(k), "dlc.strides", withoutSymbols(cast<AffineMapAttr>(strides)));
  unsigned at = func.getNumArguments();
  NamedAttribute attrs[] = {b.getNamedAttr(kDerivedAttr, FlatSymbolRefAttr::get(made)),
                            b.getNamedAttr(kFromAttr, b.getDenseI64ArrayAttr(sources))};
  (void)func.insertArgument(at, result, DictionaryAttr::get(c, attrs), func.getLoc());
  argument = func.getArgument(at);
  return made;
}

bool isDerived(func::FuncOp func, BlockArgument arg) {
  return static_cast<bool>(func.getArgAttr(arg.getArgNumber(), kDerivedAttr));
}

bool isState(func::FuncOp func, Value v) {
  auto arg = dyn_cast<BlockArgument>(v);
  if (!arg || !isa<RankedTensorType>(v.getType()))
    return false;
  if (isDerived(func, arg))
    return true;
  auto strides = func.getArgAttrOfType<AffineMapAttr>(arg.getArgNumber(), "dlc.strides");
  bool fixed = !strides || llvm::all_of(strides.getValue().getResults(), llvm::IsaPred<AffineConstantExpr>);
  return fixed && cast<RankedTensorType>(v.getType()).hasStaticShape() &&
         func.getArgAttr(arg.getArgNumber(), kStateAttr);
}

int64_t derivedSourceOf(func::FuncOp func, BlockArgument arg) {
  int64_t inputs = 0, derived = 0;
  for (BlockArgument a : func.getArguments()) {
    if (a == arg)
      return isDerived(func, a) ? ~derived : inputs;
    if (isDerived(func, a))
      ++derived;
    else if (isa<RankedTensorType>(a.getType()))
      ++inputs;
  }
  fail(ErrorKind::Internal, "an argument of another function");
}

AffineMapAttr withoutSymbols(AffineMapAttr map) {
  AffineMap m = map.getValue();
  return AffineMapAttr::get(AffineMap::get(0, 0, m.getResults(), map.getContext()));
}

namespace {

/// Results that are at least this large are worth their memory and a kernel.
constexpr int64_t kLargeBytes = 64 << 10;
/// A result this many times larger than what it follows from is computed where it is used.
constexpr int64_t kMaxGrowth = 4;

class StatePart {
public:
  explicit StatePart(func::FuncOp func)
      : func_(func), block_(func.getBody().front()), symbols_(func), layouts_(symbols_) {
    setFunctionLayouts(func, layouts_);
  }

  void run() {
    for (BlockArgument arg : func_.getArguments())
      if (isState(func_, arg))
        bytes_[arg] = bytesOf(arg.getType());
    if (bytes_.empty())
      return;
    for (Operation &op : block_)
      if (follows(&op))
        for (Value v : op.getResults())
          bytes_[v] = std::max<int64_t>(sourceBytes(&op), 1);
    SmallVector<Value> roots;
    for (Operation &op : block_)
      if (op.getNumResults() == 1 && bytes_.count(op.getResult(0)) && isWorthKeeping(&op))
        roots.push_back(op.getResult(0));
    for (Value v : roots)
      outline(v);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block_)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

private:
  static int64_t bytesOf(Type t) {
    auto tensor = cast<RankedTensorType>(t);
    return tensor.getNumElements() * static_cast<int64_t>(itemSize(dtypeOf(tensor)));
  }

  int64_t sourceBytes(Operation *op) {
    int64_t sum = 0;
    for (Value v : op->getOperands())
      sum += bytes_.lookup(v);
    return sum;
  }

  /// A value that is the same in every call: state, a constant, or made from nothing.
  bool isFixed(Value v) {
    if (bytes_.count(v))
      return true;
    Operation *op = v.getDefiningOp();
    if (!op)
      return false;
    if (!isa<RankedTensorType>(v.getType()))
      return op->getNumOperands() == 0 && isMemoryEffectFree(op);
    const OpInfo *info = infoOf(op);
    return info && info->kind == OpKind::Creation && isPlain(op, *info) &&
           llvm::all_of(op->getOperands(), [&](Value o) { return isFixed(o); });
  }

  /// Cannot fail, draws nothing, writes nothing, and its sizes are known.
  static bool isPlain(Operation *op, const OpInfo &info) {
    if (info.has(kMutates) || info.has(kRandom) || info.has(kDataDependent) || op->getNumResults() != 1)
      return false;
    auto t = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!t || !t.hasStaticShape())
      return false;
    return info.kind != OpKind::Index && info.kind != OpKind::Random && info.kind != OpKind::Composite &&
           (info.kind != OpKind::Elementwise || isFloat(dtypeOf(t)));
  }

  bool follows(Operation *op) {
    const OpInfo *info = infoOf(op);
    if (!info || !isPlain(op, *info))
      return false;
    bool any = false;
    for (Value v : op->getOperands()) {
      any |= bytes_.count(v) != 0;
      if (!isFixed(v))
        return false;
    }
    return any && bytesOf(op->getResult(0).getType()) <= kMaxGrowth * sourceBytes(op);
  }

  /// Users outside of the state part, through views.
  void outsideUsers(Value v, SmallVectorImpl<Operation *> &users) {
    for (Operation *u : v.getUsers()) {
      if (layouts_.isFreeView(u))
        outsideUsers(u->getResult(0), users);
      else if (u->getNumResults() == 0 || !bytes_.count(u->getResult(0)))
        users.push_back(u);
    }
  }

  bool isWorthKeeping(Operation *op) {
    Value v = op->getResult(0);
    if (layouts_.isFreeView(op))
      return false;
    SmallVector<Operation *> users;
    outsideUsers(v, users);
    if (users.empty())
      return false;
    if (bytesOf(v.getType()) >= kLargeBytes || !isCheap(op))
      return true;
    return llvm::any_of(users, [](Operation *u) {
      const OpInfo *info = infoOf(u);
      return info && (info->kind == OpKind::Contraction || info->kind == OpKind::Structured);
    });
  }

  static bool isCheap(Operation *op) {
    OpKind k = infoOf(op)->kind;
    return k == OpKind::Elementwise || k == OpKind::Creation;
  }

  /// `v` becomes an argument; what it needs that is neither state nor outlined already moves along.
  void outline(Value v) {
    SmallVector<Operation *> slice;
    SmallVector<Value> from;
    collect(v.getDefiningOp(), slice, from);
    Value argument;
    func::FuncOp made = addDerivedFunction(func_, v.getType(), from, argument);
    IRMapping map;
    for (size_t k = 0; k < from.size(); ++k)
      map.map(from[k], made.getArgument(static_cast<unsigned>(k)));
    OpBuilder b = OpBuilder::atBlockEnd(&made.getBody().front());
    for (Operation *op : slice)
      b.clone(*op, map);
    b.create<func::ReturnOp>(v.getLoc(), map.lookup(v));
    v.replaceAllUsesWith(argument);
  }

  void collect(Operation *op, SmallVectorImpl<Operation *> &slice, SmallVectorImpl<Value> &from) {
    if (llvm::is_contained(slice, op))
      return;
    for (Value v : op->getOperands()) {
      if (Operation *def = v.getDefiningOp())
        collect(def, slice, from);
      else if (!llvm::is_contained(from, v))
        from.push_back(v);
    }
    slice.push_back(op);
  }

  func::FuncOp func_;
  Block &block_;
  Symbols symbols_;
  Layouts layouts_;
  DenseMap<Value, int64_t> bytes_; // of values that follow from state: of the state that they follow from
};

class StatePartPass : public PassWrapper<StatePartPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StatePartPass)
  StringRef getArgument() const final { return "dlc-state-part"; }
  StringRef getDescription() const final { return "What follows from state alone as functions of its own"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<ir::DlcDialect>(); }
  void runOnOperation() override {
    for (auto func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!func.isDeclaration())
        StatePart(func).run();
  }
};

} // namespace

std::unique_ptr<Pass> createStatePartPass() { return std::make_unique<StatePartPass>(); }

} // namespace dlc::compiler
