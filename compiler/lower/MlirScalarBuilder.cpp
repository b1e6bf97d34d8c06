// Expands scalar primitives into arith and math ops. All of runtime/scalar's templates are instantiated here.
#include "compiler/lower/MlirScalarBuilder.h"
#include "compiler/lower/Schedule.h"
#include "runtime/scalar/Primitives.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dlc::compiler {

using scalar::Cmp;
using scalar::Kind;

Type MlirScalarBuilder::scalarType(Kind kind) {
  if (kind == Kind::F32)
    return b_.getF32Type();
  if (kind == Kind::F64)
    return b_.getF64Type();
  return b_.getIntegerType(scalar::bitWidth(kind));
}

Type MlirScalarBuilder::typeOf(Kind kind) {
  Type type = scalarType(kind);
  return lanes_ ? VectorType::get({lanes_}, type) : type;
}

ScalarValue MlirScalarBuilder::cmp(Cmp c, V x, V y) {
  if (isFloat(x.kind)) {
    using P = arith::CmpFPredicate;
    constexpr P kFloat[] = {P::OEQ, P::UNE, P::OLT, P::OLE, P::OGT, P::OGE};
    return {b_.create<arith::CmpFOp>(loc_, kFloat[static_cast<int>(c)], x.value, y.value), Kind::Bool};
  }
  using P = arith::CmpIPredicate;
  constexpr P kSigned[] = {P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge};
  constexpr P kUnsigned[] = {P::eq, P::ne, P::ult, P::ule, P::ugt, P::uge};
  P predicate = (isSigned(x.kind) ? kSigned : kUnsigned)[static_cast<int>(c)];
  return {b_.create<arith::CmpIOp>(loc_, predicate, x.value, y.value), Kind::Bool};
}

ScalarValue MlirScalarBuilder::convertTo(V x, Kind to) {
  Type type = typeOf(to);
  if (x.kind == to)
    return x;
  if (isFloat(x.kind)) {
    if (isFloat(to))
      return to == Kind::F64 ? V{b_.create<arith::ExtFOp>(loc_, type, x.value), to}
                             : V{b_.create<arith::TruncFOp>(loc_, type, x.value), to};
    return isSigned(to) ? V{b_.create<arith::FPToSIOp>(loc_, type, x.value), to}
                        : V{b_.create<arith::FPToUIOp>(loc_, type, x.value), to};
  }
  if (isFloat(to))
    return isSigned(x.kind) ? V{b_.create<arith::SIToFPOp>(loc_, type, x.value), to}
                            : V{b_.create<arith::UIToFPOp>(loc_, type, x.value), to};
  int from = scalar::bitWidth(x.kind), width = scalar::bitWidth(to);
  if (from == width)
    return {x.value, to};
  if (from > width)
    return {b_.create<arith::TruncIOp>(loc_, type, x.value), to};
  return isSigned(x.kind) ? V{b_.create<arith::ExtSIOp>(loc_, type, x.value), to}
                          : V{b_.create<arith::ExtUIOp>(loc_, type, x.value), to};
}

bool MlirScalarBuilder::scale(V x, V n, V &result) {
  if (x.kind != Kind::F32 || lanes_ != 16 || !hostScales())
    return false;
  Type i16 = b_.getIntegerType(16), i32 = b_.getI32Type();
  Value all = emitter_.constant(i16, -1), rounding = emitter_.constant(i32, 4); // as the control register says
  auto call = b_.create<LLVM::CallIntrinsicOp>(loc_, x.value.getType(), "llvm.x86.avx512.mask.scalef.ps.512",
                                               ValueRange{x.value, n.value, x.value, all, rounding});
  result = {call.getResult(0), x.kind};
  return true;
}

void MlirScalarBuilder::branch(V condition, llvm::function_ref<void()> body, V &first, V &second) {
  V before[] = {first, second};
  auto ifOp = b_.create<scf::IfOp>(loc_, TypeRange{first.value.getType(), second.value.getType()},
                                   emitter_.anyLane(condition.value), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(ifOp.thenBlock());
  body();
  b_.create<scf::YieldOp>(loc_, ValueRange{first.value, second.value});
  b_.setInsertionPointToStart(ifOp.elseBlock());
  b_.create<scf::YieldOp>(loc_, ValueRange{before[0].value, before[1].value});
  first.value = ifOp.getResult(0);
  second.value = ifOp.getResult(1);
}

ScalarValue MlirScalarBuilder::callLanes(scalar::Libm f, ArrayRef<V> operands) {
  Kind kind = operands[0].kind;
  std::string name = scalar::libmName(f);
  if (kind == Kind::F32)
    name += "f";
  auto call = [&](auto &&pick) {
    SmallVector<Value> scalars;
    for (V operand : operands)
      scalars.push_back(pick(operand.value));
    return emitter_.callC(name, scalarType(kind), scalars);
  };
  if (!lanes_)
    return {call([](Value v) { return v; }), kind};
  Value result = emitter_.constant(typeOf(kind), 0);
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    Value one = call([&](Value v) -> Value { return b_.create<vector::ExtractOp>(loc_, v, lane); });
    result = b_.create<vector::InsertOp>(loc_, one, result, lane);
  }
  return {result, kind};
}

ScalarValue emitPrimitive(MlirScalarBuilder &builder, StringRef name, ArrayRef<ScalarValue> operands) {
  ScalarValue result;
  scalar::applyPrimitive(builder, std::string_view(name.data(), name.size()), operands.data(), operands.size(), result);
  return result;
}

} // namespace dlc::compiler
