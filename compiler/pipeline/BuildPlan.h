// The last step of compiling a graph: a fused function and its compiled kernels become a launch plan. Buffers appear
// here: views are strides and offsets of their root, results share memory with operands that die.
#pragma once
#include "compiler/api/CompiledKernel.h"
#include "compiler/api/Executable.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace dlc::compiler {

/// Throws InternalError naming an op that cannot be a step.
std::shared_ptr<LaunchPlan> buildPlan(mlir::func::FuncOp func, const llvm::StringMap<CompiledKernel> &kernels,
                                      ExecutableStats &stats);

} // namespace dlc::compiler
