// The scalar builder of runtime/scalar over SSA values, scalars and vectors alike: what makes compiled code compute
// exactly what the eager kernels do. Used by the kernel emitter for kernel.prim.
#ifndef DLC_COMPILER_LOWER_MLIRSCALARBUILDER_H
#define DLC_COMPILER_LOWER_MLIRSCALARBUILDER_H

#include "compiler/lower/KernelEmitter.h"
#include "runtime/scalar/Builder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace dlc::compiler {

/// A value of MlirScalarBuilder.
struct ScalarValue {
  mlir::Value value;
  scalar::Kind kind = scalar::Kind::F32;
};

/// Builder with ScalarValue; all values of one use have the same number of lanes (0 = scalar).
class MlirScalarBuilder {
  using V = ScalarValue;
  using Kind = scalar::Kind;

public:
  MlirScalarBuilder(KernelEmitter &emitter, int64_t lanes)
      : emitter_(emitter), b_(emitter.builder()), loc_(emitter.loc()), lanes_(lanes) {}

  static Kind kind(V x) { return x.kind; }
  V like(V x, double c) {
    if (x.kind == Kind::Bool)
      return likeInt(x, c != 0);
    return {emitter_.constantFloat(typeOf(x.kind), c), x.kind};
  }
  V likeInt(V x, int64_t c) { return {emitter_.constant(typeOf(x.kind), c), x.kind}; }

  V add(V x, V y) { return arithmetic<mlir::arith::AddFOp, mlir::arith::AddIOp>(x, y); }
  V sub(V x, V y) { return arithmetic<mlir::arith::SubFOp, mlir::arith::SubIOp>(x, y); }
  V mul(V x, V y) { return arithmetic<mlir::arith::MulFOp, mlir::arith::MulIOp>(x, y); }
  V div(V x, V y) { return make<mlir::arith::DivFOp>(x, y); }
  V divInt(V x, V y) { return isSigned(x.kind) ? make<mlir::arith::DivSIOp>(x, y) : make<mlir::arith::DivUIOp>(x, y); }
  V remInt(V x, V y) { return isSigned(x.kind) ? make<mlir::arith::RemSIOp>(x, y) : make<mlir::arith::RemUIOp>(x, y); }
  V neg(V x) { return unary<mlir::arith::NegFOp>(x); }
  V fma(V x, V y, V z) { return {b_.create<mlir::math::FmaOp>(loc_, x.value, y.value, z.value), x.kind}; }
  V absf(V x) { return unary<mlir::math::AbsFOp>(x); }
  V copysign(V x, V y) { return make<mlir::math::CopySignOp>(x, y); }
  V sqrt(V x) { return unary<mlir::math::SqrtOp>(x); }
  V floor(V x) { return unary<mlir::math::FloorOp>(x); }
  V ceil(V x) { return unary<mlir::math::CeilOp>(x); }
  V trunc(V x) { return unary<mlir::math::TruncOp>(x); }
  V roundeven(V x) { return unary<mlir::math::RoundEvenOp>(x); }

  V cmp(scalar::Cmp c, V x, V y);
  V select(V condition, V x, V y) {
    return {b_.create<mlir::arith::SelectOp>(loc_, condition.value, x.value, y.value), x.kind};
  }
  V bitAnd(V x, V y) { return make<mlir::arith::AndIOp>(x, y); }
  V bitOr(V x, V y) { return make<mlir::arith::OrIOp>(x, y); }
  V bitXor(V x, V y) { return make<mlir::arith::XOrIOp>(x, y); }
  V shl(V x, V n) { return make<mlir::arith::ShLIOp>(x, n); }
  V shr(V x, V n) { return isSigned(x.kind) ? make<mlir::arith::ShRSIOp>(x, n) : make<mlir::arith::ShRUIOp>(x, n); }
  V shrLogical(V x, V n) { return make<mlir::arith::ShRUIOp>(x, n); }
  V bits(V x) { return bitcast(x, x.kind == Kind::F32 ? Kind::I32 : Kind::I64); }
  V fromBits(V x) { return bitcast(x, x.kind == Kind::I32 ? Kind::F32 : Kind::F64); }
  template <Kind K> V convert(V x) { return convertTo(x, K); }
  V convertTo(V x, Kind to);

  template <class... Vs> V libm(scalar::Libm f, V x, Vs... rest) { return callLanes(f, {x, rest...}); }
  /// Shortcuts of runtime/scalar/Builder.h.
  bool scale(V x, V n, V &result);
  template <class F> void inAnyLane(V condition, F f, V &first, V &second) {
    branch(condition, [&] { f(); }, first, second);
  }
  void raise(V condition, scalar::Fault f) { emitter_.raise(condition.value, static_cast<int64_t>(f)); }

  /// Returns the SSA type of a kind in this builder's shape.
  mlir::Type typeOf(Kind kind);
  /// Returns the scalar SSA type of a kind.
  mlir::Type scalarType(Kind kind);

private:
  template <class Op> V make(V x, V y) { return {b_.create<Op>(loc_, x.value, y.value), x.kind}; }
  template <class Op> V unary(V x) { return {b_.create<Op>(loc_, x.value), x.kind}; }
  template <class FloatOp, class IntOp> V arithmetic(V x, V y) {
    return isFloat(x.kind) ? make<FloatOp>(x, y) : make<IntOp>(x, y);
  }
  V bitcast(V x, Kind to) { return {b_.create<mlir::arith::BitcastOp>(loc_, typeOf(to), x.value), to}; }
  V callLanes(scalar::Libm f, llvm::ArrayRef<V> operands);
  void branch(V condition, llvm::function_ref<void()> body, V &first, V &second);

  KernelEmitter &emitter_;
  mlir::OpBuilder &b_;
  mlir::Location loc_;
  int64_t lanes_;
};

} // namespace dlc::compiler

template <> inline constexpr bool dlc::scalar::kHasShortcuts<dlc::compiler::MlirScalarBuilder> = true;

namespace dlc::compiler {

/// Emits primitive `name` over operands of the given kinds; null value if there is none of that name and arity.
ScalarValue emitPrimitive(MlirScalarBuilder &builder, llvm::StringRef name, llvm::ArrayRef<ScalarValue> operands);

} // namespace dlc::compiler

#endif
