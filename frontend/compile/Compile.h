// Compiled functions: a cache of compiled graphs behind a recording region, and everything that is said about it.
#pragma once
#include "frontend/compile/Backend.h"
#include "frontend/trace/Recorder.h"
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace dlc {

/// Counters since start or the last resetCompileStats().
struct CompileStats {
  int64_t compilations = 0; ///< graph keys compiled
  int64_t breaks = 0;       ///< pieces ended because Python needed a value
  int64_t fallbacks = 0;    ///< graphs or steps that ran in the interpreter or an eager kernel for want of better
  int64_t hits = 0;         ///< pieces served by compiled code without compiling
  int64_t smallPieces = 0;  ///< pieces of fewer than three ops, run by eager kernels
  int64_t kernels = 0, libraryCalls = 0, otherSteps = 0; ///< of all graphs compiled
  int64_t llvmCompilations = 0, cacheHits = 0;
  double compileSeconds = 0;
};
CompileStats compileStats();
void resetCompileStats();

struct CompileOptions {
  bool fullgraph = false; ///< a break or fallback raises
  bool quiet = false;     ///< no line on stderr at the first break
  enum class Dynamic : uint8_t {
    Auto,   ///< sizes are lifted when a second value of them comes
    Always, ///< sizes of inputs are lifted from the first recording on
    Never   ///< each combination of sizes has code of its own
  } dynamic = Dynamic::Auto;
  double tuningSeconds = 0; ///< how long schedules of kernels may be measured, for each graph
  int tuningProgress = 0;   ///< the bar of it: 0 on a terminal, 1 always, 2 never
  bool background = false;  ///< calls run eagerly until a thread has compiled their code
};

/// Something worth telling about a compiled function.
struct CompileEvent {
  enum class Kind : uint8_t { Compile, Recompile, Break, Fallback, Limit } kind;
  std::string loc;    ///< the user's file:line
  std::string text;   ///< what happened and why
  std::string action; ///< what to do about it
};

struct CacheBucket;
struct CacheEntry;
struct Skeleton;

/// The compiled state of one function. Threads may call it at the same time.
class CompiledFunction : public RefCounted {
public:
  CompiledFunction(std::string name, CompileOptions options);
  ~CompiledFunction();
  const std::string &name() const { return name_; }
  const CompileOptions &options() const { return options_; }
  std::vector<CompileEvent> events() const;
  /// All compiled graphs with their plans, events, guards, as text.
  std::string explain() const;
  /// The same graphs as a JSON list: counts, times, memory, guards, and the user's lines with the ops of each.
  std::string explainJson() const;
  /// The fused graph of the entry with the most steps, as JSON.
  std::string graphJson() const;
  size_t numEntries() const;
  /// Drops all code and events; running calls end with what they have.
  void reset();
  /// True if this call is to run without recording: its code is on the way and there is none yet.
  bool waitsForCode() const;
  /// True while the background thread has made no code yet: calls are to cost little more than eager ones.
  bool lacksCode() const;

private:
  friend class CompiledCall;
  friend class RolledCode;
  struct Ready;
  void runPiece(trace::Piece &piece, std::vector<Tensor> &outs);
  Ready prepare(trace::Piece &piece);
  Ready prepare(trace::Piece &piece, Skeleton &key);
  std::vector<Ready> prepareSteps(struct RolledPart &part);
  /// True if compiled code, or the kernels of a piece too small for it, did it.
  bool run(const Ready &ready, Span<const Tensor> inputs, Span<const Number> numbers, std::vector<Tensor> &outs);
  /// All steps of a part in a row; false if they must run one by one.
  bool runLoop(const Ready &ready, const PlanSteps &steps, Span<const Number> numbers);
  bool tryRolled(trace::Piece &piece, std::vector<Tensor> &outs);
  bool runRolled(std::shared_ptr<struct RolledGraph> rolled, trace::Piece &piece, std::vector<Tensor> &outs);
  void recordRolled(trace::Piece &piece, std::shared_ptr<const RolledGraph> rolled,
                    const std::vector<std::vector<Ready>> &ready);
  std::shared_ptr<CacheEntry> lookUp(CacheBucket &bucket, const Skeleton &key, std::vector<int64_t> &symbols);
  std::shared_ptr<CacheEntry> entryFor(trace::Piece &piece, Skeleton &key, std::vector<int64_t> &symbols, bool &hit);
  bool enqueue(const trace::Piece &piece, Skeleton key, std::shared_ptr<CacheBucket> bucket);
  std::shared_ptr<CacheEntry> compileFor(CacheBucket &bucket, const trace::Piece &piece, const Skeleton &key);
  std::shared_ptr<CacheEntry> draft(const trace::Piece &piece, const Skeleton &key,
                                    const std::vector<std::shared_ptr<CacheEntry>> &others);
  void generalise(CacheEntry &entry, const trace::Piece &piece, const Skeleton &key,
                  std::vector<std::vector<int64_t>> samples);
  void finish(CacheEntry &entry, const trace::Piece &piece);
  std::shared_ptr<CompiledGraph> build(const Graph &g, const trace::Piece &piece);
  void planEntry(CacheEntry &entry, const trace::Piece &piece, const Skeleton &key);
  bool canPlan(trace::Piece &piece);
  bool logsGradients() const;
  void callEnded(const trace::Recorder &recorder, int64_t nodesMade);
  void onBreak(const trace::FlushEvent &e);
  void event(CompileEvent e);

  std::string name_;
  CompileOptions options_;
  struct Cache;
  std::unique_ptr<Cache> cache_;
  std::deque<CompileEvent> events_; // guarded by the cache's lock, as saidBreak_ is
  bool saidBreak_ = false;
  std::atomic<bool> saidSmall_{false};
  std::atomic<bool> leavesTape_{true}; // whether calls may end with histories: then gradients are logged
};

/// Drops all code of all compiled functions.
void resetCompiler();
/// How often that happened: what others keep of compiled functions is stale when it changes.
uint64_t compilerResets();

/// How to wait and compile: `scope` calls body(context) once, without locks that other threads may need (the GIL).
void setBlockingScope(void (*scope)(void (*body)(void *), void *context));

/// A recording region on this thread. Nested in another region it does nothing: the outer one records.
class CompiledCall {
public:
  /// `observer` sees the recording; it must outlive the call.
  explicit CompiledCall(Ref<CompiledFunction> function, trace::Observer *observer = nullptr);
  /// False if another region records, or compiling is off: then nothing is observed.
  bool active() const { return recorder_ != nullptr; }
  /// Ends the region normally: runs what is pending.
  void finish();
  /// Ends it after an exception: runs what is pending, so that effects before the exception are kept as in Python.
  ~CompiledCall();

private:
  Ref<CompiledFunction> function_;
  std::unique_ptr<trace::Recorder> recorder_;
  std::unique_ptr<InterceptorScope> scope_;
  std::unique_ptr<SymbolicScope> symbols_;
  int64_t nodesAtStart_ = 0; // of the tape, made while recording and alive
};

/// Connects capture to autograd. Called once at start.
void installCompile();

/// True inside a recording region of this thread (dlc.compiler.is_compiling).
bool isCompiling();
/// True inside a recursive DisableScope of this thread: compiled functions are to run eagerly.
bool isCompilingDisabled();
/// Runs ops eagerly for the scope, ending the current piece first (dlc.compiler.disable). `recursive`: compiled
/// functions called in it run eagerly too, otherwise they record on their own.
class DisableScope {
public:
  explicit DisableScope(const std::string &what, bool recursive = true);
  ~DisableScope();
  DisableScope(const DisableScope &) = delete;

private:
  std::unique_ptr<InterceptorScope> scope_;
  bool recursive_;
  CompiledCall *call_;
  trace::Recorder *recorder_;
};

} // namespace dlc
