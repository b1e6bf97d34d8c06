// The generated scalar functions, instantiated twice: with a builder that emits kernel.prim, and with one that counts.
#include "compiler/fusion/ScalarCode.h"
#include "runtime/core/Knobs.h"
#include "runtime/op/Ops.h"
#include "runtime/scalar/Primitives.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <array>

using namespace mlir;
using dlc::ir::kernel::StageBuilder;

namespace dlc::compiler {

//===--- Types and single steps ---===//

static scalar::Kind kindOf(DType t) {
  switch (t) {
  case DType::Bool:
    return scalar::Kind::Bool;
  case DType::U8:
    return scalar::Kind::U8;
  case DType::I8:
    return scalar::Kind::I8;
  case DType::I16:
    return scalar::Kind::I16;
  case DType::I32:
    return scalar::Kind::I32;
  case DType::I64:
    return scalar::Kind::I64;
  case DType::F64:
    return scalar::Kind::F64;
  default:
    return scalar::Kind::F32;
  }
}

static DType dtypeOfKind(scalar::Kind k) {
  for (DType t : {DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F64})
    if (kindOf(t) == k)
      return t;
  return DType::F32;
}

static bool isHalf(DType t) { return t == DType::F16 || t == DType::BF16; }
static DType computeType(DType t) { return isHalf(t) ? DType::F32 : t; }

Type scalarType(DType t, MLIRContext *c) { return t == DType::Bool ? IntegerType::get(c, 1) : memoryType(t, c); }

Type memoryType(DType t, MLIRContext *c) {
  switch (t) {
  case DType::F32:
    return Float32Type::get(c);
  case DType::F64:
    return Float64Type::get(c);
  case DType::F16:
    return Float16Type::get(c);
  case DType::BF16:
    return BFloat16Type::get(c);
  default:
    return IntegerType::get(c, static_cast<unsigned>(itemSize(t)) * 8);
  }
}

Scalar constantScalar(StageBuilder &s, DType t, double value) {
  Type type = scalarType(t, s.b.getContext());
  TypedAttr a;
  if (isFloat(t))
    a = s.b.getFloatAttr(type, t == DType::F32 ? static_cast<double>(static_cast<float>(value)) : value);
  else
    a = s.b.getIntegerAttr(type, t == DType::Bool ? value != 0 : static_cast<int64_t>(value));
  return {s.b.create<arith::ConstantOp>(s.loc, a), t};
}

Scalar primScalar(StageBuilder &s, StringRef name, ArrayRef<Scalar> operands) {
  SmallVector<Value> values;
  bool isUnsigned = false;
  for (const Scalar &x : operands) {
    values.push_back(x.value);
    isUnsigned |= x.dtype == DType::U8;
  }
  DType result =
      dtypeOfKind(scalar::primitiveResult(std::string_view(name.data(), name.size()), kindOf(operands.back().dtype)));
  Value v = s.prim(name, values, scalarType(result, s.b.getContext()));
  if (isUnsigned)
    v.getDefiningOp()->setAttr("unsigned", s.b.getUnitAttr());
  return {v, result};
}

Scalar convertScalar(StageBuilder &s, Scalar x, DType to) {
  if (x.dtype == to)
    return x;
  if (isHalf(x.dtype))
    x = {s.b.create<arith::ExtFOp>(s.loc, s.b.getF32Type(), x.value), DType::F32};
  DType middle = computeType(to);
  if (x.dtype != middle)
    x = primScalar(s, std::string("to_") + scalar::shortName(kindOf(middle)), {x});
  if (isHalf(to))
    x = {s.b.create<arith::TruncFOp>(s.loc, scalarType(to, s.b.getContext()), x.value), to};
  return x;
}

//===--- The generated functions ---===//

namespace {

bool isOne(Value v) {
  APInt i;
  return matchPattern(v, m_OneFloat()) || (matchPattern(v, m_ConstantInt(&i)) && i.isOne());
}

/// Emits primitives.
struct PrimBuilder {
  StageBuilder &stage;
  Scalar prim(StringRef name, std::initializer_list<Scalar> operands) {
    // `alpha` is 1 nearly always; the product is exact.
    if (name == "mul")
      for (size_t i : {0, 1})
        if (isOne(operands.begin()[i].value))
          return operands.begin()[1 - i];
    return primScalar(stage, name, ArrayRef<Scalar>(operands.begin(), operands.size()));
  }
  Scalar constant(Scalar like, double c) { return constantScalar(stage, like.dtype, c); }
};

/// Adds up costs: a transcendental is about twelve additions, a division four.
struct PrimCounter {
  int64_t cost = 0;
  bool divides = false;
  int prim(StringRef name, std::initializer_list<int>) {
    static const llvm::StringSet<> kCheap = {"add",    "sub",    "mul",   "neg",         "abs",        "min",
                                             "max",    "eq",     "ne",    "lt",          "le",         "gt",
                                             "ge",     "and",    "or",    "xor",         "not",        "relu",
                                             "select", "square", "isnan", "logical_and", "logical_or", "logical_not"};
    static const llvm::StringSet<> kDivisions = {"div",   "sqrt",  "reciprocal", "floor", "ceil",
                                                 "round", "trunc", "sign",       "lerp"};
    divides |= name == "floor_div" || name == "trunc_div" || name == "remainder" || name == "fmod";
    cost += kCheap.contains(name) ? 1 : kDivisions.contains(name) ? 4 : 12;
    return 0;
  }
  int constant(int, double) { return 0; }
};

namespace scalar {
template <class B, class V> auto constant(B &b, V like, double c) { return b.constant(like, c); }
#define DLC_PRIM(name)                                                                                                 \
  template <class B, class... V> auto name##_(B &b, V... v) { return b.prim(#name, {v...}); }
#include "runtime/op/ScalarPrims.inc"
#undef DLC_PRIM
} // namespace scalar

#include "runtime/op/ScalarOps.inc"

/// A boxed operand: a tensor, or a number in its place.
struct Leaf {
  Value value;
};

template <class Fn, class B, class V, size_t... I> V apply(B &b, const V *v, std::index_sequence<I...>) {
  return Fn::run(b, v[I]...);
}

struct Entry {
  OpId id;
  int arity;
  uint32_t bools;
  bool (*when)(Span<const Arg<Leaf>> a);
  std::array<uint8_t, 6> params;
  Scalar (*emit)(PrimBuilder &, const Scalar *);
  int (*count)(PrimCounter &, const int *);
};

template <class Fn>
constexpr auto kEmit =
    [](PrimBuilder &b, const Scalar *v) { return apply<Fn>(b, v, std::make_index_sequence<Fn::kArity>()); };
template <class Fn>
constexpr auto kCount =
    [](PrimCounter &b, const int *v) { return apply<Fn>(b, v, std::make_index_sequence<Fn::kArity>()); };

const Entry kEntries[] = {
#define DLC_SCALAR(cls, fn, variant, arity, bools, promotion, condition, ...)                                          \
  {OpId::cls,                                                                                                          \
   arity,                                                                                                              \
   bools,                                                                                                              \
   [](Span<const Arg<Leaf>> a) -> bool {                                                                               \
     (void)a;                                                                                                          \
     return condition;                                                                                                 \
   },                                                                                                                  \
   {__VA_ARGS__},                                                                                                      \
   kEmit<fn>,                                                                                                          \
   kCount<fn>},
#include "runtime/op/ScalarTable.inc"
#undef DLC_SCALAR
};

const Entry *findEntry(const OpInfo &info, Span<const Arg<Leaf>> args) {
  for (const Entry &e : kEntries)
    if (static_cast<uint16_t>(e.id) == info.id && e.when(args))
      return &e;
  return nullptr;
}

bool hasEntry(const OpInfo &info) {
  for (const Entry &e : kEntries)
    if (static_cast<uint16_t>(e.id) == info.id)
      return true;
  return false;
}

Leaf leafOf(Value v) { return {v}; }

/// The dtype that the operands of a comparison are brought to.
DType promotedOf(Operation *op) {
  std::optional<DType> dimensioned, zeroDim;
  for (Value v : op->getOperands())
    if (auto t = dyn_cast<RankedTensorType>(v.getType())) {
      std::optional<DType> &slot = t.getRank() ? dimensioned : zeroDim;
      slot = slot ? promoteTypes(*slot, dtypeOf(v)) : dtypeOf(v);
    }
  if (!dimensioned)
    return zeroDim ? *zeroDim : DType::F32;
  if (zeroDim && categoryOf(*zeroDim) > categoryOf(*dimensioned))
    return promoteTypes(*dimensioned, *zeroDim);
  return *dimensioned;
}

/// A constant that belongs to the shape of the computation rather than to its data, so that kernels stay shared.
bool isStructural(const Number &n) {
  double v = n.toDouble();
  return !n.ref() && v == static_cast<double>(static_cast<int64_t>(v)) && v >= -4 && v <= 4;
}

Scalar numberScalar(StageBuilder &s, const Number &n, Value value, DType to, ScalarContext &c) {
  if (isStructural(n))
    return constantScalar(s, to, n.toDouble());
  Value v = c.number(value);
  Scalar x{v, v.getType().isF64() ? DType::F64 : DType::I64};
  if (isFloat(to) && x.dtype == DType::I64)
    x = convertScalar(s, x, DType::F64);
  return convertScalar(s, x, to);
}

/// Ops whose semantics are not a scalar dag of the record but still one expression a point.
enum class Special { None, Cast, Copy, Clone, Fill, Triangle, Arange, ArangeFloat, Eye, SelectScatter };
Special specialOf(const OpInfo &info) {
  static const llvm::StringMap<Special> kSpecial = {{"cast", Special::Cast},
                                                    {"copy", Special::Copy},
                                                    {"clone", Special::Clone},
                                                    {"full", Special::Fill},
                                                    {"fill", Special::Fill},
                                                    {"full_like", Special::Fill},
                                                    {"tril", Special::Triangle},
                                                    {"triu", Special::Triangle},
                                                    {"eye", Special::Eye},
                                                    {"arange", Special::Arange},
                                                    {"arange_float", Special::ArangeFloat},
                                                    {"select_scatter", Special::SelectScatter}};
  return kSpecial.lookup(info.name);
}

/// The source where the point lies in the slice, the base elsewhere.
Scalar emitSelectScatter(Operation *op, const OperandRanges &operands, ScalarContext &c) {
  StageBuilder &s = c.stage;
  DType result = dtypeOf(op->getResult(0));
  int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  int64_t dim = op->getAttrOfType<IntegerAttr>("dim").getInt();
  unsigned d = static_cast<unsigned>(dim < 0 ? dim + rank : dim);
  Dim at = *c.symbols.dim(operands["index"]);
  if (at < 0) // a fact of this code where the index is a symbol
    at += c.symbols.sizes(op->getResult(0))[d];
  Scalar here = primScalar(s, "eq", {{c.index(d), DType::I64}, {c.size(at), DType::I64}});
  Scalar base = convertScalar(s, c.read(operands["self"]), computeType(result)),
         src = convertScalar(s, c.read(operands["src"]), computeType(result));
  return convertScalar(s, primScalar(s, "select", {here, src, base}), result);
}

Scalar emitSpecial(Operation *op, const OpInfo &info, ScalarContext &c) {
  StageBuilder &s = c.stage;
  DType result = dtypeOf(op->getResult(0));
  OperandRanges operands(op, info);
  switch (specialOf(info)) {
  case Special::Cast:
  case Special::Clone:
    return convertScalar(s, c.read(op->getOperand(0)), result);
  case Special::Copy:
    return convertScalar(s, c.read(operands["src"]), result);
  case Special::Fill: {
    Value value = operands[StringRef(info.name) == "fill" ? "value" : "fill_value"];
    if (isa<RankedTensorType>(value.getType()))
      return convertScalar(s, c.read(value), result);
    return convertScalar(s, numberScalar(s, numberOf(value), value, computeType(result), c), result);
  }
  case Special::Triangle: {
    int64_t diagonal = op->getAttrOfType<IntegerAttr>("diagonal").getInt();
    unsigned rank = static_cast<unsigned>(cast<RankedTensorType>(op->getResult(0).getType()).getRank());
    Scalar row{c.index(rank - 2), DType::I64}, column{c.index(rank - 1), DType::I64};
    Scalar limit =
        diagonal ? primScalar(s, "add", {row, constantScalar(s, DType::I64, static_cast<double>(diagonal))}) : row;
    Scalar keep = primScalar(s, StringRef(info.name) == "tril" ? "le" : "ge", {column, limit});
    Scalar x = c.read(op->getOperand(0));
    return convertScalar(
        s,
        primScalar(s, "select",
                   {keep, convertScalar(s, x, computeType(result)), constantScalar(s, computeType(result), 0)}),
        result);
  }
  case Special::Arange: {
    auto bound = [&](StringRef name) { return Scalar{c.size(*c.symbols.dim(operands[name])), DType::I64}; };
    Scalar x = primScalar(s, "mul", {{c.index(0), DType::I64}, bound("step")});
    return convertScalar(s, primScalar(s, "add", {bound("start"), x}), result);
  }
  case Special::ArangeFloat: {
    auto attribute = [&](StringRef name) {
      return constantScalar(s, DType::F64, op->getAttrOfType<FloatAttr>(name).getValueAsDouble());
    };
    Scalar x = primScalar(s, "mul", {convertScalar(s, {c.index(0), DType::I64}, DType::F64), attribute("step")});
    return convertScalar(s, primScalar(s, "add", {attribute("start"), x}), result);
  }
  case Special::SelectScatter:
    return emitSelectScatter(op, operands, c);
  case Special::Eye: {
    Scalar same = primScalar(s, "eq", {{c.index(0), DType::I64}, {c.index(1), DType::I64}});
    return convertScalar(s, same, result);
  }
  default:
    fail(ErrorKind::Internal, "no scalar code for ", info.name);
  }
}

} // namespace

bool hasScalarCode(Operation *op, const OpInfo &info) {
  if (op->getNumResults() != 1)
    return false;
  if (specialOf(info) != Special::None)
    return true;
  return info.kind == OpKind::Elementwise && hasEntry(info);
}

Scalar emitScalar(Operation *op, const OpInfo &info, ScalarContext &c) {
  if (specialOf(info) != Special::None)
    return emitSpecial(op, info, c);
  BoxedOp<Leaf> boxed(op, info, {leafOf, numberOf, c.symbols});
  const Entry *e = findEntry(info, boxed.args());
  DLC_CHECK(e, "no variant of the scalar code of ", info.name);
  DType result = dtypeOf(op->getResult(0));
  DType common = result == DType::Bool ? promotedOf(op) : result;
  for (const Arg<Leaf> &a : boxed.args()) // a number of a higher kind than the tensors lifts what is compared
    if (result == DType::Bool && a.tag == ArgTag::Value && !isa<RankedTensorType>(a.value->value.getType())) {
      Type t = a.value->value.getType();
      DType number = t.isF64() ? defaultDType() : t.isInteger(1) ? DType::Bool : DType::I64;
      if (categoryOf(number) > categoryOf(common))
        common = number;
    }
  DType compute = computeType(common);
  PrimBuilder builder{c.stage};
  Scalar operands[6];
  OperandRanges ranges(op, info);
  for (int i = 0; i < e->arity; ++i) {
    const Arg<Leaf> &a = boxed.args()[e->params[i]];
    if (a.tag == ArgTag::Value && isa<RankedTensorType>(a.value->value.getType())) {
      Scalar x = c.read(a.value->value);
      if (isHalf(common) && x.dtype != common &&
          !(e->bools >> i & 1)) // a 0-d float32 beside half tensors is rounded to their type first
        x = convertScalar(c.stage, x, common);
      operands[i] = convertScalar(c.stage, x, e->bools >> i & 1 ? DType::Bool : compute);
    } else if (a.tag == ArgTag::Value)
      operands[i] = numberScalar(c.stage, numberOf(a.value->value), a.value->value, compute, c);
    else if (a.tag == ArgTag::Num)
      operands[i] = numberScalar(c.stage, a.num, ranges[e->params[i]][0], compute, c);
    else
      operands[i] = constantScalar(c.stage, compute, a.tag == ArgTag::Float ? a.f : static_cast<double>(a.i));
  }
  Scalar x = e->emit(builder, operands);
  if (knobs().plantBug == info.name) // a miscompilation for the fuzzer's own test
    x = primScalar(c.stage, x.dtype == DType::Bool ? "not" : "neg", {x});
  return convertScalar(c.stage, x, result);
}

ScalarCost scalarCost(Operation *op, const OpInfo &info, const Symbols &symbols) {
  if (specialOf(info) != Special::None)
    return {1, false};
  BoxedOp<Leaf> boxed(op, info, {leafOf, numberOf, symbols});
  const Entry *e = findEntry(info, boxed.args());
  if (!e)
    return {12, true};
  PrimCounter counter;
  int zeros[6] = {};
  e->count(counter, zeros);
  return {counter.cost, counter.divides && !isFloat(dtypeOf(op->getResult(0)))};
}

} // namespace dlc::compiler
