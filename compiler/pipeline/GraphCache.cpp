// An entry is facts, statistics, the kernels' keys and objects, and the plan. The key has the identification of this
// very build, so what is read was written by the same code.
#include "compiler/pipeline/GraphCache.h"
#include "compiler/autotune/TuningStore.h"
#include "compiler/cpu/CpuCompiler.h"
#include "runtime/core/Archive.h"
#include "runtime/core/BuildId.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/PhaseTimes.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/exec/PlanArchive.h"

#include <chrono>

namespace dlc::compiler {

std::string graphSource(const std::string &graph, const CompileOptions &options) {
  const Knobs &k = knobs();
  CpuCompiler &compiler = CpuCompiler::get();
  bool looksInside = !k.logs.empty() && (logEnabled("fusion") || logEnabled("graph"));
  if (!compiler.cache().usable() || buildId().empty() || !options.dumpDir.empty() || !k.fault.empty() || looksInside)
    return {};
  archive::Writer w;
  w.text("dlc graph");
  w.text(buildId());
  const CpuTarget &target = compiler.target();
  w.text(target.cpu + target.features);
  w.pod(target.vectorBits);
  w.pod(getNumThreads());
  w.pod(options.fuse);
  w.pod(options.fusionFuel);
  w.pod(options.contract);
  w.pod(options.tuningSeconds > 0);
  w.text(TuningStore::get().generation());
  w.text(k.plantBug + "/" + k.gemmIsa + "/" + k.mode);
  w.text(graph);
  return std::move(w.bytes);
}

void recordFacts(const std::vector<Fact> &facts, Ints symbols) {
  for (const Fact &f : facts) {
    Dim d(evaluate(f.expr, symbols), f.expr);
    bool equality = f.kind == Fact::Kind::EqZero || f.kind == Fact::Kind::NeZero;
    (void)(equality ? d == Dim(0) : d < Dim(0));
  }
}

static std::shared_ptr<Executable> readEntry(const std::vector<char> &bytes, Ints symbols) {
  archive::Reader in({bytes.data(), bytes.size()}, symbols);
  std::vector<Fact> facts;
  archive::fields(in, facts);
  ExecutableStats stats;
  in.pod(stats);
  std::vector<int64_t> hints;
  in.list(hints, [&](int64_t &h) { in.pod(h); });
  std::vector<KernelObject> objects;
  in.list(objects, [&](KernelObject &o) {
    in.text(o.key);
    std::string code;
    in.text(code);
    o.object.assign(code.begin(), code.end());
  });
  auto kernels = CpuCompiler::get().load(std::move(objects));
  if (!kernels)
    fail(ErrorKind::Internal, llvm::toString(kernels.takeError()));
  std::vector<dlc::CompiledKernel> functions;
  for (const CompiledKernel &k : *kernels)
    functions.push_back(k.fn);
  std::shared_ptr<LaunchPlan> plan =
      PlanArchive::read(in, Span<const dlc::CompiledKernel>(functions.data(), functions.size()));
  for (const CompiledKernel &k : *kernels)
    plan->retain(std::const_pointer_cast<void>(k.code));
  DLC_CHECK(in.atEnd(), "an archived graph is longer than what it says");
  recordFacts(facts, symbols);
  return std::make_shared<Executable>(plan, stats, hints);
}

std::shared_ptr<Executable> loadGraph(const std::string &source, Ints symbols) {
  PhaseTimer timer("graph look-up");
  auto start = std::chrono::steady_clock::now();
  std::vector<char> bytes;
  if (CpuCompiler::get().cache().load(digest(source), bytes) != ObjectCache::Status::Hit)
    return nullptr;
  try {
    std::shared_ptr<Executable> found = readEntry(bytes, symbols);
    ExecutableStats stats = found->stats();
    stats.llvmCompilations = 0;
    stats.cacheHits = stats.distinctKernels;
    stats.compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    countPhase("graphs from the cache");
    return std::make_shared<Executable>(found->sharedPlan(), stats, found->hints());
  } catch (const Error &) {
    return nullptr; // compiled and stored anew
  }
}

void storeGraph(const std::string &source, const Executable &executable, const std::vector<CompiledKernel> &kernels,
                const std::vector<Fact> &facts) {
  PhaseTimer timer("graph store");
  archive::Writer out;
  std::vector<Fact> made = facts;
  archive::fields(out, made);
  out.pod(executable.stats());
  out.list(executable.hints(), [&](int64_t h) { out.pod(h); });
  std::map<KernelFn, const KernelObject *> objectOf;
  for (const CompiledKernel &k : kernels)
    objectOf[k.fn] = &CpuCompiler::objectOf(k);
  std::map<KernelFn, uint32_t> numbers;
  std::vector<const KernelObject *> objects;
  archive::Writer plan;
  if (!PlanArchive::write(plan, executable.plan(), [&](KernelFn fn) {
        auto [at, isNew] = numbers.emplace(fn, static_cast<uint32_t>(objects.size()));
        if (isNew)
          objects.push_back(objectOf.at(fn));
        return at->second;
      }))
    return;
  out.list(objects, [&](const KernelObject *o) {
    out.text(o->key);
    out.pod(o->object.size());
    out.raw(o->object.data(), o->object.size());
  });
  out.bytes += plan.bytes;
  CpuCompiler::get().cache().store(digest(source), out.bytes, source);
}

static std::string dataSource(const std::string &source) { return "dlc data " + buildId() + "\n" + source; }

std::optional<std::string> loadData(const std::string &source) {
  std::vector<char> bytes;
  if (buildId().empty() ||
      CpuCompiler::get().cache().load(digest(dataSource(source)), bytes) != ObjectCache::Status::Hit)
    return std::nullopt;
  return std::string(bytes.begin(), bytes.end());
}

void storeData(const std::string &source, const std::string &data) {
  if (!buildId().empty())
    CpuCompiler::get().cache().store(digest(dataSource(source)), data, dataSource(source));
}

} // namespace dlc::compiler
