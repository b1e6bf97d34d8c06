// Decisions about memory that follow from the loop tree of a KernelPlan.
#ifndef DLC_COMPILER_LOWER_PLANSTORAGE_H
#define DLC_COMPILER_LOWER_PLANSTORAGE_H

#include "compiler/lower/KernelPlan.h"

namespace dlc::compiler {

/// Decides which map values are kept in an output between loops (fills plan.stashes).
void planStashes(KernelPlan &plan);

/// Fails, with an error on the kernel, if a buffer is read in a loop after the one that writes it.
mlir::LogicalResult checkInPlace(const KernelPlan &plan);

/// Returns whether the output of `write` may lie in the memory of `input` (same sizes and strides): every read comes
/// before the write of the same element.
bool mayShare(const KernelPlan &plan, mlir::BlockArgument input, ir::kernel::WriteOp write);

} // namespace dlc::compiler

#endif
