// The third kind of value that rules are instantiated for, beside tensors and recorded values.
#include "dialects/dlc/Rules.h"
#include "runtime/op/NumberType.h"
#include "runtime/op/Ops.h"
#include "runtime/rules/Decompositions.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dlc {
namespace ir {

/// A tensor of the IR, a number, or absent.
class Val {
public:
  Val() = default;
  Val(Value v) : value(v) {}
  Val(const Number &n) : number(n) {}
  Value value;
  std::optional<Number> number;
};

namespace {

/// Where the running rule builds.
struct Scope {
  OpBuilder &b;
  Location loc;
  func::FuncOp func;
  const Symbols &symbols;
};
thread_local Scope *scope = nullptr;

} // namespace

Value materialize(OpBuilder &b, Location loc, const Dim &d, func::FuncOp func) {
  if (d.isConst())
    return b.create<arith::ConstantIndexOp>(loc, d.value());
  SmallVector<Value> symbols;
  for (BlockArgument arg : func.getArguments())
    if (auto k = func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), "dlc.symbol")) {
      symbols.resize(std::max<size_t>(symbols.size(), k.getInt() + 1));
      symbols[k.getInt()] = arg;
    }
  AffineMap map = AffineMap::get(0, static_cast<unsigned>(symbols.size()), toAffine(d, b.getContext()));
  return b.create<affine::AffineApplyOp>(loc, map, symbols);
}

Value materialize(OpBuilder &b, Location loc, const Number &n) {
  if (n.ref())
    return Value::getFromOpaquePointer(n.ref());
  if (n.category() == Category::Float)
    return b.create<arith::ConstantOp>(loc, b.getF64FloatAttr(n.toDouble()));
  if (n.category() == Category::Int)
    return b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(n.toInt()));
  return b.create<arith::ConstantOp>(loc, b.getBoolAttr(n.toBool()));
}

/// A number where the record wants a tensor (`1 - x`): a 0-d tensor that lifts nobody and loses no digit that a double
/// operand beside it keeps. Kinds that take numbers get the number.
static Value numberOperand(Scope &s, const Number &n, ParamKind kind, Span<const Arg<Val>> args) {
  Value number = materialize(s.b, s.loc, n);
  if (kind == ParamKind::TN || kind == ParamKind::TNOpt)
    return number;
  NumberType type(n.category());
  for (const Arg<Val> &a : args)
    for (const Val &v : a.values())
      if (v.value)
        if (auto tensor = dyn_cast<RankedTensorType>(v.value.getType()))
          type.beside(dtypeOf(v.value), tensor.getRank() > 0);
  const OpInfo &full = opInfo(OpId::Full);
  OpParts parts;
  parts.operands.resize(full.params.size());
  parts.operands[1].push_back(number);
  parts.attributes.push_back(s.b.getNamedAttr("dtype", TypeAttr::get(elementType(type.get(), s.b.getContext()))));
  return createOp(s.b, s.loc, full, parts)->getResult(0);
}

bool isDefined(const Val &v) { return v.value || v.number; }
TensorMeta metaOf(const Val &v) {
  if (!isDefined(v))
    return {};
  return metaOf(v.value ? v.value : materialize(scope->b, scope->loc, *v.number), scope->symbols);
}

} // namespace ir

template <> struct Builder<ir::Val> {
  static void call(const OpInfo &op, Span<const Arg<ir::Val>> args, SmallVec<ir::Val, 3> &outs);
  /// A size as a float number.
  static Number number(const Dim &d) {
    if (d.isConst())
      return Number(static_cast<double>(d.value()));
    ir::Scope &s = *ir::scope;
    Value index = ir::materialize(s.b, s.loc, d, s.func);
    Value i64 = s.b.create<arith::IndexCastOp>(s.loc, s.b.getI64Type(), index);
    Value f64 = s.b.create<arith::SIToFPOp>(s.loc, s.b.getF64Type(), i64);
    return Number::symbolic(Number(static_cast<double>(d.value())), f64.getAsOpaquePointer());
  }
};

namespace rules {
namespace {

void deliverTo(SmallVec<ir::Val, 3> &outs, ir::Val v) { outs.push_back(v); }
template <size_t N> void deliverTo(SmallVec<ir::Val, 3> &outs, std::array<ir::Val, N> r) {
  outs.append(r.begin(), r.end());
}
void deliverTo(SmallVec<ir::Val, 3> &outs, std::vector<ir::Val> r) { outs.append(r.begin(), r.end()); }

bool runRule(const OpInfo &op, Span<const Arg<ir::Val>> args, SmallVec<ir::Val, 3> &outs) {
  switch (static_cast<OpId>(op.id)) {
#define DLC_RULE(cls, fn)                                                                                              \
  case OpId::cls:                                                                                                      \
    deliverTo(outs, fn(cls##Args<ir::Val>::unpack(args)));                                                             \
    return true;
#include "runtime/rules/RuleCases.inc"
#undef DLC_RULE
  default:
    return false;
  }
}

} // namespace
} // namespace rules

void Builder<ir::Val>::call(const OpInfo &op, Span<const Arg<ir::Val>> args, SmallVec<ir::Val, 3> &outs) {
  if (!op.has(kInIr)) {
    DLC_CHECK(rules::runRule(op, args, outs), op.name, " has neither an IR form nor a rule");
    return;
  }
  ir::Scope &s = *ir::scope;
  ir::OpParts parts;
  for (size_t i = 0; i < op.params.size(); ++i) {
    const Arg<ir::Val> &a = args[i];
    SmallVector<Value, 2> &operands = parts.operands.emplace_back();
    if (!ir::isOperandKind(op.params[i].kind)) {
      if (Attribute attr = ir::attributeOf(s.b, a))
        parts.attributes.push_back(s.b.getNamedAttr(op.params[i].name, attr));
      continue;
    }
    DLC_CHECK(a.tag != ArgTag::Rng, op.name, ": a rule in the IR can't draw random numbers");
    if (a.tag == ArgTag::Num)
      operands.push_back(ir::materialize(s.b, s.loc, a.num));
    else if (a.tag == ArgTag::Dim)
      operands.push_back(ir::materialize(s.b, s.loc, a.dim, s.func));
    else if (a.tag == ArgTag::DimList)
      for (const Dim &d : a.dimList())
        operands.push_back(ir::materialize(s.b, s.loc, d, s.func));
    else
      for (const ir::Val &v : a.values())
        operands.push_back(v.value    ? v.value
                           : v.number ? ir::numberOperand(s, *v.number, op.params[i].kind, args)
                                      : s.b.create<ir::NoneOp>(s.loc, s.b.getNoneType()).getResult());
  }
  Operation *created = ir::createOp(s.b, s.loc, op, parts);
  for (Value v : created->getResults())
    outs.push_back(ir::Val(v));
}

namespace ir {

bool applyRule(OpBuilder &b, Operation *op, SmallVectorImpl<Value> &results) {
  StringRef name = op->getName().getStringRef();
  const OpInfo *info = name.consume_front("dlc.") ? findOp(Str(name.data(), name.size())) : nullptr;
  if (!info || !info->has(kHasRule))
    return false;
  auto func = op->getParentOfType<func::FuncOp>();
  Symbols symbols(func);
  Scope here{b, op->getLoc(), func, symbols};
  Scope *outer = scope;
  scope = &here;
  SmallVec<Val, 3> outs;
  bool done = false;
  try {
    Boxing<Val> boxing{[](Value v) { return isa<RankedTensorType>(v.getType()) ? Val(v) : Val(numberOf(v)); }, numberOf,
                       symbols};
    BoxedOp<Val> boxed(op, *info, boxing);
    done = rules::runRule(*info, boxed.args(), outs);
  } catch (...) {
    scope = outer;
    throw;
  }
  for (const Val &v : outs)
    results.push_back(v.value);
  scope = outer;
  return done;
}

} // namespace ir
} // namespace dlc
