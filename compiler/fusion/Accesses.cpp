// Strides of layouts spread over the digits of their dims.
#include "compiler/fusion/Accesses.h"

using namespace mlir;

namespace dlc::compiler {

Dim Access::strideOf(AxisId leaf) const {
  Dim sum(0);
  for (auto &[axis, stride] : strides)
    if (axis == leaf)
      sum += stride;
  return sum;
}

/// Adds `stride` of one dim whose digits are the leaves of `axis`.
static void spread(const GroupShape &shape, AxisId axis, Dim stride, Access &a) {
  AxisList leaves = shape.axes.leaves(axis);
  for (size_t k = leaves.size(); k-- > 0;) {
    a.strides.push_back({leaves[k], stride});
    stride *= shape.axes.size(leaves[k]);
  }
}

Access accessOf(const Graph &graph, const FusedGroup &group, const Node &n, const OperandUse &use) {
  const Layout &layout = graph.layouts().of(use.value);
  Access a{layout.root, layout.offset, {}, {}, {}};
  const AxisList &result = group.shape.valueAxes.find(n.result())->second;
  for (size_t k = 0; k < use.dims.size(); ++k) {
    DimUse d = use.dims[k];
    if (d.kind == DimUse::Gathered) {
      a.rowStride = layout.strides[k];
      a.rows = layout.sizes[k];
    } else if (d.kind == DimUse::Result) {
      spread(group.shape, result[d.index], layout.strides[k], a);
    } else if (d.kind == DimUse::Reduced) {
      spread(group.shape, group.shape.reduceAxes.find(n.op)->second[d.index], layout.strides[k], a);
    }
  }
  return a;
}

Access accessOfResult(const Graph &graph, const FusedGroup &group, const Node &n) {
  const Layout &layout = graph.layouts().of(n.result());
  Access a{layout.root, layout.offset, {}, {}, {}};
  const AxisList &axes = group.shape.valueAxes.find(n.result())->second;
  for (size_t k = 0; k < axes.size(); ++k)
    spread(group.shape, axes[k], layout.strides[k], a);
  return a;
}

bool usesIndex(const Node &n) {
  StringRef name = n.info->name;
  return name == "tril" || name == "triu" || name == "eye" || name == "select_scatter" || name.starts_with("arange") ||
         n.info->kind == OpKind::Random;
}

namespace {

class Coalescer {
public:
  Coalescer(const Graph &graph, const FusedGroup &group) : group_(group) {
    for (uint32_t m : group.members) {
      const Node &n = graph.node(m);
      for (const OperandUse &use : n.uses)
        if (!isInside(graph, group.shape, use.value))
          accesses_.push_back(accessOf(graph, group, n, use));
      AxisList leaves = group.shape.leavesOf(n.result());
      if (usesIndex(n))
        for (AxisId a : leaves)
          fixed_.insert(a);
      spans_.push_back(leaves);
      auto reduced = group.shape.reduceAxes.find(n.op);
      if (reduced != group.shape.reduceAxes.end())
        for (AxisId a : group.shape.axes.leaves(reduced->second))
          spans_.back().push_back(a);
    }
    for (uint32_t m : group.shape.outputs)
      accesses_.push_back(accessOfResult(graph, group, graph.node(m)));
  }

  void add(const AxisList &leaves, bool reduced, std::vector<LoopDim> &out) {
    for (size_t k = 0; k < leaves.size(); ++k) {
      Dim size = group_.shape.axes.size(leaves[k]);
      if (k && canJoin(leaves[k - 1], leaves[k], size)) {
        out.back().leaves.push_back(leaves[k]);
        out.back().size *= size;
      } else {
        out.push_back({{leaves[k]}, size, "", reduced});
      }
    }
  }

private:
  bool canJoin(AxisId outer, AxisId inner, const Dim &innerSize) {
    if (fixed_.contains(outer) || fixed_.contains(inner))
      return false;
    for (const AxisList &span : spans_)
      if (llvm::is_contained(span, outer) != llvm::is_contained(span, inner))
        return false;
    for (const Access &a : accesses_)
      if (!a.strideOf(outer).same(a.strideOf(inner) * innerSize))
        return false;
    return true;
  }

  const FusedGroup &group_;
  std::vector<Access> accesses_;
  std::vector<AxisList> spans_;
  DenseSet<AxisId> fixed_;
};

} // namespace

std::vector<LoopDim> loopDims(const Graph &graph, const FusedGroup &group) {
  Coalescer c(graph, group);
  std::vector<LoopDim> dims;
  c.add(group.shape.parallel, false, dims);
  c.add(group.shape.reduced, true, dims);
  for (size_t i = 0; i < dims.size(); ++i)
    dims[i].name = (dims[i].reduced ? "r" : "p") + std::to_string(i);
  return dims;
}

} // namespace dlc::compiler
