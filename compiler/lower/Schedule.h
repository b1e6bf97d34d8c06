// The static cost rule that completes a kernel's schedule.
#ifndef DLC_COMPILER_LOWER_SCHEDULE_H
#define DLC_COMPILER_LOWER_SCHEDULE_H

#include "dialects/kernel/KernelDialect.h"

namespace dlc::compiler {

/// Returns the register width that code for this machine should use: 512 where 512-bit instructions don't lower the
/// clock (processors with AVX512-BF16), else 256.
unsigned hostVectorBits();

/// Whether this machine has an instruction for x * 2^n on 16 lanes.
bool hostScales();

/// Returns `func`'s schedule with every field that the CPU lowering reads filled in; fields that are there stay.
/// `vectorBits` is the register width to plan for. Null (with an error on the kernel) if no loop order is legal.
ir::kernel::ScheduleAttr completeSchedule(ir::kernel::FuncOp func, unsigned vectorBits);

} // namespace dlc::compiler

#endif
