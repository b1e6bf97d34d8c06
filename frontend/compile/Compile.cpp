// Look-up, anti-unification, compilation and the interpreter fallback of recorded pieces.
#include "frontend/compile/Compile.h"
#include "frontend/compile/Skeleton.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/core/Knobs.h"
#include <chrono>
#include <unordered_map>

namespace dlc {

/// One compiled graph: the numbers it was made from, how they generalise, what it rests on.
struct CacheEntry {
  std::vector<std::vector<int64_t>> samples;
  Lifting lifting;
  std::vector<Fact> facts;
  Graph graph;                             // what was compiled, or what the interpreter runs
  std::shared_ptr<CompiledGraph> compiled; // null: the interpreter runs it
  std::string failure;
  int64_t hits = 0;
  std::vector<int64_t> lastNumbers, lastSymbols; // the last match, so that a repeated shape costs one comparison
};

struct CompiledFunction::Cache {
  struct Bucket {
    std::string bytes;
    std::vector<std::shared_ptr<CacheEntry>> entries; // most recently used first
    bool saidLimit = false;
  };
  std::mutex mutex;
  std::unordered_multimap<uint64_t, Bucket> buckets;

  Bucket &bucket(const Skeleton &key) {
    auto range = buckets.equal_range(key.hash);
    for (auto it = range.first; it != range.second; ++it)
      if (it->second.bytes == key.bytes)
        return it->second;
    return buckets.emplace(key.hash, Bucket{key.bytes, {}, false})->second;
  }
};

namespace {

constexpr size_t kMinNodes = 3;
constexpr size_t kMaxEntries = 16;
constexpr size_t kMaxEvents = 1000;

std::mutex statsMutex;
CompileStats stats;
Backend backend = nullptr;
thread_local CompiledCall *activeCall = nullptr;
thread_local trace::Recorder *activeRecorder = nullptr;
thread_local std::unique_ptr<trace::Recorder> spareRecorder; // one kept a thread, with the memory of its tables

template <class F> void count(F &&f) {
  std::lock_guard<std::mutex> lock(statsMutex);
  f(stats);
}

/// What differs between two samples, for the recompilation message.
std::string difference(const std::vector<int64_t> &a, const std::vector<int64_t> &b, size_t inputNumbers) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      return str(i < inputNumbers ? "a size of an input" : "an index or size argument", " was ", a[i], " and is now ",
                 b[i]);
  return "a fact about the sizes no longer holds";
}

} // namespace

CompileStats compileStats() {
  std::lock_guard<std::mutex> lock(statsMutex);
  return stats;
}
void resetCompileStats() {
  std::lock_guard<std::mutex> lock(statsMutex);
  stats = CompileStats();
}
void setBackend(Backend b) { backend = b; }
Backend currentBackend() { return backend; }
bool isCompiling() { return activeRecorder != nullptr && currentInterceptor() == activeRecorder; }

CompiledFunction::CompiledFunction(std::string name, CompileOptions options)
    : name_(std::move(name)), options_(options), cache_(std::make_unique<Cache>()) {}
CompiledFunction::~CompiledFunction() = default;

void CompiledFunction::event(CompileEvent e) {
  static const char *topics[] = {"recompiles", "recompiles", "breaks", "breaks", "recompiles"};
  const char *topic = topics[static_cast<int>(e.kind)];
  if (logEnabled(topic))
    logLine(topic, str(name_, e.loc.empty() ? "" : " at ", e.loc, ": ", e.text));
  std::lock_guard<std::mutex> lock(eventMutex_);
  events_.push_back(std::move(e));
  if (events_.size() > kMaxEvents)
    events_.pop_front();
}

std::vector<CompileEvent> CompiledFunction::events() const {
  std::lock_guard<std::mutex> lock(eventMutex_);
  return {events_.begin(), events_.end()};
}

size_t CompiledFunction::numEntries() const {
  std::lock_guard<std::mutex> lock(cache_->mutex);
  size_t n = 0;
  for (auto &[hash, bucket] : cache_->buckets)
    n += bucket.entries.size();
  return n;
}

void CompiledFunction::onBreak(const trace::FlushEvent &e) {
  if (e.reason == trace::FlushReason::Limit) {
    event({CompileEvent::Kind::Limit, e.loc, str("the recording was cut at ", e.nodes, " ops"),
           "compile a smaller part of the program"});
    return;
  }
  std::string why = e.reason == trace::FlushReason::DataDependent
                        ? str("`", e.what, "` has a result whose size depends on data")
                    : e.reason == trace::FlushReason::Unsupported
                        ? str("`", e.what, "` is called on memory that others share, or is not recordable")
                        : str("Python needed ", e.what);
  std::string action = "keep the value on tensors (where, masks) or accept the break: results stay right";
  DLC_REQUIRE(!options_.fullgraph, Runtime, name_, ": fullgraph=True, but the graph breaks",
              e.loc.empty() ? "" : " at ", e.loc, ": ", why, "\n", action);
  count([&](CompileStats &s) {
    s.breaks++;
    s.fallbacks += e.reason == trace::FlushReason::Unsupported;
  });
  event({CompileEvent::Kind::Break, e.loc, why, action});
  if (!saidBreak_ && !options_.quiet) {
    saidBreak_ = true;
    logLine("break", str(name_, " runs as more than one graph: broken", e.loc.empty() ? "" : " at ", e.loc, " because ",
                         why, " (dlc.explain lists all breaks)"));
  }
}

std::shared_ptr<CacheEntry> CompiledFunction::lookUp(const Skeleton &key, std::vector<int64_t> &symbols) {
  auto &bucket = cache_->bucket(key);
  for (size_t i = 0; i < bucket.entries.size(); ++i) {
    std::shared_ptr<CacheEntry> e = bucket.entries[i];
    if (e->lastNumbers != key.numbers) {
      std::vector<int64_t> s = e->lifting.symbols(key.numbers);
      if (!e->lifting.matches(key.numbers, s) ||
          !std::all_of(e->facts.begin(), e->facts.end(), [&](const Fact &f) { return holds(f, s); }))
        continue;
      e->lastNumbers = key.numbers;
      e->lastSymbols = std::move(s);
    }
    symbols = e->lastSymbols;
    std::rotate(bucket.entries.begin(), bucket.entries.begin() + i, bucket.entries.begin() + i + 1);
    return e;
  }
  return nullptr;
}

std::shared_ptr<CompiledGraph> CompiledFunction::build(const Graph &g, const trace::Piece &piece) {
  if (knobs().mode == "interpret" || !backend)
    return nullptr;
  auto start = std::chrono::steady_clock::now();
  auto compiled = backend(g, {name_, piece.sharedInput});
  GraphStats s = compiled->stats();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  count([&](CompileStats &c) {
    c.compilations++;
    c.kernels += s.kernels;
    c.libraryCalls += s.libraryCalls;
    c.otherSteps += s.otherSteps;
    c.llvmCompilations += s.llvmCompilations;
    c.cacheHits += s.cacheHits;
    c.compileSeconds += seconds;
  });
  return compiled;
}

std::shared_ptr<CacheEntry> CompiledFunction::compile(trace::Piece &piece, Skeleton &key,
                                                      std::vector<int64_t> &symbols) {
  auto &bucket = cache_->bucket(key);
  auto entry = std::make_shared<CacheEntry>();
  entry->lifting = staticLifting(key.numbers);
  entry->samples = {key.numbers};
  entry->graph = piece.graph;
  std::string loc = piece.graph.nodes.empty() ? "" : locText(piece.graph.nodes[0].loc);
  if (logEnabled("graph"))
    logLine("graph", str(name_, "\n", print(piece.graph)));
  if (bucket.entries.empty()) {
    event({CompileEvent::Kind::Compile, loc, str("compiled a graph of ", piece.graph.nodes.size(), " ops"), ""});
  } else {
    // Generalise the entry that already covers most; what it was made from must stay covered.
    auto general = std::max_element(bucket.entries.begin(), bucket.entries.end(), [](auto &a, auto &b) {
      return a->lifting.positions.size() < b->lifting.positions.size();
    });
    std::vector<std::vector<int64_t>> samples = (*general)->samples;
    event({CompileEvent::Kind::Recompile, loc,
           str("compiled again: ", difference(samples.back(), key.numbers, key.inputNumbers)), ""});
    samples.push_back(key.numbers);
    try {
      Lifting lifted;
      std::vector<Fact> facts;
      Graph graph;
      std::vector<std::vector<int64_t>> pinned;
      // An op may want one exact size (1, to broadcast): then that number is no symbol, and the rest is lifted again.
      for (size_t pins = 1; pins;) {
        lifted = antiUnify(samples, key.inputNumbers, pinned);
        graph = liftGraph(piece, lifted, facts);
        pins = 0;
        for (const Fact &f : facts)
          if (int64_t k = symbolFixedBy(f); k >= 0) {
            std::vector<int64_t> column;
            for (const auto &s : samples)
              column.push_back(s[lifted.positions[k]]);
            pinned.push_back(std::move(column));
            ++pins;
          }
      }
      entry->lifting = std::move(lifted);
      entry->facts = std::move(facts);
      entry->graph = std::move(graph);
      entry->samples = std::move(samples);
    } catch (const Error &e) { // sizes that the ops can't generalise over: this recording gets static code
      if (logEnabled("recompiles"))
        logLine("recompiles", str(name_, ": sizes can't be lifted: ", e.what()));
    }
    if (bucket.entries.size() >= kMaxEntries && !bucket.saidLimit) {
      bucket.saidLimit = true;
      logLine("recompiles",
              str(name_, " was compiled ", bucket.entries.size(),
                  " times for one program; the oldest code is dropped from now on: ", events_.back().text));
    }
    while (bucket.entries.size() >= kMaxEntries)
      bucket.entries.pop_back();
  }
  symbols = entry->lifting.symbols(key.numbers);
  entry->lastNumbers = key.numbers;
  entry->lastSymbols = symbols;
  try {
    FactSink sink; // what rules and passes decide by the sizes at hand is as much a guard as what meta functions did
    entry->compiled = build(entry->graph, piece);
    for (const Fact &f : sink.take())
      if (std::find(entry->facts.begin(), entry->facts.end(), f) == entry->facts.end())
        entry->facts.push_back(f);
  } catch (const std::exception &e) {
    entry->failure = e.what();
    warnOnce(str(name_, ": a graph of ", piece.graph.nodes.size(),
                 " ops could not be compiled and runs in the interpreter: ", e.what()));
    event({CompileEvent::Kind::Fallback, loc, str("not compiled: ", e.what()),
           "the results stay right; report the replay command"});
  }
  if (logEnabled("guards"))
    for (const Fact &f : entry->facts)
      logLine("guards", str(name_, ": ", str(f)));
  bucket.entries.insert(bucket.entries.begin(), entry);
  return entry;
}

void CompiledFunction::runPiece(trace::Piece &piece, std::vector<Tensor> &outs) {
  if (piece.graph.nodes.size() < kMinNodes) {
    count([](CompileStats &s) { s.smallPieces++; });
    if (!saidSmall_.exchange(true))
      event({CompileEvent::Kind::Compile, piece.graph.nodes.empty() ? "" : locText(piece.graph.nodes[0].loc),
             str("a piece of ", piece.graph.nodes.size(), " ops runs their eager kernels: compiling starts at ",
                 kMinNodes),
             ""});
    return interpret(piece.graph, piece.inputs, piece.numbers, {}, outs);
  }
  Skeleton key = skeletonOf(piece);
  std::vector<int64_t> symbols;
  std::shared_ptr<CacheEntry> entry;
  bool hit;
  {
    std::lock_guard<std::mutex> lock(cache_->mutex);
    entry = lookUp(key, symbols);
    hit = entry != nullptr;
    if (!entry)
      entry = compile(piece, key, symbols);
    entry->hits++;
  }
  if (!entry->compiled) {
    if (!entry->failure.empty())
      count([](CompileStats &s) { s.fallbacks++; });
    return interpret(entry->graph, piece.inputs, piece.numbers, symbols, outs);
  }
  try {
    entry->compiled->run(piece.inputs, piece.numbers, symbols, outs);
  } catch (const Error &e) {
    if (e.kind() == ErrorKind::Memory)
      throw;
    // A kernel found bad data before anything was written: eager kernels raise the error that names the op. If they do
    // not, their results are right and the difference is said.
    interpret(entry->graph, piece.inputs, piece.numbers, symbols, outs);
    count([](CompileStats &s) { s.fallbacks++; });
    warnOnce(str(name_, ": compiled code failed where eager code does not: ", e.what()));
    return;
  }
  if (hit)
    count([](CompileStats &s) { s.hits++; });
}

std::string CompiledFunction::explain() const {
  std::ostringstream os;
  os << "compiled function " << name_ << "\n";
  {
    std::lock_guard<std::mutex> lock(cache_->mutex);
    size_t n = 0;
    for (auto &[hash, bucket] : cache_->buckets)
      for (auto &e : bucket.entries) {
        os << "graph " << n++ << ": " << e->graph.nodes.size() << " ops, " << e->graph.inputs.size() << " inputs, "
           << e->graph.outputs.size() << " outputs, ran " << e->hits << " times";
        if (e->compiled) {
          GraphStats s = e->compiled->stats();
          os << "; " << s.kernels << " kernels, " << s.libraryCalls << " library calls, " << s.otherSteps
             << " other steps, compiled in " << s.compileSeconds << " s";
        } else {
          os << "; runs in the interpreter" << (e->failure.empty() ? "" : ": " + e->failure);
        }
        os << "\n";
        for (size_t k = 0; k < e->graph.symbols.size(); ++k)
          os << "  size s" << k << " varies (now " << e->lastSymbols[k] << ")\n";
        for (const Fact &f : e->facts)
          os << "  guard: " << str(f) << "\n";
        if (e->compiled)
          os << e->compiled->describe();
      }
  }
  // One line for what happened again and again, in the order of the first time.
  std::vector<std::pair<std::string, int>> lines;
  for (const CompileEvent &e : events()) {
    static const char *kinds[] = {"compile", "recompile", "break", "fallback", "limit"};
    std::string line = str(kinds[static_cast<int>(e.kind)], e.loc.empty() ? "" : " at ", e.loc, ": ", e.text,
                           e.action.empty() ? "" : "; ", e.action);
    auto known = std::find_if(lines.begin(), lines.end(), [&](auto &l) { return l.first == line; });
    if (known == lines.end())
      lines.push_back({line, 1});
    else
      ++known->second;
  }
  for (auto &[line, times] : lines)
    os << line << (times > 1 ? str(" (", times, " times)") : "") << "\n";
  return os.str();
}

std::string CompiledFunction::graphJson() const {
  std::lock_guard<std::mutex> lock(cache_->mutex);
  std::shared_ptr<CompiledGraph> best;
  size_t most = 0;
  for (auto &[hash, bucket] : cache_->buckets)
    for (auto &e : bucket.entries)
      if (e->compiled && e->graph.nodes.size() >= most) {
        most = e->graph.nodes.size();
        best = e->compiled;
      }
  return best ? best->json() : "{}";
}

namespace {
/// The backward of compiled forwards, called outside of any region.
void backwardRegion(void (*body)(void *), void *context) {
  static Ref<CompiledFunction> function = makeRef<CompiledFunction>("backward", CompileOptions{false, true});
  CompiledCall call(function);
  body(context);
  call.finish();
}
} // namespace

void installCompile() {
  setBackwardRegion(backwardRegion);
  Storage::exportHook = [](Storage &storage) {
    if (activeRecorder)
      activeRecorder->exporting(storage);
  };
}

CompiledCall::CompiledCall(Ref<CompiledFunction> function) : function_(std::move(function)) {
  if (activeCall || currentInterceptor() || knobs().mode == "eager")
    return;
  CompiledFunction *f = function_.get();
  recorder_ = std::move(spareRecorder);
  auto runner = [f](trace::Piece &piece, std::vector<Tensor> &outs) { f->runPiece(piece, outs); };
  if (recorder_)
    recorder_->restart(runner);
  else
    recorder_ = std::make_unique<trace::Recorder>(runner);
  recorder_->onBreak = [f](const trace::FlushEvent &e) { f->onBreak(e); };
  scope_ = std::make_unique<InterceptorScope>(recorder_.get());
  activeCall = this;
  activeRecorder = recorder_.get();
}

void CompiledCall::finish() {
  if (recorder_)
    recorder_->flush(trace::FlushReason::Exit, "return");
}

CompiledCall::~CompiledCall() {
  if (!recorder_)
    return;
  bool failed = false;
  try {
    recorder_->flush(trace::FlushReason::Exit, "an exception");
  } catch (...) { // the first exception is the one the user sees; tensors of the failed piece say so when read
    failed = true;
  }
  scope_.reset();
  activeCall = nullptr;
  activeRecorder = nullptr;
  if (failed)
    recorder_->abandon(
        "this tensor was recorded by a compiled call that did not finish\nuse the results of a call that returned");
  spareRecorder = std::move(recorder_);
}

DisableScope::DisableScope(const std::string &what) {
  if (isCompiling()) {
    activeRecorder->flush(trace::FlushReason::Value, what);
    scope_ = std::make_unique<InterceptorScope>(nullptr);
  }
}
DisableScope::~DisableScope() = default;

} // namespace dlc
