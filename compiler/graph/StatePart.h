// State arguments of functions: tensors that belong to the program and change seldom. What follows from them alone is
// made by functions of its own and comes in as a further argument:
//   func @main(..., %p: tensor<4x64x32xf32> {dlc.derived = @main_state, dlc.from = array<i64: 1>})
// `dlc.from`: the derived function's arguments, as positions among the tensor arguments that are not derived; ~k is the
// k-th derived argument before. A derived function has static sizes, cannot fail, and returns one row-major value.
#pragma once
#include "compiler/graph/Sizes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dlc::compiler {

constexpr llvm::StringLiteral kStateAttr = "dlc.state", kDerivedAttr = "dlc.derived", kFromAttr = "dlc.from";

/// Whether `v` is an argument that is state or follows from state, of static sizes and strides.
bool isState(mlir::func::FuncOp func, mlir::Value v);
bool isDerived(mlir::func::FuncOp func, mlir::BlockArgument arg);
/// The number that names `arg` in dlc.from.
int64_t derivedSourceOf(mlir::func::FuncOp func, mlir::BlockArgument arg);

/// Adds an argument of type `result` that follows from `from` (state arguments), and the function that makes it, whose
/// body, with its return, is left to the caller.
mlir::func::FuncOp addDerivedFunction(mlir::func::FuncOp func, mlir::Type result, llvm::ArrayRef<mlir::Value> from,
                                      mlir::Value &argument);

/// A map of constants as a map without symbols.
mlir::AffineMapAttr withoutSymbols(mlir::AffineMapAttr map);

} // namespace dlc::compiler
