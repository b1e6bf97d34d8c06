// One graph through all phases: dumps, failures that say how to repeat them, kernels to code, the plan.
#include "compiler/autotune/Tune.h"
#include "compiler/autotune/TuningStore.h"
#include "compiler/cpu/CpuCompiler.h"
#include "compiler/pipeline/BuildPlan.h"
#include "compiler/pipeline/Pipelines.h"
#include "compiler/graph/Passes.h"
#include "compiler/graph/Sizes.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/PhaseTimes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <atomic>
#include <chrono>

using namespace mlir;

namespace dlc::compiler {

namespace {

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

/// A file's name, or "" if the disk refuses.
std::string writeFile(StringRef folder, const Twine &name, StringRef text) {
  if (folder.empty() || llvm::sys::fs::create_directories(folder, true, llvm::sys::fs::owner_all))
    return {};
  SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return {};
  os << text;
  return path.str().str();
}

class Compilation {
public:
  Compilation(ModuleOp module, const CompileOptions &options) : module_(module), options_(options) {
    // Several graphs of one function: the second one's files are program.1-...
    static std::atomic<int> dumped{0};
    if (int n = options.dumpDir.empty() ? 0 : dumped++)
      name_ = options.name + "." + std::to_string(n);
  }

  /// `used`: the kernels of the plan.
  std::shared_ptr<Executable> run(std::vector<CompiledKernel> *used) {
    auto start = std::chrono::steady_clock::now();
    func::FuncOp func = module_.lookupSymbol<func::FuncOp>("main");
    DLC_REQUIRE(func && !func.isDeclaration(), Value,
                "the module has no function @main with a body\nDefine func.func @main.");
    phase("captured", [&] { verifyPhase(module_, "captured"); });
    for (StringRef name : {"simplified", "fused", "scheduled"})
      phase(name, [&] {
        runPhase(module_, name, options_);
        if (name == "scheduled")
          tune();
      });
    if (!options_.dumpDir.empty())
      dumpCode();
    std::shared_ptr<Executable> result;
    phase("binary", [&] {
      llvm::StringMap<CompiledKernel> kernels = compileKernels(used);
      std::shared_ptr<LaunchPlan> plan = buildPlan(module_.lookupSymbol<func::FuncOp>("main"), kernels, stats_);
      Symbols symbols(func);
      std::vector<int64_t> hints = symbols.hints().vec();
      stats_.arenaBytes = static_cast<int64_t>(plan->arenaBytes(Ints(hints)));
      stats_.compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      result = std::make_shared<Executable>(plan, stats_, hints);
    });
    if (logEnabled("compile_time"))
      logLine("compile_time",
              str(options_.name, ": ", 1e3 * stats_.compileSeconds, " ms, ", stats_.kernels, " kernels, ",
                  stats_.distinctKernels, " distinct, ", stats_.llvmCompilations, " compiled"));
    return result;
  }

private:
  template <class F> void phase(StringRef name, F &&body) {
    std::string before = replayable(name) ? textOf(module_) : std::string();
    try {
      DLC_CHECK(knobs().fault != name, "DLC_FAULT=", knobs().fault);
      PhaseTimer timer(name.data());
      body();
    } catch (const Error &e) {
      std::string where = options_.dumpDir.empty() ? ObjectCache::defaultDirectory() : options_.dumpDir;
      std::string file =
          writeFile(where, name_ + "-before-" + name + ".mlir", before.empty() ? textOf(module_) : before);
      fail(ErrorKind::Internal, e.what(),
           "\nRepeat with: ", name == "binary" ? "dlc-run " : "dlc-opt --phase-" + name.str() + " ",
           file.empty() ? "<the module>" : file);
    }
    dump(name, name == "binary" ? "s" : "mlir", name == "binary" ? StringRef(assembly_) : StringRef(textOf(module_)));
  }

  /// Keeping the text of every phase would cost more than the phase; a failing one leaves its input nearly as it was,
  /// except fusion, which rewrites as it goes.
  bool replayable(StringRef name) const { return name == "fused" && !options_.dumpDir.empty(); }

  void dump(StringRef phase, StringRef ending, StringRef text) {
    if (!options_.dumpDir.empty())
      writeFile(options_.dumpDir, name_ + "-" + std::to_string(number_++) + "-" + phase + "." + ending, text);
  }

  std::vector<ir::kernel::FuncOp> kernels() {
    return std::vector<ir::kernel::FuncOp>(module_.getOps<ir::kernel::FuncOp>().begin(),
                                           module_.getOps<ir::kernel::FuncOp>().end());
  }

  /// Fusion may find out late that nobody needs a kernel's results.
  std::vector<ir::kernel::FuncOp> launchedKernels() {
    llvm::StringSet<> names;
    for (func::FuncOp func : module_.getOps<func::FuncOp>())
      for (Operation &op : func.getBody().front())
        if (auto kernel = op.getAttrOfType<FlatSymbolRefAttr>("kernel"))
          names.insert(kernel.getValue());
    std::vector<ir::kernel::FuncOp> launched;
    for (ir::kernel::FuncOp kernel : kernels())
      if (names.contains(kernel.getSymName()))
        launched.push_back(kernel);
    return launched;
  }

  void tune() {
    TuningReport report = tuneKernels(module_.lookupSymbol<func::FuncOp>("main"), launchedKernels(), options_,
                                      TuningStore::get(), CpuCompiler::get());
    stats_.tuningOpen = options_.tuningSeconds > 0 ? report.open : 0;
  }

  llvm::StringMap<CompiledKernel> compileKernels(std::vector<CompiledKernel> *used) {
    CpuCompiler &compiler = CpuCompiler::get();
    std::vector<ir::kernel::FuncOp> funcs = launchedKernels();
    KernelCompileStats before = compiler.stats();
    auto compiled = compiler.compile(funcs);
    if (!compiled)
      fail(ErrorKind::Internal, llvm::toString(compiled.takeError()));
    KernelCompileStats after = compiler.stats();
    stats_.llvmCompilations = after.llvmCompilations - before.llvmCompilations;
    stats_.cacheHits = after.cacheHits + after.shared - before.cacheHits - before.shared;
    llvm::StringMap<CompiledKernel> byName;
    for (size_t i = 0; i < funcs.size(); ++i)
      byName[funcs[i].getSymName()] = (*compiled)[i];
    if (used)
      *used = std::move(*compiled);
    return byName;
  }

  /// The phases that kernels go through on their way to code, on a copy of the kernels alone.
  void dumpCode() {
    OwningOpRef<ModuleOp> copy = module_.clone();
    for (auto func : llvm::make_early_inc_range(copy->getOps<func::FuncOp>()))
      func.erase();
    for (StringRef name : {"loops", "llvm"}) {
      runPhase(*copy, name, options_);
      dump(name, "mlir", textOf(*copy));
    }
    for (ir::kernel::FuncOp kernel : kernels())
      if (auto text = CpuCompiler::get().assembly(kernel))
        assembly_ += *text;
      else
        llvm::consumeError(text.takeError());
  }

  ModuleOp module_;
  const CompileOptions &options_;
  std::string name_ = options_.name;
  ExecutableStats stats_;
  std::string assembly_;
  int number_ = 1;
};

} // namespace

std::shared_ptr<Executable> compileModule(ModuleOp module, const CompileOptions &options,
                                          std::vector<CompiledKernel> *kernels) {
  return Compilation(module, options).run(kernels);
}

std::shared_ptr<Executable> compileReference(ModuleOp module) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.addNestedPass<func::FuncOp>(createMaterializePass());
  DLC_CHECK(succeeded(pm.run(module)), "the module cannot be prepared for the eager kernels");
  auto func = module.lookupSymbol<func::FuncOp>("main");
  ExecutableStats stats;
  std::shared_ptr<LaunchPlan> plan = buildPlan(func, {}, stats);
  return std::make_shared<Executable>(plan, stats, Symbols(func).hints().vec());
}

} // namespace dlc::compiler
