// Look-up, anti-unification, compilation and the interpreter fallback of recorded pieces. What is said about them is
// in Explain.cpp.
#include "frontend/compile/Background.h"
#include "frontend/compile/Cache.h"
#include "frontend/compile/PieceCode.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/core/Interrupt.h"
#include "runtime/core/Knobs.h"
#include <algorithm>
#include <chrono>
#include <set>

namespace dlc {

namespace {

constexpr size_t kMaxEntries = 16;
constexpr size_t kMaxEvents = 1000;

ForkMutex &statsMutex() {
  static auto *mutex = new ForkMutex; // counts may come in while the process ends
  return *mutex;
}
CompileStats stats;
/// All compiled functions there are, for resetCompiler().
struct Functions {
  ForkMutex mutex;
  std::set<CompiledFunction *> all;
};
Functions &functions() {
  static auto *f = new Functions;
  return *f;
}
Backend backend = nullptr;
std::atomic<uint64_t> resets{0};
void (*blockingScope)(void (*)(void *), void *) = nullptr;

/// Runs what may take long or wait for other threads.
template <class F> void blocking(F &&body) {
  if (!blockingScope)
    return body();
  blockingScope([](void *f) { (*static_cast<std::remove_reference_t<F> *>(f))(); }, &body);
}

thread_local CompiledCall *activeCall = nullptr;
thread_local trace::Recorder *activeRecorder = nullptr;
thread_local int *partsCompiled = nullptr; // see OneCompilation
thread_local int disabledDepth = 0;
/// Compilations that this call leaves to the background thread. They start when it ends, so as not to slow it down.
thread_local std::vector<std::function<void()>> laterJobs;
thread_local std::unique_ptr<trace::Recorder> spareRecorder; // one kept a thread, with the memory of its tables

template <class F> void count(F &&f) {
  std::lock_guard<ForkMutex> lock(statsMutex());
  f(stats);
}

/// Asks for all locations once: they are known from then on, and nothing that compiles may ask Python.
void learnLocations(const Graph &g) {
  for (const GraphNode &n : g.nodes)
    locText(n.loc);
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

OneCompilation::OneCompilation() { partsCompiled = &compiled_; }
OneCompilation::~OneCompilation() {
  partsCompiled = nullptr;
  count([&](CompileStats &c) { c.compilations += compiled_ > 0; });
}
CompileStats compileStats() {
  std::lock_guard<ForkMutex> lock(statsMutex());
  return stats;
}
void resetCompileStats() {
  std::lock_guard<ForkMutex> lock(statsMutex());
  stats = CompileStats();
}
void countHit() {
  count([](CompileStats &s) { s.hits++; });
}
void countSmallPiece() {
  count([](CompileStats &s) { s.smallPieces++; });
}
void setBackend(Backend b) { backend = b; }
Backend currentBackend() { return backend; }
uint64_t compilerResets() { return resets.load(std::memory_order_relaxed); }
void setBlockingScope(void (*scope)(void (*)(void *), void *)) { blockingScope = scope; }
bool isCompilingDisabled() { return disabledDepth > 0; }
bool isCompiling() { return activeRecorder != nullptr && currentInterceptor() == activeRecorder; }

CompiledFunction::CompiledFunction(std::string name, CompileOptions options)
    : name_(std::move(name)), options_(options), cache_(std::make_unique<Cache>()) {
  std::lock_guard<ForkMutex> lock(functions().mutex);
  functions().all.insert(this);
}
CompiledFunction::~CompiledFunction() {
  std::lock_guard<ForkMutex> lock(functions().mutex);
  functions().all.erase(this);
}

void CompiledFunction::reset() {
  decltype(cache_->buckets) dropped; // destroyed without the lock
  std::lock_guard<ForkMutex> lock(cache_->mutex);
  dropped.swap(cache_->buckets);
  cache_->ready = 0;
  events_.clear();
  saidBreak_ = false;
  saidSmall_ = false;
}

void resetCompiler() {
  resets++;
  std::lock_guard<ForkMutex> lock(functions().mutex);
  for (CompiledFunction *f : functions().all)
    f->reset();
}

bool CompiledFunction::waitsForCode() const {
  return options_.background && cache_->queued > 0 && cache_->ready == 0 && forkGeneration() == 0;
}

bool CompiledFunction::lacksCode() const { return options_.background && cache_->ready == 0 && forkGeneration() == 0; }

void CompiledFunction::event(CompileEvent e) {
  static const char *topics[] = {"recompiles", "recompiles", "breaks", "breaks", "recompiles"};
  const char *topic = topics[static_cast<int>(e.kind)];
  if (logEnabled(topic))
    logLine(topic, str(name_, e.loc.empty() ? "" : " at ", e.loc, ": ", e.text));
  std::lock_guard<ForkMutex> lock(cache_->mutex);
  events_.push_back(std::move(e));
  if (events_.size() > kMaxEvents)
    events_.pop_front();
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
  bool first;
  {
    std::lock_guard<ForkMutex> lock(cache_->mutex);
    first = !std::exchange(saidBreak_, true);
  }
  if (first && !options_.quiet)
    logLine("break", str(name_, " runs as more than one graph: broken", e.loc.empty() ? "" : " at ", e.loc, " because ",
                         why, " (dlc.explain lists all breaks)"));
}

/// Under the lock.
std::shared_ptr<CacheEntry> CompiledFunction::lookUp(CacheBucket &bucket, const Skeleton &key,
                                                     std::vector<int64_t> &symbols) {
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
  DLC_CHECK(knobs().fault != "compile", "DLC_FAULT=compile");
  learnLocations(g);
  auto start = std::chrono::steady_clock::now();
  std::shared_ptr<CompiledGraph> compiled;
  std::exception_ptr failed;
  blocking([&] {
    ForkGate gate;
    try {
      compiled =
          backend(g, {name_, piece.sharedInput, piece.stateInput, options_.tuningSeconds, options_.tuningProgress});
    } catch (...) {
      failed = std::current_exception();
    }
  });
  if (failed)
    std::rethrow_exception(failed);
  GraphStats s = compiled->stats();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (partsCompiled)
    ++*partsCompiled;
  count([&](CompileStats &c) {
    c.compilations += !partsCompiled;
    c.kernels += s.kernels;
    c.libraryCalls += s.libraryCalls;
    c.otherSteps += s.otherSteps;
    c.llvmCompilations += s.llvmCompilations;
    c.cacheHits += s.cacheHits;
    c.compileSeconds += seconds;
  });
  return compiled;
}

/// Lifts what differs between the samples, or is asked for by hints. Where the ops can't generalise over it, the entry
/// stays as it is.
void CompiledFunction::generalise(CacheEntry &entry, const trace::Piece &piece, const Skeleton &key,
                                  std::vector<std::vector<int64_t>> samples) {
  std::vector<LiftHint> hints = liftHints(piece, options_.dynamic == CompileOptions::Dynamic::Always);
  // A size that is marked static has code of its own: other sizes of it say nothing about this one.
  samples.erase(std::remove_if(samples.begin(), samples.end(),
                               [&](const std::vector<int64_t> &s) {
                                 for (size_t i = 0; i < hints.size(); ++i)
                                   if (hints[i] == LiftHint::Fix && s[i] != key.numbers[i])
                                     return true;
                                 return false;
                               }),
                samples.end());
  samples.push_back(key.numbers);
  if (hints.empty() && samples.size() == 1)
    return;
  try {
    Lifting lifted;
    std::vector<Fact> facts;
    Graph graph;
    std::vector<std::vector<int64_t>> pinned;
    // An op may want one exact size (1, to broadcast): then that number is no symbol, and the rest is lifted again.
    for (size_t pins = 1; pins;) {
      lifted = antiUnify(samples, key.inputNumbers, pinned, hints);
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
    for (size_t i = 0; i < hints.size(); ++i)
      if (hints[i] == LiftHint::Lift && lifted.forms[i].isConst() && key.numbers[i] > 1)
        event({CompileEvent::Kind::Limit, piece.graph.nodes.empty() ? "" : locText(piece.graph.nodes[0].loc),
               str("a size marked dynamic is always ", key.numbers[i], ": some op takes no other"),
               "take the mark away, or make the program work for other sizes"});
    entry.lifting = std::move(lifted);
    entry.facts = std::move(facts);
    entry.graph = std::move(graph);
    entry.samples = std::move(samples);
  } catch (const Error &e) { // sizes that the ops can't generalise over: this recording gets static code
    if (logEnabled("recompiles"))
      logLine("recompiles", str(name_, ": sizes can't be lifted: ", e.what()));
  }
}

/// The entry for a recording that none of the `others` serves, all but its code.
std::shared_ptr<CacheEntry> CompiledFunction::draft(const trace::Piece &piece, const Skeleton &key,
                                                    const std::vector<std::shared_ptr<CacheEntry>> &others) {
  auto entry = std::make_shared<CacheEntry>();
  entry->lifting = staticLifting(key.numbers);
  entry->samples = {key.numbers};
  entry->graph = piece.graph;
  std::string loc = piece.graph.nodes.empty() ? "" : locText(piece.graph.nodes[0].loc);
  if (logEnabled("graph"))
    logLine("graph", str(name_, "\n", print(piece.graph)));
  std::vector<std::vector<int64_t>> samples;
  if (others.empty()) {
    event({CompileEvent::Kind::Compile, loc, str("compiled a graph of ", piece.graph.nodes.size(), " ops"), ""});
  } else {
    // Generalise the entry that already covers most; what it was made from must stay covered.
    auto general = std::max_element(others.begin(), others.end(), [](auto &a, auto &b) {
      return a->lifting.positions.size() < b->lifting.positions.size();
    });
    samples = (*general)->samples;
    event({CompileEvent::Kind::Recompile, loc,
           str("compiled again: ", difference(samples.back(), key.numbers, key.inputNumbers)), ""});
  }
  samples.insert(samples.end(), key.alike.begin(), key.alike.end());
  if (options_.dynamic != CompileOptions::Dynamic::Never)
    generalise(*entry, piece, key, std::move(samples));
  planEntry(*entry, piece, key);
  entry->lastNumbers = key.numbers;
  entry->lastSymbols = entry->lifting.symbols(key.numbers);
  return entry;
}

/// Makes the entry's code. A failure leaves it to the interpreter.
void CompiledFunction::finish(CacheEntry &entry, const trace::Piece &piece) {
  try {
    FactSink sink; // what rules and passes decide by the sizes at hand is as much a guard as what meta functions did
    entry.compiled = build(entry.graph, piece);
    for (const Fact &f : sink.take())
      if (std::find(entry.facts.begin(), entry.facts.end(), f) == entry.facts.end())
        entry.facts.push_back(f);
  } catch (const std::exception &e) {
    entry.failure = e.what();
    warnOnce(str(name_, ": a graph of ", piece.graph.nodes.size(),
                 " ops could not be compiled and runs in the interpreter: ", e.what()));
    event({CompileEvent::Kind::Fallback, piece.graph.nodes.empty() ? "" : locText(piece.graph.nodes[0].loc),
           str("not compiled: ", e.what()), "the results stay right; report the replay command"});
  }
  if (logEnabled("guards"))
    for (const Fact &f : entry.facts)
      logLine("guards", str(name_, ": ", str(f)));
}

/// Compiles for a bucket that this thread has marked as building, and ends the mark.
std::shared_ptr<CacheEntry> CompiledFunction::compileFor(CacheBucket &bucket, const trace::Piece &piece,
                                                         const Skeleton &key) {
  std::vector<std::shared_ptr<CacheEntry>> others, dropped;
  std::shared_ptr<CacheEntry> entry;
  std::string limit;
  auto end = [&] {
    {
      std::lock_guard<ForkMutex> lock(cache_->mutex);
      bucket.setBuilding(false);
      if (entry) {
        if (bucket.entries.size() >= kMaxEntries && !std::exchange(bucket.saidLimit, true))
          limit = str(name_, " was compiled ", bucket.entries.size(),
                      " times for one program; the oldest code is dropped from now on",
                      events_.empty() ? "" : ": " + events_.back().text);
        for (; bucket.entries.size() >= kMaxEntries; bucket.entries.pop_back())
          dropped.push_back(bucket.entries.back());
        bucket.entries.insert(bucket.entries.begin(), entry);
        cache_->ready++;
      }
    }
    cache_->changed.bump();
    if (!limit.empty())
      logLine("recompiles", limit);
  };
  try {
    {
      std::lock_guard<ForkMutex> lock(cache_->mutex);
      others = bucket.entries;
    }
    auto made = draft(piece, key, others);
    finish(*made, piece);
    entry = std::move(made);
  } catch (...) {
    end();
    throw;
  }
  end();
  return entry;
}

/// Leaves the compilation to the background thread. The caller has marked the bucket as building.
bool CompiledFunction::enqueue(const trace::Piece &piece, Skeleton key, std::shared_ptr<CacheBucket> bucket) {
  auto copy = std::make_shared<trace::Piece>();
  copy->graph = piece.graph;
  copy->sharedInput = piece.sharedInput;
  copy->stateInput = piece.stateInput;
  copy->marks = piece.marks;
  learnLocations(piece.graph);
  if (!backgroundCompiles())
    return false;
  cache_->queued++;
  auto job = [self = Ref<CompiledFunction>(this), copy, key = std::move(key), bucket] {
    try {
      self->compileFor(*bucket, *copy, key);
    } catch (const std::exception &e) { // out of memory, or the like: the next call tries again
      warnOnce(str(self->name_, ": compiling in the background failed: ", e.what()));
    }
    self->cache_->queued--;
  };
  if (activeCall)
    laterJobs.push_back(std::move(job));
  else if (!compileInBackground(job))
    job();
  return true;
}

/// The entry that serves the recording, compiled if there is none; null: it is being compiled in the background.
std::shared_ptr<CacheEntry> CompiledFunction::entryFor(trace::Piece &piece, Skeleton &key,
                                                       std::vector<int64_t> &symbols, bool &hit) {
  bool background = options_.background && knobs().mode != "interpret" && backend && piece.gradients.roots.empty();
  std::shared_ptr<CacheBucket> bucket;
  for (;;) {
    uint32_t seen = cache_->changed.now();
    {
      std::lock_guard<ForkMutex> lock(cache_->mutex);
      bucket = cache_->bucket(key);
      if (auto entry = lookUp(*bucket, key, symbols)) {
        hit = true;
        entry->hits++;
        return entry;
      }
      if (!bucket->building()) {
        bucket->setBuilding(true);
        break;
      }
    }
    if (background)
      return nullptr;
    blocking([&] { cache_->changed.wait(seen, 50); });
    throwIfInterrupted();
  }
  if (background && enqueue(piece, key, bucket))
    return nullptr;
  auto entry = compileFor(*bucket, piece, key);
  std::lock_guard<ForkMutex> lock(cache_->mutex);
  symbols = entry->lifting.symbols(key.numbers);
  entry->hits++;
  return entry;
}

CompiledFunction::Ready CompiledFunction::prepare(trace::Piece &piece) {
  Ready r;
  r.graph = &piece.graph;
  if (isSmallPiece(piece.graph) && piece.gradients.roots.empty())
    return r;
  Skeleton key = skeletonOf(piece);
  return prepare(piece, key);
}

CompiledFunction::Ready CompiledFunction::prepare(trace::Piece &piece, Skeleton &key) {
  Ready r;
  r.graph = &piece.graph;
  r.entry = entryFor(piece, key, r.symbols, r.hit);
  if (r.entry && !r.entry->failure.empty())
    DLC_REQUIRE(!options_.fullgraph, Runtime, name_,
                ": fullgraph=True, but a graph could not be compiled: ", r.entry->failure);
  return r;
}

bool runEntry(const CacheEntry &entry, const std::string &name, Span<const Tensor> inputs, Span<const Number> numbers,
              Ints symbols, std::vector<Tensor> &outs) {
  if (!entry.compiled) {
    count([&](CompileStats &s) { s.fallbacks += !entry.failure.empty(); });
    interpret(entry.graph, inputs, numbers, symbols, outs);
    return false;
  }
  try {
    DLC_CHECK(knobs().fault != "run", "DLC_FAULT=run");
    entry.compiled->run(inputs, numbers, symbols, outs);
    return true;
  } catch (const Error &e) {
    // A kernel found bad data, or memory ran out, before anything was written: eager kernels raise the error that names
    // the op and its line. If they do not, their results are right and the difference is said.
    interpret(entry.graph, inputs, numbers, symbols, outs);
    count([](CompileStats &s) { s.fallbacks++; });
    warnOnce(str(name, ": compiled code failed where eager code does not: ", e.what()));
    return false;
  }
}

bool CompiledFunction::run(const Ready &r, Span<const Tensor> inputs, Span<const Number> numbers,
                           std::vector<Tensor> &outs) {
  if (r.entry)
    return runEntry(*r.entry, name_, inputs, numbers, r.symbols, outs);
  interpret(*r.graph, inputs, numbers, {}, outs);
  return isSmallPiece(*r.graph);
}

void CompiledFunction::runPiece(trace::Piece &piece, std::vector<Tensor> &outs) {
  bool plan = !piece.gradients.roots.empty();
  if (!plan && tryRolled(piece, outs))
    return;
  Ready ready = prepare(piece);
  if (plan) {
    piece.plan = ready.entry->plan;
    piece.symbols = ready.symbols;
  }
  if (isSmallPiece(piece.graph) && !plan) {
    count([](CompileStats &s) { s.smallPieces++; });
    if (!saidSmall_.exchange(true))
      event({CompileEvent::Kind::Compile, piece.graph.nodes.empty() ? "" : locText(piece.graph.nodes[0].loc),
             str("a piece of ", piece.graph.nodes.size(), " ops runs their eager kernels: compiling starts at ",
                 kMinNodes),
             ""});
    if (piece.record)
      recordSmallPiece(piece);
  } else if (piece.record && ready.entry) {
    recordEntry(piece, ready.entry, ready.symbols, Ref<CompiledFunction>(this));
  }
  bool done = run(ready, piece.inputs, piece.numbers, outs);
  count([&](CompileStats &s) { s.hits += done && ready.hit; });
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
  gradEvents.stored = [](const Tensor &leaf, const Tensor &grad, bool inPlace) {
    if (trace::Observer *o = activeRecorder ? activeRecorder->observer() : nullptr)
      o->gradStored(leaf, grad, inPlace);
  };
  gradEvents.opaque = [](const char *what) {
    if (trace::Observer *o = activeRecorder ? activeRecorder->observer() : nullptr)
      o->notReplayable(str("backward ran ", what));
  };
  Storage::exportHook = [](Storage &storage) {
    if (activeRecorder)
      activeRecorder->exporting(storage);
  };
}

CompiledCall::CompiledCall(Ref<CompiledFunction> function, trace::Observer *observer) : function_(std::move(function)) {
  if (activeCall || disabledDepth || currentInterceptor() || knobs().mode == "eager" || function_->waitsForCode())
    return;
  CompiledFunction *f = function_.get();
  recorder_ = std::move(spareRecorder);
  auto runner = [f](trace::Piece &piece, std::vector<Tensor> &outs) { f->runPiece(piece, outs); };
  if (recorder_)
    recorder_->restart(runner);
  else
    recorder_ = std::make_unique<trace::Recorder>(runner);
  recorder_->keepMarks(f->options().dynamic == CompileOptions::Dynamic::Always);
  recorder_->onBreak = [f](const trace::FlushEvent &e) { f->onBreak(e); };
  recorder_->setObserver(observer);
  recorder_->canPlan = [f](trace::Piece &piece) { return f->canPlan(piece); };
  recorder_->logGradients(observer || f->logsGradients());
  nodesAtStart_ = recordedNodesAlive();
  scope_ = std::make_unique<InterceptorScope>(recorder_.get());
  if (SymbolicHost *host = recorder_->symbolicSizes())
    symbols_ = std::make_unique<SymbolicScope>(host);
  activeCall = this;
  activeRecorder = recorder_.get();
}

void CompiledCall::finish() {
  if (!recorder_)
    return;
  recorder_->flush(trace::FlushReason::Exit, "return");
  function_->callEnded(*recorder_, recordedNodesAlive() - nodesAtStart_);
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
  symbols_.reset();
  scope_.reset();
  activeCall = nullptr;
  activeRecorder = nullptr;
  if (failed)
    recorder_->abandon(
        "this tensor was recorded by a compiled call that did not finish\nuse the results of a call that returned");
  recorder_->setObserver(nullptr);
  spareRecorder = std::move(recorder_);
  for (auto &job : std::exchange(laterJobs, {}))
    if (!compileInBackground(job))
      job();
}

DisableScope::DisableScope(const std::string &what, bool recursive)
    : recursive_(recursive), call_(activeCall), recorder_(activeRecorder) {
  if (isCompiling()) {
    activeRecorder->flush(trace::FlushReason::Value, what);
    if (trace::Observer *o = activeRecorder->observer())
      o->notReplayable(str("recording was disabled by ", what));
    scope_ = std::make_unique<InterceptorScope>(nullptr);
  }
  if (recursive_) {
    ++disabledDepth;
  } else {
    activeCall = nullptr;
    activeRecorder = nullptr;
  }
}
DisableScope::~DisableScope() {
  if (recursive_)
    --disabledDepth;
  activeCall = call_;
  activeRecorder = recorder_;
}

} // namespace dlc
