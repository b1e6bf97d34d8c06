// A kernel's key is the digest of its source: compiler version, target and canonical text (symbol name erased). The
// code is made from that text alone, so an entry's source always reproduces its binary.
#include "compiler/cpu/CpuCompiler.h"
#include "compiler/cpu/Jit.h"
#include "compiler/cpu/KernelSources.inc"
#include "compiler/lower/Metadata.h"
#include "compiler/lower/Passes.h"
#include "compiler/lower/Schedule.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/PhaseTimes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Config/llvm-config.h"

#include <atomic>
#include <thread>

using namespace mlir;
using dlc::ir::kernel::FuncOp;

namespace dlc::compiler {

static constexpr const char *kVersion = "kernel compiler " DLC_KERNEL_SOURCES ", LLVM " LLVM_VERSION_STRING;
static constexpr const char *kSymbol = "kernel";

/// A linked kernel.
struct CpuCompiler::Code {
  KernelObject source;
  std::shared_ptr<LinkedObject> object;
  KernelFn fn = nullptr;
};

/// What a compile thread keeps between kernels.
struct CpuCompiler::Worker {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::unique_ptr<CodeGen> codeGen;
};

/// One kernel to compile.
struct CpuCompiler::Job {
  std::string key, source, error;
  std::shared_ptr<Code> code;
};

CpuCompiler::CpuCompiler(CpuCompilerOptions options)
    : options_(std::move(options)), cache_(options_.cacheDirectory, options_.cacheLimit) {}

CpuCompiler::~CpuCompiler() = default;

CpuCompilerOptions CpuCompilerOptions::fromKnobs() {
  CpuCompilerOptions options;
  if (!knobs().cacheDir.empty())
    options.cacheDirectory = knobs().cacheDir;
  options.cacheLimit = static_cast<uint64_t>(std::max<int64_t>(0, knobs().cacheLimitMb)) << 20;
  if (options.cacheLimit == 0)
    options.cacheDirectory.clear();
  return options;
}

const char *CpuCompiler::version() { return kVersion; }

CpuCompiler &CpuCompiler::get() {
  static CpuCompiler *compiler =
      new CpuCompiler(CpuCompilerOptions::fromKnobs()); // never destroyed, as its kernels may run at exit
  return *compiler;
}

KernelCompileStats CpuCompiler::stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void CpuCompiler::resetStats() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_ = {};
}

//===--- Workers ---===//

std::unique_ptr<CpuCompiler::Worker> CpuCompiler::takeWorker() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  auto worker = std::make_unique<Worker>();
  DialectRegistry registry;
  registerLowerDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  worker->context.appendDialectRegistry(registry);
  worker->context.loadAllAvailableDialects();
  return worker;
}

void CpuCompiler::giveWorker(std::unique_ptr<Worker> worker) {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(worker));
}

//===--- One kernel ---===//

std::string CpuCompiler::sourceOf(FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "// " << kVersion << "\n// " << options_.target.cpu << " " << options_.target.features << " "
         << options_.target.vectorBits << "\n";
  StringAttr name = kernel.getSymNameAttr();
  kernel.setSymName(kSymbol);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  kernel.setSymNameAttr(name);
  return text;
}

static llvm::Error asError(const std::string &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

static llvm::Expected<std::unique_ptr<llvm::Module>> toLlvm(const std::string &source, MLIRContext &context,
                                                            llvm::LLVMContext &llvmContext) {
  std::string diagnostics;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { llvm::raw_string_ostream(diagnostics) << diagnostic << "\n"; });
  PhaseTimer parsing("kernel parse");
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, ParserConfig(&context, /*verify=*/false));
  parsing.stop();
  PhaseTimer lowering("kernel to LLVM dialect");
  PassManager passes(&context, ModuleOp::getOperationName());
  passes.enableVerifier(false);
  passes.addPass(createKernelToLoopsPass());
  passes.addPass(createLowerToLlvmPass());
  if (!module || failed(passes.run(*module)))
    return asError(diagnostics);
  lowering.stop();
  PhaseTimer translating("kernel to LLVM IR");
  std::unique_ptr<llvm::Module> result = translateModuleToLLVMIR(*module, llvmContext);
  if (!result)
    return asError(diagnostics);
  return result;
}

llvm::Expected<std::shared_ptr<CpuCompiler::Code>> CpuCompiler::link(KernelObject source) {
  PhaseTimer timer("link");
  llvm::Expected<Jit *> jit = Jit::get();
  if (!jit)
    return jit.takeError();
  auto linked = (*jit)->link(source.object);
  if (!linked)
    return linked.takeError();
  llvm::Expected<void *> address = (*linked)->lookup(kSymbol);
  if (!address)
    return address.takeError();
  auto code = std::make_shared<Code>();
  code->object = std::move(*linked);
  code->fn = reinterpret_cast<KernelFn>(*address);
  code->source = std::move(source);
  return code;
}

void CpuCompiler::buildOne(Job &job, Worker &worker) {
  auto fail = [&](llvm::Error error) { job.error = llvm::toString(std::move(error)); };
  if (!worker.codeGen) {
    auto made = CodeGen::create(options_.target);
    if (!made)
      return fail(made.takeError());
    worker.codeGen = std::move(*made);
  }
  llvm::LLVMContext llvmContext;
  auto module = toLlvm(job.source, worker.context, llvmContext);
  if (!module)
    return fail(module.takeError());
  auto object = worker.codeGen->compile(**module);
  if (!object)
    return fail(object.takeError());
  auto code = link({job.key, std::vector<char>(object->begin(), object->end())});
  if (!code)
    return fail(code.takeError());
  PhaseTimer timer("kernel store");
  cache_.store(job.key, {object->data(), object->size()}, job.source);
  job.code = std::move(*code);
}

llvm::Expected<std::string> CpuCompiler::assembly(FuncOp kernel) {
  if (auto schedule = completeSchedule(kernel, options_.target.vectorBits))
    kernel.setScheduleAttr(schedule);
  std::unique_ptr<Worker> worker = takeWorker();
  auto codeGen = CodeGen::create(options_.target);
  if (!codeGen)
    return codeGen.takeError();
  llvm::LLVMContext llvmContext;
  auto module = toLlvm(sourceOf(kernel), worker->context, llvmContext);
  if (!module)
    return module.takeError();
  auto text = (*codeGen)->compile(**module, /*assembly=*/true);
  giveWorker(std::move(worker));
  if (!text)
    return text.takeError();
  return std::string(text->begin(), text->end());
}

//===--- Many kernels ---===//

std::shared_ptr<CpuCompiler::Code> CpuCompiler::findLive(const std::string &key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = live_.find(key);
  std::shared_ptr<Code> code = it != live_.end() ? it->second.lock() : nullptr;
  stats_.shared += code != nullptr;
  return code;
}

const KernelObject &CpuCompiler::objectOf(const CompiledKernel &kernel) {
  return static_cast<const Code *>(kernel.code.get())->source;
}

llvm::Expected<std::vector<CompiledKernel>> CpuCompiler::load(std::vector<KernelObject> objects) {
  std::vector<CompiledKernel> results;
  for (KernelObject &object : objects) {
    std::shared_ptr<Code> code = findLive(object.key);
    if (!code) {
      auto linked = link(std::move(object));
      if (!linked)
        return linked.takeError();
      code = std::move(*linked);
      std::lock_guard<std::mutex> lock(mutex_);
      ++stats_.cacheHits;
      live_[code->source.key] = code;
    }
    results.push_back({code->fn, {}, code});
  }
  return results;
}

// In memory, else on disk; null if neither.
llvm::Expected<std::shared_ptr<CpuCompiler::Code>> CpuCompiler::find(const std::string &key) {
  PhaseTimer timer("kernel look-up");
  if (auto code = findLive(key))
    return code;
  std::vector<char> object;
  ObjectCache::Status status = cache_.load(key, object);
  if (status == ObjectCache::Status::Miss)
    return nullptr;
  std::shared_ptr<Code> code;
  if (status == ObjectCache::Status::Hit) {
    auto linked = link({key, std::move(object)});
    if (linked)
      code = std::move(*linked);
    else
      llvm::consumeError(linked.takeError()); // compiled again below
  }
  std::lock_guard<std::mutex> lock(mutex_);
  ++(code ? stats_.cacheHits : stats_.badEntries);
  if (code)
    live_[key] = code;
  return code;
}

llvm::Error CpuCompiler::build(std::vector<Job> &jobs) {
  unsigned limit = options_.threads ? options_.threads : std::max(1u, std::thread::hardware_concurrency());
  std::atomic<size_t> next{0};
  auto work = [&] {
    std::unique_ptr<Worker> worker = takeWorker();
    for (size_t i = next++; i < jobs.size(); i = next++)
      buildOne(jobs[i], *worker);
    giveWorker(std::move(worker));
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(limit, jobs.size()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  cache_.evict();
  std::string errors;
  std::lock_guard<std::mutex> lock(mutex_);
  for (Job &job : jobs) {
    errors += job.error;
    if (!job.code)
      continue;
    ++stats_.llvmCompilations;
    live_[job.key] = job.code;
  }
  return errors.empty() ? llvm::Error::success() : asError(errors);
}

llvm::Expected<std::vector<CompiledKernel>> CpuCompiler::compile(llvm::ArrayRef<FuncOp> kernels) {
  std::vector<CompiledKernel> results;
  std::vector<std::shared_ptr<Code>> codes(kernels.size());
  std::vector<std::string> keys;
  std::vector<Job> jobs;
  std::map<std::string, size_t> jobOf;
  for (FuncOp kernel : kernels) {
    std::string diagnostics;
    ScopedDiagnosticHandler handler(kernel.getContext(), [&](Diagnostic &diagnostic) {
      llvm::raw_string_ostream(diagnostics) << diagnostic << "\n";
    });
    PhaseTimer planning("kernel plan");
    auto schedule = completeSchedule(kernel, options_.target.vectorBits);
    if (!schedule)
      return asError(diagnostics);
    kernel.setScheduleAttr(schedule);
    FailureOr<KernelPlan> plan = planKernel(kernel);
    if (failed(plan))
      return asError(diagnostics);
    results.push_back({nullptr, describeKernel(*plan), nullptr});
    planning.stop();
    PhaseTimer printing("kernel text");
    std::string source = sourceOf(kernel), key = digest(source);
    printing.stop();
    keys.push_back(key);
    if (jobOf.count(key)) {
      std::lock_guard<std::mutex> lock(mutex_);
      ++stats_.shared;
      countPhase("duplicate kernels");
      continue;
    }
    auto found = find(key);
    if (!found)
      return found.takeError();
    codes[results.size() - 1] = *found;
    if (*found)
      continue;
    jobOf[key] = jobs.size();
    jobs.push_back({key, std::move(source), "", nullptr});
  }
  countPhase("kernels", static_cast<int64_t>(kernels.size()));
  countPhase("kernels compiled", static_cast<int64_t>(jobs.size()));
  if (!jobs.empty())
    if (llvm::Error error = build(jobs))
      return std::move(error);
  for (size_t i = 0; i < results.size(); ++i) {
    std::shared_ptr<Code> code = codes[i] ? codes[i] : jobs[jobOf.at(keys[i])].code;
    results[i].fn = code->fn;
    results[i].code = code;
  }
  return results;
}

} // namespace dlc::compiler
