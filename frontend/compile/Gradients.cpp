// Calls whose results have gradient histories: plans kept with the compiled graphs, and when to ask for them.
#include "frontend/autograd/GradPlan.h"
#include "frontend/compile/Cache.h"
#include "frontend/compile/Roll.h"
#include "runtime/core/Knobs.h"

namespace dlc {

/// Puts the plan of a piece with gradients into an entry: what is compiled is the plan's forward.
void CompiledFunction::planEntry(CacheEntry &entry, const trace::Piece &piece, const Skeleton &key) {
  if (piece.gradients.roots.empty())
    return;
  auto plan = [&] {
    entry.plan = planGradient(entry.graph, piece.gradients, {piece.sharedInput});
    entry.graph = entry.plan->forward();
    for (const Fact &f : entry.plan->facts())
      if (std::find(entry.facts.begin(), entry.facts.end(), f) == entry.facts.end())
        entry.facts.push_back(f);
  };
  try {
    plan();
  } catch (const Error &e) {
    if (entry.lifting.positions.empty())
      throw;
    if (logEnabled("recompiles"))
      logLine("recompiles", str(name_, ": sizes can't be lifted in the gradients: ", e.what()));
    // The gradients can't generalise over these sizes.
    entry.lifting = staticLifting(key.numbers);
    entry.samples = {key.numbers};
    entry.facts.clear();
    entry.graph = piece.graph;
    plan();
  }
}

/// Decided once a program.
bool CompiledFunction::canPlan(trace::Piece &piece) {
  if (!piece.gradients.unsupported.empty() || options_.background)
    return false;
  uint64_t key = skeletonOf(piece).hash;
  KnownBodies bodies;
  {
    std::lock_guard<ForkMutex> lock(cache_->mutex);
    if (auto it = cache_->plannable.find(key); it != cache_->plannable.end())
      return it->second;
    bodies = cache_->bodies;
  }
  std::string why = whyNoPlan(piece.graph, piece.gradients);
  if (why.empty() && piece.graph.nodes.size() >= kMinRolled && roll(piece, bodies, false))
    why = "it runs as loops";
  if (!why.empty())
    piece.gradients.unsupported = why;
  std::lock_guard<ForkMutex> lock(cache_->mutex);
  return cache_->plannable[key] = why.empty();
}

bool CompiledFunction::logsGradients() const { return leavesTape_.load(std::memory_order_relaxed); }

/// Most functions always end in the same way: inference and whole training steps leave no history.
void CompiledFunction::callEnded(const trace::Recorder &recorder, int64_t nodesMade) {
  bool leaves = const_cast<trace::Recorder &>(recorder).gradLogger()
                    ? recorder.tapeEnd() != trace::Recorder::TapeEnd::None
                    : nodesMade > 0;
  if (leaves != logsGradients())
    leavesTape_.store(leaves, std::memory_order_relaxed);
}

} // namespace dlc
