// A value is computed again by its users if that takes few operations and hardly more large operands.
#include "compiler/fusion/Recompute.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

constexpr int64_t kMaxCost = 8;
constexpr size_t kMaxUsers = 3;

class Recomputer {
public:
  Recomputer(const Graph &graph, ArrayRef<FusedGroup> groups)
      : graph_(graph), groups_(groups), groupOf_(graph.size(), -1) {
    for (size_t g = 0; g < groups.size(); ++g)
      for (uint32_t m : groups[g].members)
        groupOf_[m] = static_cast<int64_t>(g);
  }

  bool run() {
    for (size_t g = 0; g < groups_.size(); ++g)
      for (uint32_t m : groups_[g].shape.outputs)
        consider(g, m);
    for (Copy &c : copies_)
      apply(c);
    return !copies_.empty();
  }

private:
  struct Copy {
    uint32_t value;
    SmallVector<uint32_t> ops; ///< ascending, `value` last
    int64_t group;             ///< of the users
    SmallVector<uint32_t> users;
  };

  void consider(size_t g, uint32_t m) {
    SmallVector<uint32_t> ops;
    SmallVector<Value> reads;
    int64_t cost = 0;
    if (!collect(g, m, m, ops, reads, cost))
      return;
    llvm::sort(ops);
    SmallVector<Copy> copies;
    for (uint32_t u : graph_.users(m)) {
      if (groupOf_[u] == static_cast<int64_t>(g))
        continue;
      if (groupOf_[u] < 0 || graph_.node(u).op->hasAttr(kRecomputeAttr) || !readsThroughPoints(u, m))
        return;
      auto same = llvm::find_if(copies, [&](Copy &c) { return c.group == groupOf_[u]; });
      if (same != copies.end())
        same->users.push_back(u);
      else
        copies.push_back({m, ops, groupOf_[u], {u}});
    }
    if (copies.empty() || (copies.size() > kMaxUsers && !reads.empty())) // what reads nothing is always made again
      return;
    // With one user two more reads cost what the write and the read would have.
    for (Copy &c : copies)
      if (newReads(c, m, reads) > (copies.size() == 1 ? 2 : 1))
        return;
    copies_.insert(copies_.end(), copies.begin(), copies.end());
  }

  /// Whether user `u` reads `m` only through views that a kernel can follow.
  bool readsThroughPoints(uint32_t u, uint32_t m) {
    for (const OperandUse &use : graph_.node(u).uses) {
      if (graph_.producer(use.value) != static_cast<int64_t>(m))
        continue;
      if (use.needsBuffer)
        return false;
      for (Value v = use.value; v != graph_.node(m).result(); v = v.getDefiningOp()->getOperand(0))
        if (!keepsPoints(*graph_.node(graph_.indexOf(v.getDefiningOp())).info))
          return false;
    }
    return true;
  }

  /// The ops of the group that `m` needs, and what they read from memory.
  bool collect(size_t g, uint32_t root, uint32_t m, SmallVectorImpl<uint32_t> &ops, SmallVectorImpl<Value> &reads,
               int64_t &cost) {
    const Node &n = graph_.node(m);
    cost += n.cost;
    if (n.kind != NodeKind::Point || n.mayFail || cost > kMaxCost || n.op->hasAttr(kRecomputeAttr))
      return false;
    ops.push_back(m);
    for (const OperandUse &use : n.uses) {
      int64_t p = graph_.producer(use.value);
      if (p < 0 || groupOf_[p] != static_cast<int64_t>(g)) {
        reads.push_back(use.value);
        continue;
      }
      if (llvm::is_contained(ops, static_cast<uint32_t>(p)))
        continue;
      bool written = llvm::is_contained(groups_[g].shape.outputs, static_cast<uint32_t>(p));
      bool small = graph_.bytes(graph_.node(p).result()) * 8 <= graph_.bytes(graph_.node(root).result());
      bool free = graph_.node(p).info->kind == OpKind::Creation;
      if (written || (small && !free)) // a small value is written instead
        reads.push_back(use.value);
      else if (!collect(g, root, static_cast<uint32_t>(p), ops, reads, cost))
        return false;
    }
    return true;
  }

  /// Large operands that the users' group does not read yet.
  size_t newReads(const Copy &c, uint32_t m, ArrayRef<Value> reads) {
    int64_t size = graph_.bytes(graph_.node(m).result());
    SmallVector<Value> roots;
    for (Value v : reads) {
      Value root = graph_.layouts().of(v).root;
      if (graph_.bytes(v) * 2 < size || llvm::is_contained(roots, root) || groupReads(c.group, root))
        continue;
      roots.push_back(root);
    }
    return roots.size();
  }

  bool groupReads(int64_t group, Value root) {
    for (uint32_t m : groups_[group].members)
      for (const OperandUse &use : graph_.node(m).uses)
        if (graph_.layouts().of(use.value).root == root)
          return true;
    return false;
  }

  void apply(Copy &c) {
    Operation *last = graph_.node(c.value).op;
    OpBuilder b(last->getContext());
    b.setInsertionPointAfter(last);
    IRMapping map;
    for (uint32_t m : c.ops) {
      // Views inside the group, between its members, are copied with them.
      for (const OperandUse &use : graph_.node(m).uses)
        copyViews(b, use.value, map);
      b.clone(*graph_.node(m).op, map)->setAttr(kRecomputeAttr, b.getUnitAttr());
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
  std::vector<int64_t> groupOf_;
  std::vector<Copy> copies_;
};

} // namespace

bool recomputeCheapValues(const Graph &graph, ArrayRef<FusedGroup> groups) { return Recomputer(graph, groups).run(); }

} // namespace dlc::compiler
