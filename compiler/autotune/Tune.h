// Tunes the kernels of a compiled graph: what is known is looked up, what is not is measured while there is time.
#pragma once
#include "compiler/api/Executable.h"
#include "compiler/autotune/Race.h"
#include "dialects/kernel/KernelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dlc::compiler {

class CpuCompiler;
class TuningStore;
struct KernelProblem;

/// What tuning a graph did.
struct TuningReport {
  int64_t known = 0;            ///< kernels whose entry was there
  int64_t tuned = 0;            ///< kernels that were measured to a decision
  int64_t changed = 0;          ///< kernels, of all these, whose schedule is not the default
  int64_t open = 0;             ///< kernels that the budget did not reach
  double before = 0, after = 0; ///< seconds of the measured kernels in one run of the graph
};

/// Sets the schedules of `kernels` (complete ones, of phase `scheduled`), which `main` launches. With a budget in
/// `options.tuningSeconds` kernels without an entry are raced; else entries are only looked up.
TuningReport tuneKernels(mlir::func::FuncOp main, llvm::ArrayRef<ir::kernel::FuncOp> kernels,
                         const CompileOptions &options, TuningStore &store, CpuCompiler &compiler);

/// Races the schedules of one kernel and leaves it with the best. The schedule it comes with is the default.
/// `seconds`: receives the times of the default and of the winner. False if `deadline` (of the steady clock, in
/// seconds) came before a decision: then the default stays.
bool tuneKernel(ir::kernel::FuncOp kernel, const KernelProblem &problem, CpuCompiler &compiler, double deadline,
                double (&seconds)[2], const RaceRules &rules = {});

/// What the entry of a kernel is found by. `dims`: the sizes of its domain.
std::string tuningKey(ir::kernel::FuncOp kernel, const std::vector<int64_t> &dims);

} // namespace dlc::compiler
