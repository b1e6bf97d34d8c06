// Conversions between affine expressions and canonical dims.
#include "dialects/dlc/Sizes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dlc::ir {

Symbols::Symbols(func::FuncOp func) {
  if (auto hints = func->getAttrOfType<ArrayAttr>("dlc.symbols"))
    for (Attribute a : hints)
      hints_.push_back(cast<IntegerAttr>(a).getInt());
  else if (auto dense = func->getAttrOfType<DenseI64ArrayAttr>("dlc.symbols"))
    hints_.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
}

Dim Symbols::dim(AffineExpr e) const {
  switch (e.getKind()) {
  case AffineExprKind::Constant:
    return Dim(cast<AffineConstantExpr>(e).getValue());
  case AffineExprKind::SymbolId:
    return symbol(cast<AffineSymbolExpr>(e).getPosition());
  case AffineExprKind::DimId:
    fail(ErrorKind::Internal, "a size may not use a dim of its map");
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(e);
  Dim a = dim(binary.getLHS()), b = dim(binary.getRHS());
  switch (e.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::FloorDiv:
    return floorDiv(a, b);
  case AffineExprKind::Mod:
    return floorMod(a, b);
  default:
    return -floorDiv(-a, b);
  }
}

Dims Symbols::dims(AffineMap map) const {
  Dims out;
  for (AffineExpr e : map.getResults())
    out.push_back(dim(e));
  return out;
}

Dims Symbols::sizes(Type type) const {
  auto tensor = cast<RankedTensorType>(type);
  if (auto map = dyn_cast_or_null<AffineMapAttr>(tensor.getEncoding()))
    return dims(map.getValue());
  Dims out;
  for (int64_t s : tensor.getShape()) {
    DLC_CHECK(!ShapedType::isDynamic(s), "a dynamic dim without an encoding");
    out.push_back(Dim(s));
  }
  return out;
}

std::optional<Dim> Symbols::dim(Value v) const {
  APInt constant;
  if (matchPattern(v, m_ConstantInt(&constant)))
    return Dim(constant.getSExtValue());
  if (auto arg = dyn_cast<BlockArgument>(v)) {
    auto func = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp());
    if (!func)
      return std::nullopt;
    if (auto k = func.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(), "dlc.symbol"))
      return symbol(static_cast<unsigned>(k.getInt()));
    return std::nullopt;
  }
  Operation *op = v.getDefiningOp();
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    SmallVector<AffineExpr> replacements;
    for (Value operand : apply.getMapOperands()) {
      std::optional<Dim> d = dim(operand);
      if (!d)
        return std::nullopt;
      replacements.push_back(toAffine(*d, v.getContext()));
    }
    AffineMap map = apply.getAffineMap();
    ArrayRef<AffineExpr> all(replacements);
    return dim(
        map.getResult(0).replaceDimsAndSymbols(all.take_front(map.getNumDims()), all.drop_front(map.getNumDims())));
  }
  if (isa<arith::IndexCastOp>(op))
    return dim(op->getOperand(0));
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
    std::optional<Dim> a = dim(op->getOperand(0)), b = dim(op->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    return isa<arith::AddIOp>(op) ? *a + *b : isa<arith::SubIOp>(op) ? *a - *b : *a * *b;
  }
  return std::nullopt;
}

static AffineExpr toAffine(const DimAtom::Operand &o, MLIRContext *context) {
  return toAffine(Dim(o.value, o.expr), context);
}

AffineExpr toAffine(const Dim &d, MLIRContext *context) {
  if (d.isConst())
    return getAffineConstantExpr(d.value(), context);
  AffineExpr sum;
  for (const DimTerm &t : d.expr()->terms) {
    AffineExpr product;
    for (const DimAtom *f : t.factors) {
      AffineExpr factor;
      if (f->kind == DimAtom::Kind::Symbol)
        factor = getAffineSymbolExpr(f->symbol, context);
      else {
        AffineExpr a = toAffine(f->lhs, context), b = toAffine(f->rhs, context);
        factor = f->kind == DimAtom::Kind::FloorDiv ? a.floorDiv(b) : a % b;
      }
      product = product ? product * factor : factor;
    }
    AffineExpr term = product ? (t.coef == 1 ? product : product * t.coef) : getAffineConstantExpr(t.coef, context);
    sum = sum ? sum + term : term;
  }
  return sum;
}

AffineMap toAffine(const Dims &dims, unsigned numSymbols, MLIRContext *context) {
  SmallVector<AffineExpr> results;
  for (const Dim &d : dims)
    results.push_back(toAffine(d, context));
  return AffineMap::get(0, numSymbols, results, context);
}

RankedTensorType tensorType(Type element, const Dims &sizes, unsigned numSymbols) {
  SmallVector<int64_t> shape;
  bool dynamic = false;
  for (const Dim &d : sizes) {
    shape.push_back(d.isConst() ? d.value() : ShapedType::kDynamic);
    dynamic |= !d.isConst();
  }
  Attribute encoding;
  if (dynamic)
    encoding = AffineMapAttr::get(toAffine(sizes, numSymbols, element.getContext()));
  return RankedTensorType::get(shape, element, encoding);
}

DType dtypeOf(Type type) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    type = shaped.getElementType();
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  if (type.isUnsignedInteger(8))
    return DType::U8;
  switch (type.isIndex() ? 64 : type.getIntOrFloatBitWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return DType::I8;
  case 16:
    return DType::I16;
  case 32:
    return DType::I32;
  default:
    return DType::I64;
  }
}

bool same(const Dims &a, const Dims &b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].same(b[i]))
      return false;
  return true;
}

} // namespace dlc::ir
