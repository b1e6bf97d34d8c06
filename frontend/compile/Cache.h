// The cache of one compiled function: buckets of programs that differ in their numbers only, each with its compiled
// graphs. All of it is guarded by one lock that is held for look-ups, never while something compiles.
#pragma once
#include "frontend/compile/Compile.h"
#include "frontend/compile/Runs.h"
#include "frontend/compile/Skeleton.h"
#include "runtime/core/ForkSafe.h"
#include <set>
#include <unordered_map>

namespace dlc {

/// One compiled graph: the numbers it was made from, how they generalise, what it rests on.
struct CacheEntry {
  std::vector<std::vector<int64_t>> samples;
  Lifting lifting;
  std::vector<Fact> facts;
  Graph graph;                             // what was compiled, or what the interpreter runs
  std::shared_ptr<GradPlan> plan;          // of a piece with gradients: `graph` is its forward
  std::shared_ptr<CompiledGraph> compiled; // null: the interpreter runs it
  std::string failure;
  std::atomic<int64_t> hits{0};
  std::vector<int64_t> lastNumbers, lastSymbols; // the last match, so that a repeated shape costs one comparison
};

/// The entries of one skeleton. Only one thread at a time compiles for it; the others wait, since what it makes may
/// serve them too.
struct CacheBucket {
  std::string bytes;
  std::vector<std::shared_ptr<CacheEntry>> entries; // most recently used first
  bool saidLimit = false;

  bool building() const { return builder_ == forkGeneration() + 1; }
  void setBuilding(bool on) { builder_ = on ? forkGeneration() + 1 : 0; }

private:
  uint64_t builder_ = 0; // fork generation + 1 of the thread that compiles: in a forked child there is no such thread
};

/// A piece that has been looked up: what runs it, as often as wanted.
struct CompiledFunction::Ready {
  const Graph *graph = nullptr;      // for the interpreter where there is no entry
  std::shared_ptr<CacheEntry> entry; // null: too small to compile, or being compiled in the background
  std::vector<int64_t> symbols;
  bool hit = false;
};

struct CompiledFunction::Cache {
  mutable ForkMutex mutex;
  ChangeSignal changed; // bumped whenever a bucket stops building
  std::unordered_multimap<uint64_t, std::shared_ptr<CacheBucket>> buckets;
  KnownBodies bodies;                           // of loops
  std::set<size_t> straight;                    // sizes of recordings without loops worth rolling
  std::unordered_map<uint64_t, bool> plannable; // by what canPlan() looked at
  std::atomic<int> ready{0}, queued{0};         // entries that exist; compilations that wait for the background thread

  std::shared_ptr<CacheBucket> bucket(const Skeleton &key) {
    auto range = buckets.equal_range(key.hash);
    for (auto it = range.first; it != range.second; ++it)
      if (it->second->bytes == key.bytes)
        return it->second;
    auto made = std::make_shared<CacheBucket>();
    made->bytes = key.bytes;
    buckets.emplace(key.hash, made);
    return made;
  }
};

} // namespace dlc
