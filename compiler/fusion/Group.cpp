// Unification of the dims of all values of a group.
#include "compiler/fusion/Group.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace dlc::compiler {

//===--- Graph ---===//

Graph::Graph(Block &block, Layouts &layouts) : layouts_(layouts) {
  for (Operation &op : block) {
    index_[&op] = nodes_.size();
    nodes_.push_back(describe(&op, layouts));
  }
  users_.resize(nodes_.size());
  operands_.resize(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind == NodeKind::View)
      continue;
    auto addEdge = [&](Value v) {
      int64_t p = producer(v);
      if (p < 0 || llvm::is_contained(operands_[i], static_cast<uint32_t>(p)))
        return;
      operands_[i].push_back(static_cast<uint32_t>(p));
      users_[p].push_back(static_cast<uint32_t>(i));
    };
    // A fill does not read the tensor whose shape it takes.
    if (nodes_[i].kind == NodeKind::Opaque)
      for (Value v : nodes_[i].op->getOperands())
        addEdge(v);
    for (const OperandUse &use : nodes_[i].uses)
      addEdge(use.value);
  }
}

int64_t Graph::producer(Value v) const {
  while (Operation *op = v.getDefiningOp()) {
    auto it = index_.find(op);
    if (it == index_.end())
      return -1;
    if (nodes_[it->second].kind != NodeKind::View)
      return static_cast<int64_t>(it->second);
    v = op->getOperand(0);
  }
  return -1;
}

int64_t Graph::bytes(Value v) const {
  int64_t n = static_cast<int64_t>(itemSize(dtypeOf(v)));
  for (const Dim &d : symbols().sizes(v))
    n *= d.value();
  return n;
}

//===--- Shape ---===//

namespace {

/// How the points of a view follow from those of its operand.
enum class ViewForm { Permutes, Repeats, Regroups, Other };
ViewForm viewForm(const OpInfo &view) {
  return llvm::StringSwitch<ViewForm>(view.name)
      .Cases("transpose", "permute", ViewForm::Permutes)
      .Case("expand", ViewForm::Repeats)
      .Cases("view", "unsqueeze", "squeeze", "detach", ViewForm::Regroups)
      .Default(ViewForm::Other);
}

class Unifier {
public:
  Unifier(const Graph &graph, ArrayRef<uint32_t> members, std::string &why)
      : graph_(graph), members_(members), why_(why) {
    for (uint32_t m : members)
      inside_.insert(graph.node(m).op);
  }

  std::optional<GroupShape> run() {
    for (uint32_t m : members_)
      if (!addMember(graph_.node(m)))
        return std::nullopt;
    findOutputs();
    align();
    if (!connect() || !makeDomain() || !checkValues() || !checkContract())
      return std::nullopt;
    return std::move(shape_);
  }

private:
  bool refuse(const Twine &reason) {
    why_ = reason.str();
    return false;
  }

  AxisList freshAxes(Value v) {
    AxisList axes;
    for (const Dim &d : graph_.symbols().sizes(v))
      axes.push_back(shape_.axes.add(d));
    return axes;
  }

  bool computesInside(Value v) {
    int64_t p = graph_.producer(v);
    return p >= 0 && inside_.contains(graph_.node(p).op);
  }

  /// Axes of a value computed inside, also behind views that keep points.
  bool axesOf(Value v, AxisList &out) {
    auto it = shape_.valueAxes.find(v);
    if (it != shape_.valueAxes.end()) {
      out = it->second;
      return true;
    }
    Operation *op = v.getDefiningOp();
    const Node &view = graph_.node(graph_.indexOf(op));
    if (view.kind != NodeKind::View)
      return refuse("(iii) a value is read before it is computed");
    AxisList from;
    if (!axesOf(op->getOperand(0), from))
      return false;
    switch (viewForm(*view.info)) {
    case ViewForm::Permutes:
      // The layout of a row-major value tells where each dim went.
      if (!permuted(op, from, out))
        return false;
      break;
    case ViewForm::Repeats: {
      out = freshAxes(v);
      Dims sizes = graph_.symbols().sizes(v), small = graph_.symbols().sizes(op->getOperand(0));
      size_t lead = sizes.size() - small.size();
      for (size_t k = 0; k < small.size(); ++k)
        if (small[k].same(sizes[lead + k]))
          out[lead + k] = from[k];
      break;
    }
    case ViewForm::Regroups:
      out = freshAxes(v);
      if (!shape_.axes.unify(out, from))
        return refuse("(iii) no affine map expresses the reshape");
      break;
    case ViewForm::Other:
      return refuse(Twine("(iii) ") + view.info->name + " of a value of the group");
    }
    shape_.valueAxes[v] = out;
    return true;
  }

  bool permuted(Operation *op, const AxisList &from, AxisList &out) {
    int64_t rank = static_cast<int64_t>(from.size());
    auto wrap = [&](int64_t d) { return d < 0 ? d + rank : d; };
    out = from;
    if (auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims")) {
      for (int64_t k = 0; k < rank; ++k)
        out[k] = from[wrap(dims[k])];
      return true;
    }
    auto d0 = op->getAttrOfType<IntegerAttr>("dim0"), d1 = op->getAttrOfType<IntegerAttr>("dim1");
    if (rank)
      std::swap(out[wrap(d0.getInt())], out[wrap(d1.getInt())]);
    return true;
  }

  bool addMember(const Node &n) {
    AxisList result = freshAxes(n.result());
    AxisList reduced;
    if (n.combines()) {
      Dims sizes = graph_.symbols().sizes(n.uses[0].value);
      for (int64_t d : n.reduced)
        reduced.push_back(shape_.axes.add(sizes[d]));
      shape_.reduceAxes[n.op] = reduced;
    }
    for (const OperandUse &use : n.uses) {
      if (!computesInside(use.value)) {
        outsideUses_.push_back({use.value, axesOfUse(use, result, reduced)});
        continue;
      }
      if (use.needsBuffer)
        return refuse("(iii) gathers from a value of the group");
      AxisList axes;
      if (!axesOf(use.value, axes))
        return false;
      for (size_t k = 0; k < use.dims.size(); ++k) {
        DimUse d = use.dims[k];
        if (d.kind == DimUse::Fixed)
          continue;
        AxisList mine{d.kind == DimUse::Result ? result[d.index] : reduced[d.index]}, its{axes[k]};
        if (!shape_.axes.unify(mine, its))
          return refuse("(ii) domains differ");
      }
    }
    shape_.valueAxes[n.result()] = result;
    return true;
  }

  AxisList axesOfUse(const OperandUse &use, const AxisList &result, const AxisList &reduced) {
    AxisList axes;
    for (const DimUse &d : use.dims)
      axes.push_back(d.kind == DimUse::Result    ? result[d.index]
                     : d.kind == DimUse::Reduced ? reduced[d.index]
                                                 : UINT32_MAX);
    return axes;
  }

  void findOutputs() {
    for (uint32_t m : members_)
      for (uint32_t u : graph_.users(m))
        if (!inside_.contains(graph_.node(u).op)) {
          shape_.outputs.push_back(m);
          break;
        }
  }

  /// All axes that occur together in one value or one reduction, as components.
  std::vector<uint32_t> components(size_t &count) {
    std::vector<uint32_t> parent;
    auto find = [&](uint32_t a) {
      while (parent[a] != a)
        a = parent[a];
      return a;
    };
    std::map<AxisId, uint32_t> ids;
    auto idOf = [&](AxisId leaf) {
      auto [it, fresh] = ids.try_emplace(leaf, parent.size());
      if (fresh)
        parent.push_back(it->second);
      return it->second;
    };
    std::vector<uint32_t> ofMember;
    for (uint32_t m : members_) {
      AxisList leaves = memberLeaves(graph_.node(m));
      for (size_t k = 1; k < leaves.size(); ++k)
        parent[find(idOf(leaves[k]))] = find(idOf(leaves[0]));
      ofMember.push_back(leaves.empty() ? UINT32_MAX : idOf(leaves[0]));
    }
    std::set<uint32_t> roots;
    for (uint32_t &id : ofMember)
      if (id != UINT32_MAX)
        roots.insert(id = find(id));
    count = roots.size();
    return ofMember;
  }

  AxisList memberLeaves(const Node &n) {
    AxisList leaves = shape_.axes.leaves(shape_.valueAxes.find(n.result())->second);
    if (n.combines())
      for (AxisId a : shape_.axes.leaves(shape_.reduceAxes.find(n.op)->second))
        leaves.push_back(a);
    return leaves;
  }

  /// Loops of equal extent that nothing relates may be one loop: a reduction's own dims and those over which its result
  /// is spread again, or two reductions over equally many elements.
  void align() {
    const Node *widest = nullptr;
    size_t most = 0;
    for (uint32_t m : members_) {
      const Node &n = graph_.node(m);
      size_t width = memberLeaves(n).size();
      if (!widest || width > most || (width == most && n.combines() && !widest->combines())) {
        widest = &n;
        most = width;
      }
    }
    AxisList domain = orderOf(*widest);
    for (uint32_t m : members_) {
      AxisList unknown, missing;
      for (AxisId a : memberLeaves(graph_.node(m)))
        if (!llvm::is_contained(domain, a))
          unknown.push_back(a);
      spans_ &= unknown.empty();
      if (unknown.empty())
        continue;
      AxisList mine = orderOf(graph_.node(m));
      unknown.clear();
      for (AxisId a : mine)
        if (!llvm::is_contained(domain, a))
          unknown.push_back(a);
      for (AxisId a : domain)
        if (!llvm::is_contained(mine, a))
          missing.push_back(a);
      bool fits = !unknown.empty() && unknown.size() == missing.size();
      for (size_t k = 0; fits && k < unknown.size(); ++k)
        fits = shape_.axes.size(unknown[k]).same(shape_.axes.size(missing[k]));
      if (!fits)
        continue;
      AxisTable before = shape_.axes;
      for (size_t k = 0; k < unknown.size(); ++k)
        shape_.axes.unify(AxisList{missing[k]}, AxisList{unknown[k]});
      if (!allDistinct())
        shape_.axes = std::move(before);
      domain = orderOf(*widest);
    }
  }

  /// No value has one axis in two dims.
  bool allDistinct() {
    for (uint32_t m : members_) {
      AxisList leaves = memberLeaves(graph_.node(m));
      llvm::sort(leaves);
      for (size_t k = 1; k < leaves.size(); ++k)
        if (leaves[k] == leaves[k - 1])
          return false;
    }
    return true;
  }

  /// Members that share no value inside may still share an input: then its dims are the common domain.
  bool connect() {
    if (spans_) // one value has all axes
      return true;
    size_t count = 0;
    components(count);
    if (count <= 1)
      return true;
    for (size_t i = 0; i < outsideUses_.size() && count > 1; ++i)
      for (size_t j = i + 1; j < outsideUses_.size(); ++j) {
        auto &[v, a] = outsideUses_[i];
        auto &[w, b] = outsideUses_[j];
        if (v != w || a.size() != b.size() || llvm::is_contained(a, UINT32_MAX) || llvm::is_contained(b, UINT32_MAX))
          continue;
        for (size_t k = 0; k < a.size(); ++k)
          if (!shape_.axes.unify(AxisList{a[k]}, AxisList{b[k]}))
            return refuse("(ii) domains differ");
      }
    components(count);
    return count <= 1 || refuse("(ii) no common domain");
  }

  bool makeDomain() {
    const Node *widest = nullptr;
    size_t most = 0;
    AxisList reducedSet;
    for (uint32_t m : members_) {
      const Node &n = graph_.node(m);
      if (n.combines()) {
        AxisList r = shape_.axes.leaves(shape_.reduceAxes[n.op]);
        llvm::sort(r);
        if (!reducedSet.empty() && !r.empty() && reducedSet != r)
          return refuse("(ii) reductions over different dims");
        if (!r.empty())
          reducedSet = r;
      }
      size_t width = memberLeaves(n).size();
      if (!widest || width > most || (width == most && n.combines())) {
        widest = &n;
        most = width;
      }
    }
    shape_.reduced = reducedSet;
    AxisList order = orderOf(*widest);
    shape_.reduced.clear();
    for (AxisId leaf : order)
      (llvm::is_contained(reducedSet, leaf) ? shape_.reduced : shape_.parallel).push_back(leaf);
    if (shape_.reduced.size() != reducedSet.size())
      return refuse("(ii) no value spans the domain");
    return true;
  }

  /// The leaves of a node's points in the order of its (operand's) dims.
  AxisList orderOf(const Node &n) {
    if (!n.combines())
      return shape_.leavesOf(n.result());
    if (n.kind == NodeKind::Contract)
      return memberLeaves(n);
    AxisList order;
    const AxisList &result = shape_.valueAxes.find(n.result())->second, &reduced = shape_.reduceAxes.find(n.op)->second;
    for (const DimUse &d : n.uses[0].dims)
      for (AxisId leaf : shape_.axes.leaves(d.kind == DimUse::Result ? result[d.index] : reduced[d.index]))
        order.push_back(leaf);
    return order;
  }

  bool checkValues() {
    auto inDomain = [&](AxisId a) {
      return llvm::is_contained(shape_.parallel, a) || llvm::is_contained(shape_.reduced, a);
    };
    for (uint32_t m : members_) {
      AxisList leaves = memberLeaves(graph_.node(m));
      AxisList sorted = leaves;
      llvm::sort(sorted);
      for (size_t k = 0; k < sorted.size(); ++k) {
        if (!inDomain(sorted[k]))
          return refuse("(ii) domains differ");
        if (k && sorted[k] == sorted[k - 1])
          return refuse("(iii) one value at two points");
      }
    }
    for (uint32_t m : shape_.outputs) {
      AxisList leaves = shape_.leavesOf(graph_.node(m).result());
      size_t reduced = llvm::count_if(leaves, [&](AxisId a) { return shape_.isReduced(a); });
      size_t parallel = leaves.size() - reduced;
      if (parallel != shape_.parallel.size() || (reduced != 0 && reduced != shape_.reduced.size()))
        return refuse("(ii) an output does not span the domain");
    }
    return true;
  }

  /// A group has one contraction or none. With one it has no other reduction, the operands come from outside, and the
  /// columns are one dim, so that they can be packed.
  bool checkContract() {
    const Node *contract = nullptr;
    bool others = false;
    for (uint32_t m : members_) {
      const Node &n = graph_.node(m);
      if (n.kind == NodeKind::Contract && std::exchange(contract, &n))
        return refuse("two contractions");
      others |= n.kind == NodeKind::Reduce;
    }
    if (!contract)
      return true;
    if (others)
      return refuse("a reduction of sums of products");
    for (const OperandUse &use : contract->uses)
      if (computesInside(use.value))
        return refuse("an operand of a contraction");
    AxisList axes = shape_.valueAxes.lookup(contract->result());
    if (shape_.axes.leaves(axes.back()).size() > 1)
      return refuse("(iii) columns of a contraction in several dims");
    return true;
  }

  const Graph &graph_;
  ArrayRef<uint32_t> members_;
  std::string &why_;
  DenseSet<Operation *> inside_;
  std::vector<std::pair<Value, AxisList>> outsideUses_;
  GroupShape shape_;
  bool spans_ = true;
};

} // namespace

bool GroupShape::isReduced(AxisId leaf) const { return llvm::is_contained(reduced, leaf); }

std::optional<GroupShape> shapeOf(const Graph &graph, ArrayRef<uint32_t> members, std::string &why) {
  return Unifier(graph, members, why).run();
}

bool keepsPoints(const OpInfo &view) { return viewForm(view) != ViewForm::Other; }

bool isInside(const Graph &graph, const GroupShape &shape, Value v) {
  int64_t p = graph.producer(v);
  return p >= 0 && shape.valueAxes.count(graph.node(p).result());
}

} // namespace dlc::compiler
