// Operand segments and attribute access behind BoxedOp.
#include "dialects/dlc/BoxedOp.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dlc::ir {

const OpInfo *infoOf(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("dlc."))
    return nullptr;
  return findOp(Str(name.data(), name.size()));
}

bool isVariadicKind(ParamKind k) {
  switch (k) {
  case ParamKind::TOpt:
  case ParamKind::TOptMut:
  case ParamKind::TNOpt:
  case ParamKind::TList:
  case ParamKind::TListMut:
  case ParamKind::TOptList:
  case ParamKind::NumOpt:
  case ParamKind::SymIntOpt:
  case ParamKind::SymInts:
  case ParamKind::SymIntsOpt:
  case ParamKind::Rng:
    return true;
  default:
    return false;
  }
}

bool isOperandKind(ParamKind k) {
  return isTensorKind(k) || k == ParamKind::Num || k == ParamKind::NumOpt || k == ParamKind::Rng ||
         detail::isDimKind(k);
}

OperandRanges::OperandRanges(ValueRange operands, AttrLookup attrs, const OpInfo &info)
    : operands_(operands), info_(info) {
  unsigned multi = 0, fixed = 0;
  for (const ParamInfo &p : info.params)
    if (isOperandKind(p.kind))
      ++(isVariadicKind(p.kind) ? multi : fixed);
  ArrayRef<int32_t> segments;
  if (multi > 1)
    if (auto a = dyn_cast_or_null<DenseI32ArrayAttr>(attrs("operandSegmentSizes")))
      segments = a.asArrayRef();
  unsigned at = 0, operandParam = 0;
  for (const ParamInfo &p : info.params) {
    unsigned n = 0;
    if (isOperandKind(p.kind)) {
      if (!segments.empty())
        n = static_cast<unsigned>(segments[operandParam]);
      else
        n = isVariadicKind(p.kind) ? operands.size() - fixed : 1;
      ++operandParam;
    }
    ranges_.push_back({at, n});
    at += n;
  }
  DLC_CHECK(at == operands.size(), info.name, " has ", operands.size(), " operands, its record wants ", at);
}

Value OperandRanges::operator[](StringRef param) const {
  for (size_t i = 0; i < info_.params.size(); ++i)
    if (param == info_.params[i].name)
      return ranges_[i].second ? (*this)[i][0] : Value();
  return Value();
}

namespace detail {

bool isDimKind(ParamKind k) { return k >= ParamKind::SymInt && k <= ParamKind::SymIntsOpt; }

DType typeAttrDType(Attribute a) { return dtypeOf(cast<TypeAttr>(a).getValue()); }

Dim dimOrThrow(const Symbols &symbols, Value v, const OpInfo &info) {
  std::optional<Dim> d = symbols.dim(v);
  if (!d)
    fail(ErrorKind::Internal, info.name, ": an index operand is no expression of the symbols");
  return *d;
}

} // namespace detail

Number numberOf(Value v) {
  Type t = v.getType();
  Category c = t.isF64() || t.isF32() ? Category::Float : t.isInteger(1) ? Category::Bool : Category::Int;
  APInt i;
  APFloat f(0.0);
  if (matchPattern(v, m_ConstantInt(&i)))
    return c == Category::Bool ? Number(!i.isZero()) : Number(int64_t(i.getSExtValue()));
  if (matchPattern(v, m_ConstantFloat(&f)))
    return Number(f.convertToDouble());
  Number hint = c == Category::Float ? Number(1.0) : c == Category::Bool ? Number(true) : Number(int64_t(1));
  return Number::symbolic(hint, v.getAsOpaquePointer());
}

TensorMeta metaOf(Value v, const Symbols &symbols) {
  if (isa<RankedTensorType>(v.getType())) {
    TensorMeta m = TensorMeta::contiguous(dtypeOf(v), symbols.sizes(v));
    m.defined = true;
    return m;
  }
  TensorMeta m;
  m.dtype = numberOf(v).dtype();
  m.defined = m.wrapped = true;
  return m;
}

} // namespace dlc::ir
