// Decomposition of composite ops in the IR: the rule templates of the op table, with V = a value of the `dlc` dialect.
#pragma once
#include "dialects/dlc/DlcDialect.h"

namespace dlc::ir {

/// Builds what the op's rule says at the builder's insertion point, and gives the values that replace its results.
/// False if the op has no rule. Throws dlc::Error when the rule refuses its operands.
bool applyRule(mlir::OpBuilder &b, mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &results);

/// `d` as an index value at the insertion point: a constant, or an affine.apply of the function's symbol arguments.
mlir::Value materialize(mlir::OpBuilder &b, mlir::Location loc, const Dim &d, mlir::func::FuncOp func);
/// A number as an i1, i64 or f64 value: the operand it stands for, or a constant.
mlir::Value materialize(mlir::OpBuilder &b, mlir::Location loc, const Number &n);

} // namespace dlc::ir
