// Code of cache entries for replay.
//
// Why a run for other sizes is sound. A session's sizes are Dims over its symbols. The recorded graph has, for each
// number of its skeleton, an expression of them: either the Dim that reached the op (then it is the number for every
// value of the symbols under which the recorded facts hold, as all arithmetic on Dims is recorded in the expression and
// every comparison is a fact), or a constant. A constant stands for a number that does not depend on the symbols, or
// that was computed from plain ints; but reading plain ints from a tensor with symbols, or a number that the session
// gave out, tells the session (SymbolicHost), which then has the fact `size == value`. So under the facts the recorded
// expressions are what recording again would give, and everything else of the skeleton is the same. The entry computes
// that program for the numbers `forms` at its own symbols. symbols[k] is the recorded expression of the position that
// symbol k was read from; for each other number either the form, rewritten over the session's symbols, is the recorded
// expression, or their equality becomes a fact. If an entry is less general than the session (a constant form where
// the session has an expression), that fact fixes the size: less general, not wrong.
#include "frontend/compile/PieceCode.h"
#include "frontend/compile/RolledGraph.h"
#include <algorithm>

namespace dlc {

bool isSmallPiece(const Graph &graph) {
  if (graph.nodes.size() >= kMinNodes)
    return false;
  int64_t most = 0;
  for (const TensorMeta &v : graph.values) {
    int64_t bytes = static_cast<int64_t>(itemSize(v.dtype));
    for (const Dim &d : v.sizes)
      bytes *= d.value();
    most = std::max(most, bytes);
  }
  bool onlyViews = std::all_of(graph.nodes.begin(), graph.nodes.end(),
                               [](const GraphNode &n) { return n.op->kind == OpKind::View; });
  return onlyViews || most < kLargeBytes;
}
namespace {

/// Fewer elements than this take less time than giving up the GIL is worth.
constexpr int64_t kShortElements = 20000;

int64_t elementsOf(const Graph &g) {
  int64_t n = 0;
  for (const TensorMeta &m : g.values) {
    int64_t k = 1;
    for (const Dim &d : m.sizes)
      k *= d.value();
    n += k;
  }
  return n;
}

/// `d` with symbol k replaced by `by[k]`.
class Substitution {
public:
  explicit Substitution(Span<const Dim> by) : by_(by) {}
  Dim operator()(const Dim &d) const { return d.isConst() ? d : poly(d.expr()); }

private:
  Dim operand(const DimAtom::Operand &o) const { return o.expr ? poly(o.expr) : Dim(o.value); }
  Dim atom(const DimAtom &a) const {
    switch (a.kind) {
    case DimAtom::Kind::Symbol:
      return by_[a.symbol];
    case DimAtom::Kind::FloorDiv:
      return floorDiv(operand(a.lhs), operand(a.rhs));
    case DimAtom::Kind::Mod:
      return floorMod(operand(a.lhs), operand(a.rhs));
    }
    __builtin_unreachable();
  }
  Dim poly(const DimExpr *e) const {
    Dim sum = 0;
    for (const DimTerm &t : e->terms) {
      Dim product(t.coef);
      for (const DimAtom *f : t.factors)
        product *= atom(*f);
      sum += product;
    }
    return sum;
  }
  Span<const Dim> by_;
};

class EntryCode final : public trace::PieceCode {
public:
  EntryCode(std::shared_ptr<CacheEntry> entry, Ref<CompiledFunction> owner)
      : entry_(std::move(entry)), owner_(std::move(owner)), short_(elementsOf(entry_->graph) < kShortElements) {}
  bool accepts(Ints symbols) const override {
    try {
      return std::all_of(entry_->facts.begin(), entry_->facts.end(), [&](const Fact &f) { return holds(f, symbols); });
    } catch (const Error &) { // an expression leaves 64 bits
      return false;
    }
  }
  void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) override {
    entry_->hits++;
    if (runEntry(*entry_, owner_->name(), inputs, numbers, symbols, outs))
      countHit();
  }
  size_t numNodes() const override { return entry_->graph.nodes.size(); }
  bool isShort() const override { return short_; }

private:
  std::shared_ptr<CacheEntry> entry_;
  Ref<CompiledFunction> owner_; // what replays belongs to a function that is alive
  bool short_;
};

} // namespace

/// A recording that runs as loops: its parts were looked up when it was recorded, for the sizes it had.
class RolledCode final : public trace::PieceCode {
public:
  RolledCode(std::shared_ptr<const RolledGraph> rolled, std::vector<std::vector<CompiledFunction::Ready>> ready,
             size_t numNodes, Ref<CompiledFunction> owner)
      : rolled_(std::move(rolled)), ready_(std::move(ready)), numNodes_(numNodes), owner_(std::move(owner)) {}
  bool accepts(Ints) const override { return true; }
  void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints, std::vector<Tensor> &outs) override {
    bool hit = true;
    rolled_->run(
        inputs, numbers,
        [&](size_t part, size_t step, Span<const Tensor> in, Span<const Number> n, std::vector<Tensor> &stepOuts) {
          const std::vector<CompiledFunction::Ready> &r = ready_[part];
          hit &= owner_->run(r[r.size() > 1 ? step : 0], in, n, stepOuts);
        },
        outs,
        [&](size_t part, const PlanSteps &steps, Span<const Number> n) {
          return ready_[part].size() == 1 && owner_->runLoop(ready_[part][0], steps, n);
        });
    if (hit)
      countHit();
  }
  size_t numNodes() const override { return numNodes_; }
  bool isShort() const override { return false; }

private:
  std::shared_ptr<const RolledGraph> rolled_;
  std::vector<std::vector<CompiledFunction::Ready>> ready_;
  size_t numNodes_;
  Ref<CompiledFunction> owner_;
};

void CompiledFunction::recordRolled(trace::Piece &piece, std::shared_ptr<const RolledGraph> rolled,
                                    const std::vector<std::vector<Ready>> &ready) {
  for (const std::vector<Ready> &part : ready)
    for (const Ready &r : part)
      if (!r.entry && r.graph && !isSmallPiece(*r.graph))
        return; // being compiled
  if (!piece.symbolic.values.empty()) {
    FactSink sink;
    for (const Dim &d : symbolicNumbers(piece.symbolic, piece.record->facts))
      (void)d.concretize();
    for (const Fact &f : sink.take())
      piece.record->facts.push_back(f);
  }
  piece.record->code =
      std::make_shared<RolledCode>(std::move(rolled), ready, piece.graph.nodes.size(), Ref<CompiledFunction>(this));
}

void recordEntry(trace::Piece &piece, std::shared_ptr<CacheEntry> entry, Ints symbols, Ref<CompiledFunction> owner) {
  trace::PieceRecord &r = *piece.record;
  const Lifting &l = entry->lifting;
  if (piece.symbolic.values.empty()) {
    r.symbols.assign(symbols.begin(), symbols.end());
  } else {
    std::vector<Dim> recorded = symbolicNumbers(piece.symbolic, r.facts);
    DLC_CHECK(recorded.size() == l.forms.size(), recorded.size(), " and ", l.forms.size(), " numbers");
    for (uint32_t p : l.positions)
      r.symbols.push_back(recorded[p]);
    FactSink sink;
    Substitution over(Span<const Dim>(r.symbols.data(), r.symbols.size()));
    for (size_t i = 0; i < recorded.size(); ++i)
      (void)(over(l.forms[i]) == recorded[i]);
    for (const Fact &f : sink.take())
      r.facts.push_back(f);
  }
  r.code = std::make_shared<EntryCode>(std::move(entry), std::move(owner));
}

} // namespace dlc
