// Greedy: of the values alive at the peak, the one that frees most by being computed again moves, until none helps.
// What it is computed from must be in memory at the late use anyway, or be small.
#include "compiler/fusion/Rematerialize.h"
#include "compiler/fusion/Order.h"
#include "compiler/fusion/Recompute.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

constexpr int64_t kMinBytes = 64 << 10;
constexpr int64_t kMaxCost = 96;
/// An operand this many times smaller than the value may be kept for it.
constexpr int64_t kSmall = 8;

class Rematerializer {
public:
  Rematerializer(const Graph &graph, ArrayRef<FusedGroup> groups)
      : graph_(graph), groups_(groups), groupOf_(graph.size(), -1), position_(graph.size()), first_(graph.size(), -1),
        last_(graph.size(), -1), bytes_(graph.size()), moved_(graph.size()), pinned_(graph.size()) {
    for (size_t g = 0; g < groups.size(); ++g)
      for (uint32_t m : groups[g].members)
        groupOf_[m] = static_cast<int64_t>(g);
    findPositions();
  }

  bool run() {
    findLifetimes();
    auto [before, at] = peak();
    int64_t now = before;
    while (now >= kMinBytes) {
      std::optional<Copy> best;
      for (uint32_t m = 0; m < graph_.size(); ++m)
        if (first_[m] >= 0 && first_[m] < at && last_[m] > at && !moved_[m] && !pinned_[m])
          if (std::optional<Copy> c = candidate(m, at); c && (!best || c->gain > best->gain))
            best = std::move(c);
      if (!best)
        break;
      accept(*best);
      std::tie(now, at) = peak();
    }
    if (copies_.empty() || now * 10 > before * 9)
      return false;
    for (Copy &c : copies_)
      apply(c);
    return true;
  }

private:
  struct Copy {
    uint32_t value;
    SmallVector<uint32_t> ops;   ///< ascending, `value` last
    SmallVector<uint32_t> reads; ///< nodes whose values it needs
    SmallVector<uint32_t> users; ///< the late ones, ascending
    int64_t lastEarly, firstLate, lastLate, gain;
  };

  /// When each node runs.
  void findPositions() {
    int64_t at = 0;
    for (const OrderedUnit &u : orderOf(graph_, groups_)) {
      if (u.group < 0)
        position_[u.node] = at;
      else
        for (uint32_t m : groups_[u.group].members)
          position_[m] = at;
      ++at;
    }
  }

  bool inMemory(uint32_t i) const {
    if (groupOf_[i] >= 0)
      return llvm::is_contained(groups_[groupOf_[i]].shape.outputs, i);
    const Node &n = graph_.node(i);
    return n.kind == NodeKind::Opaque && n.op->getNumResults() && isa<RankedTensorType>(n.result().getType()) && n.info;
  }

  void findLifetimes() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (!inMemory(i) || graph_.users(i).empty())
        continue;
      bool isResult = false;
      for (uint32_t u : graph_.users(i))
        isResult |= graph_.node(u).op->hasTrait<OpTrait::IsTerminator>();
      if (isResult) // has memory of its own
        continue;
      bytes_[i] = graph_.bytes(graph_.node(i).result());
      first_[i] = position_[i];
      for (uint32_t u : graph_.users(i))
        last_[i] = std::max<int64_t>(last_[i], position_[u]);
    }
  }

  /// The most bytes alive at once, and where.
  std::pair<int64_t, int64_t> peak() const {
    std::vector<int64_t> change(graph_.size() + 2);
    auto live = [&](int64_t from, int64_t to, int64_t bytes) {
      change[from] += bytes;
      change[to + 1] -= bytes;
    };
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (first_[i] >= 0)
        live(first_[i], last_[i], bytes_[i]);
    for (const Copy &c : copies_)
      live(c.firstLate, c.lastLate, bytes_[c.value]);
    int64_t most = 0, at = 0, now = 0;
    for (size_t p = 0; p < change.size(); ++p) {
      now += change[p];
      if (now > most) {
        most = now;
        at = static_cast<int64_t>(p);
      }
    }
    return {most, at};
  }

  std::optional<Copy> candidate(uint32_t m, int64_t at) const {
    if (bytes_[m] < kMinBytes || groupOf_[m] < 0)
      return std::nullopt;
    Copy c;
    c.value = m;
    c.lastEarly = first_[m];
    c.firstLate = c.lastLate = last_[m];
    for (uint32_t u : graph_.users(m)) {
      if (position_[u] <= at) {
        c.lastEarly = std::max<int64_t>(c.lastEarly, position_[u]);
        continue;
      }
      if (groupOf_[u] == groupOf_[m])
        return std::nullopt;
      c.users.push_back(u);
      c.firstLate = std::min<int64_t>(c.firstLate, position_[u]);
    }
    int64_t cost = 0;
    if (c.users.empty() || c.lastEarly >= at || c.firstLate <= at || !collect(m, m, c, cost))
      return std::nullopt;
    llvm::sort(c.ops);
    c.gain = bytes_[m];
    for (uint32_t r : c.reads) {
      if (last_[r] >= c.firstLate || first_[r] < 0)
        continue;
      if (graph_.bytes(graph_.node(r).result()) * kSmall > bytes_[m])
        return std::nullopt;
      c.gain -= graph_.bytes(graph_.node(r).result());
    }
    return c;
  }

  /// The point ops that `m` needs besides what is in memory.
  bool collect(uint32_t root, uint32_t m, Copy &c, int64_t &cost) const {
    const Node &n = graph_.node(m);
    cost += n.cost;
    if (n.kind != NodeKind::Point || n.mayFail || cost > kMaxCost || n.op->hasAttr(kRecomputeAttr))
      return false;
    c.ops.push_back(m);
    for (const OperandUse &use : n.uses) {
      int64_t p = graph_.producer(use.value);
      if (p < 0) // an argument
        continue;
      uint32_t producer = static_cast<uint32_t>(p);
      if (llvm::is_contained(c.ops, producer) || llvm::is_contained(c.reads, producer))
        continue;
      bool there = first_[producer] >= 0 && !moved_[producer];
      bool small = graph_.bytes(graph_.node(producer).result()) * kSmall <= bytes_[root];
      if (there && (last_[producer] > first_[root] || small))
        c.reads.push_back(producer);
      else if (groupOf_[producer] != groupOf_[root] || !collect(root, producer, c, cost))
        return false;
    }
    return true;
  }

  void accept(Copy &c) {
    moved_[c.value] = true;
    last_[c.value] = c.lastEarly;
    for (uint32_t r : c.reads) {
      pinned_[r] = true;
      if (first_[r] >= 0)
        last_[r] = std::max(last_[r], c.firstLate);
    }
    copies_.push_back(std::move(c));
  }

  void apply(Copy &c) {
    Operation *where = graph_.node(c.users.front()).op;
    OpBuilder b(where);
    IRMapping map;
    for (uint32_t m : c.ops) {
      for (const OperandUse &use : graph_.node(m).uses)
        copyViews(b, use.value, map);
      Operation *copy = b.clone(*graph_.node(m).op, map);
      copy->setAttr(kRecomputeAttr, b.getUnitAttr());
      copy->setAttr(kLateAttr, b.getUnitAttr());
    }
    for (uint32_t u : c.users) {
      Operation *user = graph_.node(u).op;
      b.setInsertionPoint(user);
      for (OpOperand &operand : user->getOpOperands())
        if (isa<RankedTensorType>(operand.get().getType()) &&
            graph_.producer(operand.get()) == static_cast<int64_t>(c.value)) {
          copyViews(b, operand.get(), map);
          operand.set(map.lookup(operand.get()));
        }
    }
  }

  /// Clones the views between a copied value and `v`.
  void copyViews(OpBuilder &b, Value v, IRMapping &map) {
    Operation *op = v.getDefiningOp();
    if (map.contains(v) || !op || op->getBlock() != graph_.node(0).op->getBlock() ||
        graph_.node(graph_.indexOf(op)).kind != NodeKind::View)
      return;
    copyViews(b, op->getOperand(0), map);
    if (map.contains(op->getOperand(0)))
      b.clone(*op, map);
  }

  const Graph &graph_;
  ArrayRef<FusedGroup> groups_;
  std::vector<int64_t> groupOf_, position_, first_, last_, bytes_;
  std::vector<bool> moved_, pinned_;
  std::vector<Copy> copies_;
};

} // namespace

bool rematerialize(const Graph &graph, ArrayRef<FusedGroup> groups) { return Rematerializer(graph, groups).run(); }

} // namespace dlc::compiler
