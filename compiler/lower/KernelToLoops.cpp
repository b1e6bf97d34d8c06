// Phase `loops`: kernel.func -> func.func with scf loops, vectors and llvm memory operations. Assumes complete
// schedules; afterwards no op of the kernel dialect is left in the converted functions.
#include "compiler/lower/KernelEmitter.h"
#include "compiler/lower/Passes.h"
#include "compiler/lower/PlanStorage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

namespace {

struct KernelToLoopsPass : PassWrapper<KernelToLoopsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KernelToLoopsPass)
  StringRef getArgument() const override { return "kernel-to-loops"; }
  StringRef getDescription() const override { return "Lower kernels to loops over pointers"; }
  void getDependentDialects(DialectRegistry &registry) const override { registerLowerDialects(registry); }
  void runOnOperation() override {
    SmallVector<FuncOp> kernels(getOperation().getOps<FuncOp>());
    for (FuncOp kernel : kernels) {
      FailureOr<KernelPlan> plan = planKernel(kernel);
      if (failed(plan))
        return signalPassFailure();
      OpBuilder b(kernel);
      if (!KernelEmitter(*plan, b).emit())
        return signalPassFailure();
      kernel.erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createKernelToLoopsPass() { return std::make_unique<KernelToLoopsPass>(); }

void registerLowerDialects(DialectRegistry &registry) {
  registry.insert<KernelDialect, func::FuncDialect, scf::SCFDialect, cf::ControlFlowDialect, arith::ArithDialect,
                  math::MathDialect, vector::VectorDialect, LLVM::LLVMDialect>();
}

void registerLowerPasses() {
  registerPass(createKernelSchedulePass);
  registerPass(createKernelToLoopsPass);
  registerPass(createLowerToLlvmPass);
}

} // namespace dlc::compiler
