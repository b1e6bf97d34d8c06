// Recordings that run as loops: when to roll, looking up the parts, running them.
#include "frontend/compile/Cache.h"
#include "frontend/compile/PieceCode.h"
#include "frontend/compile/Roll.h"
#include "runtime/core/Knobs.h"
#include <algorithm>

namespace dlc {
namespace {
/// Compiled however short: the interpreter writes to copies of what an optimizer's step changes.
bool writes(const Graph &g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const GraphNode &n) { return n.op->has(kMutates); });
}
} // namespace

/// What runs the steps of a part: one for all, or one for each if an index or size differs. Empty if the ops can't be
/// compiled for more than one value of it.
std::vector<CompiledFunction::Ready> CompiledFunction::prepareSteps(RolledPart &part) {
  std::vector<Ready> out;
  if (part.kind == RolledPart::Kind::Eager || part.numOutputs() == 0) {
    out.emplace_back();
    return out;
  }
  if (part.dims.empty() && !writes(part.piece.graph)) {
    out.push_back(prepare(part.piece));
    return out;
  }
  Skeleton key = skeletonOf(part.piece);
  if (part.dims.empty()) {
    out.push_back(prepare(part.piece, key));
    return out;
  }
  size_t width = part.dims.size() / part.steps;
  auto setStep = [&](size_t k) {
    std::copy_n(part.dims.begin() + k * width, width, key.numbers.begin() + key.inputNumbers);
  };
  for (size_t k : {size_t(0), part.steps / 2}) {
    setStep(k);
    key.alike.push_back(key.numbers);
  }
  for (size_t k = part.steps; k-- > 0;) {
    setStep(k);
    out.push_back(prepare(part.piece, key));
    if (out.size() > 1 && !out.back().hit && out.back().entry && out.back().entry->lifting.positions.empty())
      return {};
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// What fails in it is left to the steps one by one: they find it again, and say what eager code says.
bool CompiledFunction::runLoop(const Ready &r, const PlanSteps &steps, Span<const Number> numbers) {
  if (!r.entry || !r.entry->compiled || !knobs().fault.empty())
    return false;
  try {
    return r.entry->compiled->runSteps(steps, numbers, r.symbols);
  } catch (const Error &e) {
    if (e.kind() == ErrorKind::Memory)
      throw;
    return false;
  }
}

/// Parts that repeat are looked up once and run as often as they have steps. The parts count as one compilation. False
/// if some part can't be compiled for all of its steps.
bool CompiledFunction::runRolled(std::shared_ptr<RolledGraph> graph, trace::Piece &piece, std::vector<Tensor> &outs) {
  RolledGraph &rolled = *graph;
  std::vector<std::vector<Ready>> ready;
  bool compiled;
  {
    OneCompilation one;
    for (RolledPart &part : rolled.parts)
      if (ready.push_back(prepareSteps(part)); ready.back().empty())
        break;
    compiled = one.any();
  }
  if (ready.back().empty())
    return false;
  if (compiled)
    event({CompileEvent::Kind::Compile, locText(piece.graph.nodes[0].loc),
           str("a recording of ", piece.graph.nodes.size(), " ops is run as ", rolled.describe()), ""});
  if (piece.record)
    recordRolled(piece, graph, ready);
  bool hit = !compiled;
  rolled.run(
      piece.inputs, piece.numbers,
      [&](size_t part, size_t step, Span<const Tensor> in, Span<const Number> numbers, std::vector<Tensor> &stepOuts) {
        const std::vector<Ready> &r = ready[part];
        hit &= run(r[r.size() > 1 ? step : 0], in, numbers, stepOuts);
      },
      outs,
      [&](size_t part, const PlanSteps &steps, Span<const Number> numbers) {
        return ready[part].size() == 1 && runLoop(ready[part][0], steps, numbers);
      });
  if (hit)
    countHit();
  return true;
}

/// Runs the piece as loops if it has any. One that was compiled as it is stays so, which saves looking for them.
bool CompiledFunction::tryRolled(trace::Piece &piece, std::vector<Tensor> &outs) {
  size_t size = piece.graph.nodes.size();
  if (size < kMinRolled)
    return false;
  KnownBodies bodies;
  bool looksStraight;
  {
    std::lock_guard<ForkMutex> lock(cache_->mutex);
    looksStraight = cache_->straight.count(size) > 0;
    if (!looksStraight)
      bodies = cache_->bodies;
  }
  if (looksStraight) {
    Skeleton key = skeletonOf(piece);
    std::vector<int64_t> symbols;
    std::lock_guard<ForkMutex> lock(cache_->mutex);
    if (lookUp(*cache_->bucket(key), key, symbols))
      return false;
    bodies = cache_->bodies;
  }
  std::optional<RolledGraph> rolled = roll(piece, bodies, options_.dynamic != CompileOptions::Dynamic::Never);
  if (rolled) {
    {
      std::lock_guard<ForkMutex> lock(cache_->mutex);
      cache_->bodies = std::move(bodies);
    }
    if (runRolled(std::make_shared<RolledGraph>(std::move(*rolled)), piece, outs))
      return true;
  }
  std::lock_guard<ForkMutex> lock(cache_->mutex);
  cache_->straight.insert(size);
  return false;
}

} // namespace dlc
