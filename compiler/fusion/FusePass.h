// The pass `dlc-fuse` (phase fused): groups of ops become kernels and launches.
#pragma once
#include "compiler/fusion/Fuse.h"
#include <memory>

namespace mlir {
class Pass;
}

namespace dlc::compiler {

/// Fuses the dlc functions of a module. Each group becomes a kernel.func in the module (structurally equal ones are
/// one) and a dlc.launch with the attributes
///   offsets: of each buffer from its value's first element; buffers are the tensor operands, then the results
///   ints:    the kernel's integers, over the function's symbols; numbers are 0
///   number_at: the position in `ints` of each number operand
///   inplace: pairs (operand, result) that may share memory
///   cost: of one point, in units of an add;  may_fail;  ops: names, for people
void fuseModule(mlir::ModuleOp module, const FusionOptions &options);

std::unique_ptr<mlir::Pass> createFusePass(FusionOptions options = {});
/// `dlc-push-views`: slices move from results of cheap point ops to their operands.
std::unique_ptr<mlir::Pass> createPushViewsPass();
/// `dlc-split-reductions`: reductions of much into little happen in two steps.
std::unique_ptr<mlir::Pass> createSplitReductionsPass();

} // namespace dlc::compiler
