// The map of the compiler: its phases in order, with the passes of each.
#include "compiler/pipeline/Pipelines.h"
#include "compiler/cpu/CpuCompiler.h"
#include "compiler/fusion/FusePass.h"
#include "compiler/graph/Passes.h"
#include "compiler/lower/KernelPlan.h"
#include "compiler/lower/Passes.h"
#include "dialects/dlc/DlcDialect.h"
#include "dialects/kernel/KernelDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

constexpr StringRef kPhases[] = {"captured", "simplified", "fused", "scheduled", "loops", "llvm", "binary"};

FusionOptions fusionOptions(const CompileOptions &options) {
  FusionOptions o;
  o.fuse = options.fuse;
  o.fuel = options.fusionFuel;
  o.contract = options.contract;
  o.vectorBits = CpuCompiler::get().target().vectorBits;
  o.lowers = isLowerable;
  return o;
}

/// What makes a module of one phase from a module of the phase before.
void addPasses(OpPassManager &pm, StringRef phase, const CompileOptions &options) {
  if (phase == "simplified") {
    pm.addNestedPass<func::FuncOp>(createSimplifyPass());
    pm.addNestedPass<func::FuncOp>(createFoldConvPass()); // before normalisations are decomposed
    pm.addNestedPass<func::FuncOp>(createRaiseAttentionPass());
    pm.addNestedPass<func::FuncOp>(createDecomposePass());
    pm.addNestedPass<func::FuncOp>(createSimplifyPass()); // what rules leave: casts, identities, repeated ops
    pm.addNestedPass<func::FuncOp>(createPushViewsPass());
    pm.addNestedPass<func::FuncOp>(createChannelsLastPass());
    pm.addNestedPass<func::FuncOp>(createSplitReductionsPass());
    pm.addNestedPass<func::FuncOp>(createMaterializePass()); // last: simplification would undo its copies
    pm.addPass(createStatePartPass());
  } else if (phase == "fused") {
    pm.addPass(createFusePass(fusionOptions(options)));
  } else if (phase == "scheduled") {
    pm.addPass(createKernelSchedulePass());
  } else if (phase == "loops") {
    pm.addPass(createKernelToLoopsPass());
  } else if (phase == "llvm") {
    pm.addPass(createLowerToLlvmPass());
  }
}

[[noreturn]] void refuse(Operation *op, StringRef phase, const Twine &reason) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os, OpPrintingFlags().skipRegions().useLocalScope());
  fail(ErrorKind::Internal, "phase ", phase.str(), ": ", reason.str(), ": ", text);
}

void verifyFunction(func::FuncOp func, StringRef phase) {
  bool simplified = phase != "captured", fused = simplified && phase != "simplified";
  if (!func.getBody().hasOneBlock())
    refuse(func, phase, "a function of several blocks");
  for (BlockArgument arg : func.getArguments()) {
    auto tensor = dyn_cast<RankedTensorType>(arg.getType());
    if (tensor ? !tensor.hasStaticShape() && !tensor.getEncoding() : !arg.getType().isIntOrIndexOrFloat())
      refuse(func, phase, "an argument that is no tensor of known sizes and no number");
    if (arg.getType().isIndex() && !func.getArgAttr(arg.getArgNumber(), "dlc.symbol"))
      refuse(func, phase, "an index argument without dlc.symbol");
  }
  Symbols symbols(func);
  Layouts layouts(symbols);
  setFunctionLayouts(func, layouts);
  for (Operation &op : func.getBody().front()) {
    const OpInfo *info = infoOf(&op);
    StringRef dialect = op.getName().getDialectNamespace();
    if (dialect != "dlc" && dialect != "arith" && dialect != "affine" && dialect != "func")
      refuse(&op, phase, "an op of another dialect");
    for (Type t : op.getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(t); tensor && !tensor.hasStaticShape() && !tensor.getEncoding())
        refuse(&op, phase, "a dynamic size that is no expression of the symbols");
    if (!info)
      continue;
    if (simplified && info->has(kHasRule))
      refuse(&op, phase, "a composite is left");
    if (simplified && info->kind == OpKind::View && !layouts.isFreeView(&op))
      refuse(&op, phase, "a view has no strides on its operand");
    if (fused) {
      NodeKind kind = describe(&op, layouts).kind;
      if (kind == NodeKind::Point || kind == NodeKind::Reduce)
        refuse(&op, phase, "an op is in no kernel");
    }
  }
}

} // namespace

ArrayRef<StringRef> phaseNames() { return kPhases; }

void verifyPhase(ModuleOp module, StringRef phase) {
  if (failed(verify(module)))
    fail(ErrorKind::Internal, "phase ", phase.str(), ": the module does not verify");
  if (phase == "loops" || phase == "llvm" || phase == "binary")
    return;
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isDeclaration())
      verifyFunction(func, phase);
  if (phase == "scheduled")
    for (auto kernel : module.getOps<ir::kernel::FuncOp>())
      if (!kernel.getSchedule())
        refuse(kernel, phase, "a kernel without a schedule");
}

void runPhase(ModuleOp module, StringRef phase, const CompileOptions &options) {
  std::string diagnostics;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &d) {
    llvm::raw_string_ostream os(diagnostics);
    os << d.getLocation() << ": " << d << '\n';
    return success();
  });
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.enableVerifier(false); // at the border of the phase, below
  addPasses(pm, phase, options);
  if (failed(pm.run(module)))
    fail(ErrorKind::Internal, "phase ", phase.str(), " failed\n", diagnostics);
  try {
    verifyPhase(module, phase);
  } catch (const Error &e) {
    fail(ErrorKind::Internal, e.what(), "\n", diagnostics);
  }
}

void registerCompilerDialects(DialectRegistry &registry) {
  registry.insert<ir::DlcDialect, arith::ArithDialect, affine::AffineDialect, func::FuncDialect>();
  registerLowerDialects(registry);
}

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

void registerCompilerPasses() {
  registerGraphPasses();
  registerPass([] { return createFusePass(); });
  registerPass(createPushViewsPass);
  registerPass(createSplitReductionsPass);
  registerLowerPasses();
  for (StringRef phase : kPhases) {
    // The registry keeps what it is given, for as long as the tool runs.
    std::string name = ("phase-" + phase).str(), text = ("Run the passes of phase " + phase).str();
    registerPassPipeline(
        name, text,
        [phase](OpPassManager &pm, StringRef, function_ref<LogicalResult(const Twine &)>) {
          addPasses(pm, phase, CompileOptions::fromKnobs());
          return success();
        },
        [](function_ref<void(const mlir::detail::PassOptions &)>) {});
  }
}

} // namespace dlc::compiler
