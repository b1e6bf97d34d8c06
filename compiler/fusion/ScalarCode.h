// Scalar code of point ops inside kernels. The semantics come from the op records: the generated functions that drive
// the eager kernels are instantiated here with a builder that emits one kernel.prim for each primitive.
#pragma once
#include "compiler/graph/BoxedOp.h"
#include "dialects/kernel/KernelBuilder.h"

namespace dlc::compiler {

/// A scalar in a kernel; the IR type does not tell u8 from i8.
struct Scalar {
  mlir::Value value;
  DType dtype = DType::F32;
};

/// What scalar code needs of its surroundings.
struct ScalarContext {
  ir::kernel::StageBuilder &stage;
  const Symbols &symbols;
  llvm::function_ref<Scalar(mlir::Value tensor)> read;        ///< element of an operand at this point
  llvm::function_ref<mlir::Value(mlir::Value number)> number; ///< an i64 or f64 scalar of the kernel
  llvm::function_ref<mlir::Value(unsigned dim)> index;        ///< index of the point along a dim of the result, i64
  llvm::function_ref<mlir::Value(Dim)> size;                  ///< an expression of the symbols, i64
};

/// Whether fusion has scalar code for the op.
bool hasScalarCode(mlir::Operation *op, const OpInfo &info);

/// Emits the value of one point of the op's result, rounded to its dtype.
Scalar emitScalar(mlir::Operation *op, const OpInfo &info, ScalarContext &context);

/// Converts by the rule of the `cast` op.
Scalar convertScalar(ir::kernel::StageBuilder &s, Scalar x, DType to);
/// The IR type of a scalar of this dtype: bool is i1, u8 is i8.
mlir::Type scalarType(DType t, mlir::MLIRContext *context);
/// The element type in memory: bool is i8.
mlir::Type memoryType(DType t, mlir::MLIRContext *context);
/// A constant of this dtype.
Scalar constantScalar(ir::kernel::StageBuilder &s, DType t, double value);
/// A primitive of runtime/scalar.
Scalar primScalar(ir::kernel::StageBuilder &s, llvm::StringRef name, llvm::ArrayRef<Scalar> operands);

struct ScalarCost {
  int64_t cost = 1;
  bool mayFail = false;
};
/// Estimated cost of one point in units of an add.
ScalarCost scalarCost(mlir::Operation *op, const OpInfo &info, const Symbols &symbols);

} // namespace dlc::compiler
