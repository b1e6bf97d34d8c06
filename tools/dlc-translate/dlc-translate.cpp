// dlc-translate: prints the kernels of a module (phase "fused" or "scheduled") in another language.
//
//   dlc-translate --emit-cuda file.mlir                  CUDA C++ text
//   dlc-translate --emit-cuda --arch=sm_80 file.mlir     also compiles it with NVRTC, reports registers and spills
#include "compiler/cuda/CudaEmitter.h"
#include "compiler/cuda/nvrtc/Nvrtc.h"
#include "compiler/pipeline/Pipelines.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"

static llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::desc("<file>"), llvm::cl::init("-"));
static llvm::cl::opt<bool> emitCuda("emit-cuda", llvm::cl::desc("print kernels as CUDA C++"));
static llvm::cl::opt<std::string> arch("arch", llvm::cl::desc("compile the text for this architecture, e.g. sm_80"));
static llvm::cl::opt<std::string> environment("nvrtc-env", llvm::cl::desc("virtual environment that has NVRTC"));

static int report(const std::string &text) {
  auto nvrtc = dlc::compiler::Nvrtc::open(environment.empty() ? "" : dlc::compiler::Nvrtc::findIn(environment));
  dlc::compiler::Cubin cubin = nvrtc->compile(text, arch);
  for (const dlc::compiler::CudaUsage &usage : cubin.usage)
    llvm::outs() << "// " << arch << " " << usage.kernel << ": " << usage.registers << " registers, "
                 << usage.spillBytes << " bytes spilled, " << usage.sharedBytes << " bytes shared\n";
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ParseCommandLineOptions(argc, argv, "Prints dlc kernels in another language\n");
  if (!emitCuda) {
    llvm::errs() << "dlc-translate: nothing to do; give --emit-cuda\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  dlc::compiler::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(input, sources, &context);
  if (!module)
    return 1;
  auto program = dlc::compiler::emitCuda(*module);
  if (failed(program))
    return 1;
  llvm::outs() << program->text;
  if (arch.empty())
    return 0;
  try {
    return report(program->text);
  } catch (const std::exception &error) {
    llvm::errs() << error.what() << "\n";
    return 1;
  }
}
