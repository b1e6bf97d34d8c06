// Runs passes and phases of the compiler on text: dlc-opt --phase-fused file.mlir
#include "compiler/pipeline/Pipelines.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  dlc::compiler::registerCompilerDialects(registry);
  dlc::compiler::registerCompilerPasses();
  mlir::registerCanonicalizer();
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "dlc optimizer driver\n", registry));
}
