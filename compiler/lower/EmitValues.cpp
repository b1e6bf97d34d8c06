// Evaluation of region scalars: each op is emitted once for each loop that needs it, at the outermost open loop where
// its operands exist, as a scalar or as lanes.
#include "compiler/lower/KernelEmitter.h"
#include "compiler/lower/MlirScalarBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

//===--- Constants and shapes ---===//

Type KernelEmitter::repr(Type scalar) {
  if (scalar.isIndex())
    return i64();
  return scalar.isBF16() ? b_.getIntegerType(16) : scalar;
}

Value KernelEmitter::constant(Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attr;
  if (auto f = dyn_cast<FloatType>(element))
    attr = b_.getFloatAttr(f, static_cast<double>(value));
  else if (element.isInteger(1))
    attr = b_.getBoolAttr(value & 1);
  else
    attr = b_.getIntegerAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = SplatElementsAttr::get(vector, attr);
  return b_.create<arith::ConstantOp>(loc_, attr);
}

Value KernelEmitter::constantFloat(Type type, double value) {
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  TypedAttr attr = b_.getFloatAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = SplatElementsAttr::get(vector, attr);
  return b_.create<arith::ConstantOp>(loc_, attr);
}

Value KernelEmitter::splat(Value x) {
  if (isLanes(x))
    return x;
  return b_.create<vector::SplatOp>(loc_, lanesOf(x.getType()), x);
}

Value KernelEmitter::iota(Type element) {
  SmallVector<Attribute> lanes;
  for (unsigned i = 0; i < width_; ++i)
    lanes.push_back(b_.getIntegerAttr(element, i));
  return b_.create<arith::ConstantOp>(loc_, DenseElementsAttr::get(cast<VectorType>(lanesOf(element)), lanes));
}

Value KernelEmitter::addI(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  if (isLanes(x) != isLanes(y)) {
    x = splat(x);
    y = splat(y);
  }
  return b_.create<arith::AddIOp>(loc_, x, y);
}

Value KernelEmitter::mulI(Value x, Value y) {
  auto isOne = [](Value v) {
    auto constant = v.getDefiningOp<arith::ConstantOp>();
    auto number = constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
    return number && number.getInt() == 1;
  };
  if (isOne(x) || isOne(y))
    return isOne(x) ? y : x;
  if (isLanes(x) != isLanes(y)) {
    x = splat(x);
    y = splat(y);
  }
  return b_.create<arith::MulIOp>(loc_, x, y);
}

Value KernelEmitter::toI64(Value x) {
  Type element = getElementTypeOrSelf(x.getType());
  if (element.isInteger(64))
    return x;
  Type type = isLanes(x) ? lanesOf(i64()) : i64();
  if (element.isInteger(1))
    return b_.create<arith::ExtUIOp>(loc_, type, x);
  return b_.create<arith::ExtSIOp>(loc_, type, x);
}

Value KernelEmitter::indexOf(unsigned dim, unsigned copy) {
  if (static_cast<int>(dim) == plan_.vecDim && useLanes())
    return addI(lanes_.base[copy], iota(i64()));
  return dimIv_[dim];
}

//===--- Where a value belongs ---===//

unsigned KernelEmitter::levelOf(DimSet dims) const {
  unsigned level = 0;
  while ((scopes_[level].dims & dims) != dims)
    ++level;
  return level;
}

Value KernelEmitter::at(unsigned level, llvm::function_ref<Value()> make) {
  OpBuilder::InsertionGuard guard(b_);
  if (level + 1 < scopes_.size())
    b_.setInsertionPoint(scopes_[level].child);
  return make();
}

KernelEmitter::Placed KernelEmitter::eval(Value value, unsigned copy) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return {args_[arg.getArgNumber()], 0};
  if (!useLanes() || !plan_.variesByLane(value))
    copy = 0;
  for (unsigned level = scopes_.size(); level-- > 0;) {
    auto it = scopes_[level].memo.find({value, copy});
    if (it != scopes_[level].memo.end())
      return {it->second, level};
  }
  Operation *op = value.getDefiningOp();
  Placed placed = isStage(op) ? evalStage(value, copy) : evalOp(op, value, copy);
  scopes_[placed.level].memo[{value, copy}] = placed.value;
  return placed;
}

KernelEmitter::Placed KernelEmitter::evalStage(Value stage, unsigned copy) {
  auto map = dyn_cast<MapOp>(stage.getDefiningOp());
  assert(map && "a reduce is computed before it is used");
  unsigned loop = openLoops_.empty() ? ~0u : openLoops_.back();
  for (const Stash &stash : plan_.stashes) {
    if (stash.stage != stage)
      continue;
    unsigned level = scopes_.size() - 1;
    if (loop != stash.storeLoop)
      return {loadStash(stash, copy), level};
    Placed placed =
        eval(map.getBody().front().getTerminator()->getOperand(cast<OpResult>(stage).getResultNumber()), copy);
    storeStash(stash, copy, placed.value);
    return {placed.value, level};
  }
  return eval(map.getBody().front().getTerminator()->getOperand(cast<OpResult>(stage).getResultNumber()), copy);
}

KernelEmitter::Placed KernelEmitter::evalOp(Operation *op, Value value, unsigned copy) {
  if (auto use = dyn_cast<UseOp>(op))
    return eval(use.getValue(), copy);
  if (auto read = dyn_cast<ReadOp>(op))
    return evalRead(read, copy);
  if (auto index = dyn_cast<IndexOp>(op)) {
    unsigned dim = kernel_.getDimIndex(index.getDim());
    unsigned level = levelOf(DimSet(1) << dim);
    return {at(level, [&] { return indexOf(dim, copy); }), level};
  }
  if (Placed scaled = evalScaledIndex(op, copy); scaled.value)
    return scaled;
  bool lanes = useLanes() && plan_.variesByLane(value);
  unsigned level = 0;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Placed placed = eval(operand, copy);
    level = std::max(level, placed.level);
    operands.push_back(placed.value);
  }
  Value result = at(level, [&] {
    for (Value &operand : operands)
      if (lanes)
        operand = splat(operand);
    return emitScalarOp(op, operands, lanes);
  });
  return {result, level};
}

// The index of the vectorised dim times a scalar, as arange has it: one scalar product, since the lanes' own part does
// not change in the loop. (A vector product of i64 takes fifteen cycles.)
KernelEmitter::Placed KernelEmitter::evalScaledIndex(Operation *op, unsigned copy) {
  auto prim = dyn_cast<PrimOp>(op);
  bool multiplies = isa<arith::MulIOp>(op) || (prim && prim.getName() == "mul" && op->getNumOperands() == 2);
  if (!useLanes() || !multiplies || !op->getResult(0).getType().isInteger(64))
    return {};
  for (unsigned i = 0; i < 2; ++i) {
    auto index = op->getOperand(i).getDefiningOp<IndexOp>();
    Value other = op->getOperand(1 - i);
    if (!index || kernel_.getDimIndex(index.getDim()) != plan_.vecDim || plan_.variesByLane(other))
      continue;
    Placed factor = eval(other, 0);
    unsigned level = std::max(factor.level, levelOf(DimSet(1) << plan_.vecDim));
    return {at(level,
               [&] {
                 Value own = mulI(iota(i64()), splat(factor.value));
                 return addI(mulI(lanes_.base[copy], factor.value), own);
               }),
            level};
  }
  return {};
}

//===--- One op ---===//

static bool isNarrowFloat(Type type) { return type.isF16() || type.isBF16(); }

Value KernelEmitter::emitScalarOp(Operation *op, ArrayRef<Value> operands, bool lanes) {
  if (auto prim = dyn_cast<PrimOp>(op))
    return emitPrim(prim, operands, lanes);
  Type type = op->getResult(0).getType();
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op)) {
    if (type.isBF16())
      return constant(b_.getIntegerType(16),
                      cast<FloatAttr>(constantOp.getValue()).getValue().bitcastToAPInt().getSExtValue());
    if (auto number = dyn_cast<IntegerAttr>(constantOp.getValue()))
      return constant(repr(type), number.getValue().getSExtValue());
    return b_.create<arith::ConstantOp>(loc_, cast<TypedAttr>(constantOp.getValue()));
  }
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::BitcastOp>(op))
    return emitCast(op, operands[0], lanes);
  bool narrowFloat = isNarrowFloat(type) || llvm::any_of(op->getOperandTypes(), isNarrowFloat);
  if (narrowFloat && !isa<arith::SelectOp>(op))
    return emitNarrowFloatOp(op, operands, lanes);
  SmallVector<Value> list(operands);
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
    list[1] = guardDivisor(op, list[0], list[1]);
  Type result = lanes ? lanesOf(repr(type)) : repr(type);
  OperationState state(loc_, op->getName(), list, {result}, op->getAttrs());
  return b_.create(state)->getResult(0);
}

// Computes in f32 and rounds once.
Value KernelEmitter::emitNarrowFloatOp(Operation *op, ArrayRef<Value> operands, bool lanes) {
  SmallVector<Value> wide;
  for (auto [operand, original] : llvm::zip(operands, op->getOperands()))
    wide.push_back(isNarrowFloat(original.getType()) ? widen(operand, original.getType()) : operand);
  Type type = op->getResult(0).getType();
  Type element = isNarrowFloat(type) ? b_.getF32Type() : repr(type);
  OperationState state(loc_, op->getName(), wide, {lanes ? lanesOf(element) : element}, op->getAttrs());
  Value result = b_.create(state)->getResult(0);
  return isNarrowFloat(type) ? narrow(result, type) : result;
}

Value KernelEmitter::emitCast(Operation *op, Value x, bool lanes) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  auto shaped = [&](Type type) { return lanes ? lanesOf(type) : type; };
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    unsigned fromBits = repr(from).getIntOrFloatBitWidth(), toBits = repr(to).getIntOrFloatBitWidth();
    if (fromBits == toBits)
      return x;
    if (fromBits > toBits)
      return b_.create<arith::TruncIOp>(loc_, shaped(repr(to)), x);
    if (isa<arith::IndexCastUIOp>(op))
      return b_.create<arith::ExtUIOp>(loc_, shaped(repr(to)), x);
    return b_.create<arith::ExtSIOp>(loc_, shaped(repr(to)), x);
  }
  if (isa<arith::BitcastOp>(op))
    return repr(from) == repr(to) ? x : b_.create<arith::BitcastOp>(loc_, shaped(repr(to)), x).getResult();
  Value wide = isNarrowFloat(from) ? widen(x, from) : x; // at least f32
  Type f32 = b_.getF32Type();
  bool isWide = getElementTypeOrSelf(wide.getType()).isF64();
  if (to.isF64())
    return isWide ? wide : b_.create<arith::ExtFOp>(loc_, shaped(to), wide).getResult();
  if (isWide)
    wide = b_.create<arith::TruncFOp>(loc_, shaped(f32), wide);
  return to.isF32() ? wide : narrow(wide, to);
}

Value KernelEmitter::widen(Value x, Type from) {
  auto shaped = [&](Type type) { return isLanes(x) ? lanesOf(type) : type; };
  if (!from.isBF16())
    return b_.create<arith::ExtFOp>(loc_, shaped(b_.getF32Type()), x);
  Value bits = b_.create<arith::ExtUIOp>(loc_, shaped(b_.getI32Type()), x);
  bits = b_.create<arith::ShLIOp>(loc_, bits, constant(bits.getType(), 16));
  return b_.create<arith::BitcastOp>(loc_, shaped(b_.getF32Type()), bits);
}

// bf16 by integer arithmetic: the processor's own conversion flushes denormals.
Value KernelEmitter::narrow(Value x, Type to) {
  auto shaped = [&](Type type) { return isLanes(x) ? lanesOf(type) : type; };
  if (!to.isBF16())
    return b_.create<arith::TruncFOp>(loc_, shaped(to), x);
  Type i32 = shaped(b_.getI32Type());
  Value bits = b_.create<arith::BitcastOp>(loc_, i32, x);
  Value top = b_.create<arith::ShRUIOp>(loc_, bits, constant(i32, 16));
  Value odd = b_.create<arith::AndIOp>(loc_, top, constant(i32, 1));
  Value sum = b_.create<arith::AddIOp>(loc_, bits, b_.create<arith::AddIOp>(loc_, odd, constant(i32, 0x7fff)));
  Value rounded = b_.create<arith::ShRUIOp>(loc_, sum, constant(i32, 16));
  Value sign = b_.create<arith::AndIOp>(loc_, top, constant(i32, 0x8000));
  Value quiet = b_.create<arith::OrIOp>(loc_, sign, constant(i32, 0x7fc0));
  Value isNan = b_.create<arith::CmpFOp>(loc_, arith::CmpFPredicate::UNO, x, x);
  Value chosen = b_.create<arith::SelectOp>(loc_, isNan, quiet, rounded);
  return b_.create<arith::TruncIOp>(loc_, shaped(b_.getIntegerType(16)), chosen);
}

// A division by zero, and the lowest integer by -1, would trap, also in lanes that do not count: such a divisor is
// replaced by 1.
Value KernelEmitter::guardDivisor(Operation *op, Value x, Value y) {
  Type type = y.getType();
  auto equals = [&](Value v, int64_t c) -> Value {
    return b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::eq, v, constant(type, c));
  };
  Value bad = equals(y, 0);
  if (isa<arith::DivSIOp, arith::RemSIOp>(op)) {
    unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    Value overflows = b_.create<arith::AndIOp>(loc_, equals(x, int64_t(-1) << (bits - 1)), equals(y, -1));
    bad = b_.create<arith::OrIOp>(loc_, bad, overflows);
  }
  return b_.create<arith::SelectOp>(loc_, bad, constant(type, 1), y);
}

//===--- Primitives ---===//

static scalar::Kind kindOf(Type type, bool isUnsigned) {
  if (type.isF64())
    return scalar::Kind::F64;
  if (isa<FloatType>(type))
    return scalar::Kind::F32;
  if (type.isIndex())
    return scalar::Kind::I64;
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return scalar::Kind::Bool;
  case 8:
    return isUnsigned ? scalar::Kind::U8 : scalar::Kind::I8;
  case 16:
    return scalar::Kind::I16;
  case 32:
    return scalar::Kind::I32;
  default:
    return scalar::Kind::I64;
  }
}

Value KernelEmitter::emitPrim(PrimOp op, ArrayRef<Value> operands, bool lanes) {
  SmallVector<ScalarValue> inputs;
  bool isUnsigned = op->hasAttr("unsigned");
  for (auto [operand, original] : llvm::zip(operands, op.getOperands())) {
    Type type = original.getType();
    inputs.push_back({isNarrowFloat(type) ? widen(operand, type) : operand, kindOf(type, isUnsigned)});
  }
  MlirScalarBuilder builder(*this, lanes ? width_ : 0);
  ScalarValue result = emitPrimitive(builder, op.getName(), inputs);
  Type to = op.getResult().getType();
  if (result.value && isNarrowFloat(to) && getElementTypeOrSelf(result.value.getType()).isF32())
    return narrow(result.value, to);
  Type expected = lanes ? lanesOf(repr(to)) : repr(to);
  if (!result.value || result.value.getType() != expected) {
    op.emitOpError() << "'" << op.getName() << "' has no lowering for these operands and this result";
    failed_ = true;
    return constant(expected, 0);
  }
  return result.value;
}

} // namespace dlc::compiler
