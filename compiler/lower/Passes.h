// The passes of compiler/lower, in the order in which a pipeline runs them.
#ifndef DLC_COMPILER_LOWER_PASSES_H
#define DLC_COMPILER_LOWER_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace dlc::compiler {

/// `kernel-schedule` (phase scheduled): completes each kernel's schedule.
std::unique_ptr<mlir::Pass> createKernelSchedulePass();

/// `kernel-to-loops` (phase loops): each kernel.func becomes a func.func of scf loops over llvm pointers.
std::unique_ptr<mlir::Pass> createKernelToLoopsPass();

/// `lower-to-llvm` (phase llvm): everything in the module becomes LLVM dialect, in one conversion.
std::unique_ptr<mlir::Pass> createLowerToLlvmPass();

/// Registers the passes above by name (for dlc-opt).
void registerLowerPasses();

/// Loads what the passes create: func, scf, cf, arith, math, vector, llvm; and the kernel dialect.
void registerLowerDialects(mlir::DialectRegistry &registry);

} // namespace dlc::compiler

#endif
