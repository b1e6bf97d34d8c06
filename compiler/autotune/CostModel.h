// What a planned kernel costs, from its loops alone: to rank schedules of one kernel, not to predict its time.
#pragma once
#include "compiler/autotune/Candidates.h"
#include "compiler/lower/KernelPlan.h"

namespace dlc::compiler {

/// Nanoseconds of one thread.
double estimateNs(const KernelPlan &plan, const TuningSizes &sizes);

} // namespace dlc::compiler
