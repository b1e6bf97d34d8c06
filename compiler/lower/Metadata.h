// The launcher's view of a kernel, from its plan.
#ifndef DLC_COMPILER_LOWER_METADATA_H
#define DLC_COMPILER_LOWER_METADATA_H

#include "compiler/api/CompiledKernel.h"
#include "compiler/lower/KernelPlan.h"

namespace dlc::compiler {

/// Returns what a launcher needs to know about the planned kernel.
KernelInfo describeKernel(const KernelPlan &plan);

} // namespace dlc::compiler

#endif
