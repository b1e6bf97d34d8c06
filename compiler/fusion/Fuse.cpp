// Greedy vertical merging in program order, the largest intermediate first; then siblings that read the same data.
// A merge is legal if the group stays acyclic, all values share one domain, and the limits hold.
#include "compiler/fusion/Fuse.h"
#include "compiler/fusion/Recompute.h"
#include "compiler/fusion/Rematerialize.h"
#include "runtime/core/Knobs.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

constexpr size_t kMaxOps = 64, kMaxBuffers = 20, kMaxReductions = 6;
constexpr int64_t kMaxCost = 240;
/// Fewer parallel points than this cannot feed the threads when the reduced range is long.
constexpr int64_t kFewRows = 8, kLongReduction = 16384;

/// A strip of columns that is walked down at once, and the cache in which it is found again.
constexpr int64_t kStripBytes = 256, kStripCache = 1 << 20;

class Fuser {
public:
  Fuser(const Graph &graph, const FusionOptions &options) : graph_(graph), fuel_(options.fuel), enabled_(options.fuse) {
    group_.resize(graph.size());
    for (uint32_t i = 0; i < graph.size(); ++i) {
      group_[i] = i;
      members_.push_back({i});
      shapes_.emplace_back();
    }
  }

  std::vector<FusedGroup> run() {
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (isFusible(i)) {
        std::string why;
        shapes_[i] = shapeOf(graph_, {i}, why);
        DLC_CHECK(shapes_[i], graph_.node(i).info->name, " alone has no domain: ", why);
      }
    if (enabled_) {
      mergeAlongEdges();
      mergeSiblings();
      mergeAlongEdges(); // what siblings made possible
    }
    return collect();
  }

private:
  bool isFusible(uint32_t i) const {
    NodeKind k = graph_.node(i).kind;
    return k == NodeKind::Point || k == NodeKind::Reduce || k == NodeKind::Contract;
  }
  bool hasContract(uint32_t g) const {
    return llvm::any_of(members_[g], [&](uint32_t m) { return graph_.node(m).kind == NodeKind::Contract; });
  }

  void mergeAlongEdges() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (!isFusible(i))
        continue;
      bool copy = graph_.node(i).op->hasAttr(kRecomputeAttr); // joins its users, and other copies
      SmallVector<uint32_t> producers;
      for (uint32_t p : graph_.operands(i))
        if (isFusible(p) && (!copy || graph_.node(p).op->hasAttr(kRecomputeAttr)))
          producers.push_back(p);
      llvm::sort(producers, [&](uint32_t a, uint32_t b) {
        return std::make_pair(-bytesOf(a), a) < std::make_pair(-bytesOf(b), b);
      });
      for (uint32_t p : producers)
        if (group_[p] != group_[i])
          tryMerge(group_[p], group_[i]);
    }
  }

  /// Groups that read the same buffer in the same domain, worth it if that is a good part of what the smaller reads.
  void mergeSiblings() {
    DenseMap<Value, SmallVector<uint32_t>> readers;
    std::vector<Value> order;
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (isFusible(i))
        for (const OperandUse &use : graph_.node(i).uses) {
          SmallVector<uint32_t> &list = readers[use.value];
          if (list.empty())
            order.push_back(use.value);
          list.push_back(i);
        }
    for (Value v : order) {
      SmallVector<uint32_t> &list = readers[v];
      for (size_t a = 0; a < list.size() && a < 8; ++a)
        for (size_t b = a + 1; b < list.size() && b < 8; ++b) {
          uint32_t x = group_[list[a]], y = group_[list[b]];
          if (x != y && !isLate(list[a]) && !isLate(list[b]) && worthSharing(v, x, y))
            tryMerge(x, y);
        }
    }
  }

  /// Copied to a late user: joined with an early reader of its operands, it would be there early too.
  bool isLate(uint32_t i) const { return graph_.node(i).op->hasAttr(kLateAttr); }

  bool worthSharing(Value v, uint32_t x, uint32_t y) {
    if (hasContract(x) || hasContract(y))
      return false;
    // Only alike groups: a map joined to a reduction that it does not feed would lose its parallel dims.
    if (shapes_[x]->reduced.empty() != shapes_[y]->reduced.empty())
      return false;
    return graph_.bytes(v) * 4 >= std::min(readBytes(x), readBytes(y));
  }

  int64_t readBytes(uint32_t g) {
    int64_t total = 0;
    for (Value v : outsideValues(members_[g]))
      total += graph_.bytes(v);
    return total;
  }

  int64_t bytesOf(uint32_t node) const { return graph_.bytes(graph_.node(node).result()); }

  SmallVector<Value> outsideValues(ArrayRef<uint32_t> members) {
    SmallVector<Value> values;
    for (uint32_t m : members)
      for (const OperandUse &use : graph_.node(m).uses) {
        int64_t p = graph_.producer(use.value);
        if ((p < 0 || !llvm::is_contained(members, static_cast<uint32_t>(p))) && !llvm::is_contained(values, use.value))
          values.push_back(use.value);
      }
    return values;
  }

  void log(uint32_t a, uint32_t b, StringRef what) {
    if (logEnabled("fusion"))
      logLine("fusion", str(graph_.node(members_[a].back()).info->name, "#", members_[a].back(), " + ",
                            graph_.node(members_[b].front()).info->name, "#", members_[b].front(), ": ", what.str()));
  }

  bool tryMerge(uint32_t a, uint32_t b) {
    if (fuel_ == 0 || !tried_.insert({{a, members_[a].size()}, {b, members_[b].size()}}).second)
      return false;
    std::string why;
    std::vector<uint32_t> all;
    std::merge(members_[a].begin(), members_[a].end(), members_[b].begin(), members_[b].end(), std::back_inserter(all));
    std::optional<GroupShape> shape;
    if (all.size() > kMaxOps)
      why = "(vi) too many ops";
    else if (!isAcyclic(a, b, all.back()))
      why = "(i) a path leaves the group and comes back";
    else if ((shape = shapeOf(graph_, all, why)) && !withinLimits(all, *shape, why))
      shape.reset();
    if (!shape) {
      log(a, b, "refused, " + why);
      return false;
    }
    log(a, b, "merged");
    if (fuel_ > 0)
      --fuel_;
    for (uint32_t m : members_[b])
      group_[m] = a;
    members_[a] = std::move(all);
    members_[b].clear();
    shapes_[a] = std::move(shape);
    shapes_[b].reset();
    return true;
  }

  /// No path from one group to the other through a third: walks forward from both, never past the last member.
  bool isAcyclic(uint32_t a, uint32_t b, uint32_t last) {
    std::vector<uint32_t> stack;
    DenseSet<uint32_t> seen{a, b};
    auto push = [&](uint32_t g) {
      if (seen.insert(g).second && !members_[g].empty() && members_[g].front() <= last)
        stack.push_back(g);
    };
    for (uint32_t g : {a, b})
      for (uint32_t m : members_[g])
        for (uint32_t u : graph_.users(m))
          push(group_[u]);
    while (!stack.empty()) {
      uint32_t g = stack.back();
      stack.pop_back();
      for (uint32_t m : members_[g])
        for (uint32_t u : graph_.users(m)) {
          if (group_[u] == a || group_[u] == b)
            return false;
          push(group_[u]);
        }
    }
    return true;
  }

  bool withinLimits(ArrayRef<uint32_t> members, const GroupShape &shape, std::string &why) {
    int64_t cost = 0, reductions = 0;
    for (uint32_t m : members) {
      cost += graph_.node(m).cost;
      reductions += graph_.node(m).kind == NodeKind::Reduce;
    }
    size_t buffers = outsideValues(members).size() + shape.outputs.size();
    if (buffers > kMaxBuffers || cost > kMaxCost || reductions > static_cast<int64_t>(kMaxReductions))
      return why = "(vi) too large", false;
    if (shape.reduced.empty())
      return true;
    if (llvm::any_of(members, [&](uint32_t m) { return graph_.node(m).kind == NodeKind::Contract; }))
      return true;
    bool fullOutput = false;
    for (uint32_t m : shape.outputs)
      for (AxisId a : shape.leavesOf(graph_.node(m).result()))
        fullOutput |= shape.isReduced(a);
    if (!fullOutput)
      return true;
    int64_t rows = 1, length = 1;
    for (AxisId a : shape.parallel)
      rows *= shape.axes.size(a).value();
    for (AxisId a : shape.reduced)
      length *= shape.axes.size(a).value();
    if (rows < kFewRows && rows * length > kLongReduction)
      return why = "lost parallelism", false;
    // A column reduction walks memory across rows; a map in it writes in strips, which must stay in the cache.
    if (columnReduction(members, shape) && length * kStripBytes > kStripCache)
      return why = "column reduction with a full result", false;
    return true;
  }

  /// Whether neighbours in memory of what is reduced belong to different results.
  bool columnReduction(ArrayRef<uint32_t> members, const GroupShape &shape) {
    for (uint32_t m : members) {
      const Node &n = graph_.node(m);
      if (n.kind != NodeKind::Reduce)
        continue;
      const OperandUse &use = n.uses[0];
      std::optional<size_t> fastest = graph_.layouts().fastestDim(use.value);
      if (!fastest)
        continue;
      DimUse d = use.dims[*fastest];
      AxisId axis = d.kind == DimUse::Reduced ? shape.reduceAxes.lookup(n.op)[d.index]
                                              : shape.valueAxes.lookup(n.result())[d.index];
      AxisList leaves = shape.axes.leaves(axis);
      if (!leaves.empty() && !shape.isReduced(leaves.back()))
        return true;
    }
    return false;
  }

  /// Groups in dependency order: a group can run once all groups that it reads from have.
  std::vector<FusedGroup> collect() {
    std::vector<FusedGroup> out;
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (!members_[i].empty() && shapes_[i])
        out.push_back({members_[i], std::move(*shapes_[i]), {}});
    return out;
  }

  const Graph &graph_;
  int64_t fuel_;
  bool enabled_;
  std::vector<uint32_t> group_;
  DenseSet<std::pair<std::pair<uint32_t, size_t>, std::pair<uint32_t, size_t>>> tried_; // pairs at their sizes then
  std::vector<std::vector<uint32_t>> members_;
  std::vector<std::optional<GroupShape>> shapes_;
};

} // namespace

std::vector<FusedGroup> findGroups(const Graph &graph, const FusionOptions &options) {
  return Fuser(graph, options).run();
}

} // namespace dlc::compiler
