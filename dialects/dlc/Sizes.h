// Sizes of IR values as canonical expressions, and back. A tensor type with a dynamic dim carries its sizes as an
// affine map over the function's symbols; here they are dlc::Dim, whose equality is that of expressions.
#pragma once
#include "runtime/core/DType.h"
#include "runtime/core/Dim.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"

namespace dlc::ir {

/// The symbols of one function: their hints, and which arguments they are.
class Symbols {
public:
  Symbols() = default;
  explicit Symbols(mlir::func::FuncOp func);
  size_t count() const { return hints_.size(); }
  Ints hints() const { return Ints(hints_); }
  Dim symbol(unsigned k) const { return Dim::symbol(k, k < hints_.size() ? hints_[k] : 2); }
  Dim dim(mlir::AffineExpr e) const;
  Dims dims(mlir::AffineMap map) const;
  /// The sizes of a tensor type. A dynamic dim without encoding is an internal error.
  Dims sizes(mlir::Type tensor) const;
  Dims sizes(mlir::Value v) const { return sizes(v.getType()); }
  /// An `index` (or i64) value as an expression: a constant, a symbol argument, or arithmetic on those.
  std::optional<Dim> dim(mlir::Value index) const;

private:
  std::vector<int64_t> hints_;
};

mlir::AffineExpr toAffine(const Dim &d, mlir::MLIRContext *context);
/// A map without dims over `numSymbols` symbols.
mlir::AffineMap toAffine(const Dims &dims, unsigned numSymbols, mlir::MLIRContext *context);
/// The tensor type of these sizes, with the encoding that dynamic ones need.
mlir::RankedTensorType tensorType(mlir::Type element, const Dims &sizes, unsigned numSymbols);

DType dtypeOf(mlir::Type elementOrTensor);
inline DType dtypeOf(mlir::Value v) { return dtypeOf(v.getType()); }

/// The same expression in every dim.
bool same(const Dims &a, const Dims &b);

} // namespace dlc::ir
