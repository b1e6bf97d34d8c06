// The search space: other schedules of a kernel, ranked by a model of what they cost.
#pragma once
#include "dialects/kernel/KernelDialect.h"

namespace dlc::compiler {

/// What sizes the model is asked about.
struct TuningSizes {
  std::vector<int64_t> dims; ///< of the domain, in order
  unsigned vectorBits = 256;
};

/// The kinds of kernels, by what their loops are bound by; each has fields of its own to search.
enum class KernelClass { Map, RowReduce, ColumnReduce, Contract };
KernelClass classOf(ir::kernel::FuncOp kernel);

/// Legal schedules of `kernel`, which has a complete one: that one first, then at most `limit` others, those first that
/// the model likes best. None changes results, but for the order in which a reduction adds.
std::vector<ir::kernel::ScheduleAttr> candidateSchedules(ir::kernel::FuncOp kernel, const TuningSizes &sizes,
                                                         size_t limit);

/// The model's estimate for the kernel as it is scheduled, in nanoseconds of one thread; infinite if it can't be
/// lowered.
double modelCost(ir::kernel::FuncOp kernel, const TuningSizes &sizes);

} // namespace dlc::compiler
