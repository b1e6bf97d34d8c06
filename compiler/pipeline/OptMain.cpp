// dlc-opt: every pass and named phase of the compiler on text.
#include "compiler/api/OptMain.h"
#include "compiler/pipeline/Pipelines.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int dlc::compiler::optMain(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerCompilerDialects(registry);
  registerCompilerPasses();
  mlir::registerCanonicalizer();
  mlir::registerCSEPass();
  return mlir::failed(mlir::MlirOptMain(argc, argv, "dlc optimizer driver\n", registry));
}
