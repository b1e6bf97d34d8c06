// The compiler as a list of named phases.
#pragma once
#include "compiler/api/CompiledKernel.h"
#include "compiler/api/Executable.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace dlc::compiler {

/// captured, simplified, fused, scheduled, loops, llvm, binary.
llvm::ArrayRef<llvm::StringRef> phaseNames();

/// Runs one phase on a module that is in the phase before it. Throws InternalError with the diagnostics.
/// `binary` leaves the module as it is.
void runPhase(mlir::ModuleOp module, llvm::StringRef phase, const CompileOptions &options);

/// What holds at the end of a phase; throws InternalError naming the first op for which it does not.
void verifyPhase(mlir::ModuleOp module, llvm::StringRef phase);

/// Compiles the function @main of `module` (which changes to phase `scheduled`). Throws InternalError; its last line is
/// the command that repeats the failing phase. `kernels`: receives the kernels that the plan may call.
std::shared_ptr<Executable> compileModule(mlir::ModuleOp module, const CompileOptions &options,
                                          std::vector<CompiledKernel> *kernels = nullptr);

/// The same function with every op as its eager kernel, one after the other: what compiled code is compared with.
std::shared_ptr<Executable> compileReference(mlir::ModuleOp module);

/// A context with every dialect of the compiler loaded, single-threaded.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Every dialect that a module has at any phase.
void registerCompilerDialects(mlir::DialectRegistry &registry);
/// Every pass, and each phase as a pipeline `phase-<name>`, for dlc-opt.
void registerCompilerPasses();

} // namespace dlc::compiler
