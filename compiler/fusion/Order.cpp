// List scheduling: of the units whose operands are there, one that gives back more memory than it takes runs at once;
// else the one that comes first in the program.
#include "compiler/fusion/Order.h"
#include <set>

using namespace mlir;

namespace dlc::compiler {

namespace {

/// Less than this is not worth leaving the order of the program for.
constexpr int64_t kMinFreed = 64 << 10;

class Scheduler {
public:
  Scheduler(const Graph &graph, ArrayRef<FusedGroup> groups)
      : graph_(graph), groups_(groups), groupOf_(graph.size(), -1), unitOf_(graph.size()), waiting_(graph.size()) {
    for (size_t g = 0; g < groups.size(); ++g)
      for (uint32_t m : groups[g].members)
        groupOf_[m] = static_cast<int64_t>(g);
  }

  std::vector<OrderedUnit> run() {
    makeUnits();
    addEdges();
    countUsers();
    for (uint32_t u = 0; u < units_.size(); ++u)
      if (!units_[u].pending)
        makeReady(u);
    std::vector<OrderedUnit> order;
    while (!ready_.empty()) {
      auto next = freeing_.empty() ? *ready_.begin() : *freeing_.begin();
      freeing_.erase(next);
      ready_.erase(next);
      units_[next.second].done = true;
      order.push_back(units_[next.second].unit);
      finish(next.second);
    }
    DLC_CHECK(order.size() == units_.size(), "fusion made a cycle");
    return order;
  }

private:
  struct Unit {
    OrderedUnit unit;
    uint32_t place; ///< in the program
    std::vector<uint32_t> users;
    std::vector<uint32_t> reads; ///< nodes in memory that it reads
    uint32_t pending = 0;
    int64_t taken = 0; ///< bytes written, less those that die with it
    bool done = false;
  };

  void makeUnits() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      int64_t g = groupOf_[i];
      if (g >= 0 && groups_[g].members.front() != i) {
        unitOf_[i] = unitOf_[groups_[g].members.front()];
        continue;
      }
      unitOf_[i] = static_cast<uint32_t>(units_.size());
      Unit u;
      u.unit = {g, i};
      u.place = g >= 0 ? groups_[g].members.back() : i;
      units_.push_back(std::move(u));
    }
  }

  void addEdges() {
    for (uint32_t i = 0; i < graph_.size(); ++i)
      for (Value v : graph_.node(i).op->getOperands()) {
        // A group reads the roots of views, so it does not wait for the views themselves.
        if (groupOf_[i] >= 0 && isa<RankedTensorType>(v.getType())) {
          int64_t p = graph_.producer(v);
          if (p >= 0 && llvm::is_contained(graph_.operands(i), static_cast<uint32_t>(p)))
            addEdge(unitOf_[p], unitOf_[i]);
        } else if (Operation *def = v.getDefiningOp(); def && def->getBlock() == graph_.node(0).op->getBlock()) {
          addEdge(unitOf_[graph_.indexOf(def)], unitOf_[i]);
        }
      }
  }
  void addEdge(uint32_t from, uint32_t to) {
    if (from == to)
      return;
    units_[from].users.push_back(to);
    ++units_[to].pending;
  }

  /// Who reads each value in memory, through views; results of the function stay.
  void countUsers() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node &n = graph_.node(i);
      bool stored = groupOf_[i] >= 0 ? llvm::is_contained(groups_[groupOf_[i]].shape.outputs, i)
                                     : n.kind == NodeKind::Opaque && n.info && n.op->getNumResults();
      if (!stored || !isa<RankedTensorType>(n.result().getType()))
        continue;
      units_[unitOf_[i]].taken += graph_.bytes(n.result());
      std::set<uint32_t> readers;
      for (uint32_t u : graph_.users(i))
        if (graph_.node(u).kind != NodeKind::View)
          readers.insert(unitOf_[u]);
      readers.erase(unitOf_[i]);
      for (uint32_t u : readers)
        units_[u].reads.push_back(i);
      waiting_[i] = static_cast<uint32_t>(readers.size());
      if (waiting_[i] == 1)
        units_[*readers.begin()].taken -= graph_.bytes(n.result());
    }
  }

  std::pair<uint32_t, uint32_t> key(uint32_t u) const { return {units_[u].place, u}; }
  /// Goes before the program's order. Views and arithmetic on sizes cost nothing and let others be seen.
  bool frees(uint32_t u) const {
    const OrderedUnit &unit = units_[u].unit;
    bool works = unit.group >= 0 || (graph_.node(unit.node).info && graph_.node(unit.node).kind != NodeKind::View);
    return !works || units_[u].taken <= -kMinFreed;
  }

  void makeReady(uint32_t u) {
    ready_.insert(key(u));
    if (frees(u))
      freeing_.insert(key(u));
  }

  void finish(uint32_t done) {
    for (uint32_t v : units_[done].reads)
      if (--waiting_[v] == 1)
        for (uint32_t reader : graph_.users(v)) {
          uint32_t u = unitOf_[reader];
          if (units_[u].done || u == unitOf_[v] || !llvm::is_contained(units_[u].reads, v))
            continue;
          units_[u].taken -= graph_.bytes(graph_.node(v).result());
          if (ready_.count(key(u)) && frees(u))
            freeing_.insert(key(u));
          break;
        }
    for (uint32_t next : units_[done].users)
      if (--units_[next].pending == 0)
        makeReady(next);
  }

  const Graph &graph_;
  ArrayRef<FusedGroup> groups_;
  std::vector<int64_t> groupOf_;
  std::vector<uint32_t> unitOf_;
  std::vector<uint32_t> waiting_; // per value in memory: units that have yet to read it
  std::vector<Unit> units_;
  std::set<std::pair<uint32_t, uint32_t>> ready_, freeing_; // by place
};

} // namespace

std::vector<OrderedUnit> orderOf(const Graph &graph, ArrayRef<FusedGroup> groups) {
  return Scheduler(graph, groups).run();
}

} // namespace dlc::compiler
