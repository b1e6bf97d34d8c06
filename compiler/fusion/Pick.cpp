// Recognises sums over one-hot masks, which is how losses choose the score of the target. Everything that f is made of
// must be readable at any position: no gathers inside, nothing that may fail.
#include "compiler/fusion/Pick.h"
#include "compiler/fusion/Fuse.h"
#include "compiler/graph/BoxedOp.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

class Finder {
public:
  Finder(const Graph &graph, const FusedGroup &group, const Node &sum)
      : graph_(graph), group_(group), sum_(sum), by_(group.shape.axes.leaves(group.shape.reduceAxes.lookup(sum.op))) {}

  std::optional<Pick> find() {
    ReduceForm form = *reduceForm(*sum_.info);
    Value operand = sum_.uses[0].value;
    const Node *choice = member(operand);
    if (form.combine != ReduceForm::Add || form.dividesByCount || by_.size() != 1 || !choice ||
        StringRef(choice->info->name) != "where" || dtypeOf(operand) != dtypeOf(sum_.result()) ||
        dtypeOf(operand) == DType::Bool)
      return std::nullopt;
    OperandRanges operands(choice->op, *choice->info);
    Value f = operands["self"];
    if (!isZero(operands["other"]) || !isa<RankedTensorType>(f.getType()) || !isReadableAnywhere(f))
      return std::nullopt;
    const Node *comparison = member(operands["condition"]);
    if (!comparison || StringRef(comparison->info->name) != "eq" || comparison->uses.size() != 2)
      return std::nullopt;
    for (unsigned i = 0; i < 2; ++i) {
      const OperandUse &index = comparison->uses[1 - i];
      if (isPosition(comparison->uses[i].value) && isInteger(dtypeOf(index.value)) && !varies(*comparison, index))
        return Pick{choice, f, comparison, &index};
    }
    return std::nullopt;
  }

private:
  /// The member of the group that computes `v`.
  const Node *member(Value v) const {
    int64_t p = graph_.producer(v);
    return p >= 0 && isInside(graph_, group_.shape, v) ? &graph_.node(static_cast<size_t>(p)) : nullptr;
  }

  static bool isInteger(DType t) { return !isFloat(t) && t != DType::Bool; }

  static bool isZero(Value v) { return matchPattern(v, m_AnyZeroFloat()) || matchPattern(v, m_Zero()); }

  /// 0, 1, 2, ... along the summed dim.
  bool isPosition(Value v) const {
    const Node *n = member(v);
    if (!n || StringRef(n->info->name) != "arange" || dtypeOf(n->result()) != DType::I64 ||
        group_.shape.leavesOf(n->result()) != by_)
      return false;
    OperandRanges operands(n->op, *n->info);
    auto is = [&](StringRef name, int64_t value) {
      std::optional<Dim> d = graph_.symbols().dim(operands[name]);
      return d && d->same(Dim(value));
    };
    return is("start", 0) && is("step", 1);
  }

  bool varies(const Node &n, const OperandUse &use) const {
    const AxisList &axes = group_.shape.valueAxes.find(n.result())->second;
    for (const DimUse &d : use.dims)
      if (d.kind == DimUse::Result && llvm::is_contained(group_.shape.axes.leaves(axes[d.index]), by_[0]))
        return true;
    return false;
  }

  bool isReadableAnywhere(Value v) {
    const Node *n = member(v);
    if (!n || !llvm::is_contained(group_.shape.leavesOf(n->result()), by_[0]))
      return true; // read from memory, or the same at each position
    if (n->mayFail || n->kind == NodeKind::Reduce)
      return false;
    return llvm::all_of(n->uses,
                        [&](const OperandUse &use) { return !use.needsBuffer && isReadableAnywhere(use.value); });
  }

  const Graph &graph_;
  const FusedGroup &group_;
  const Node &sum_;
  AxisList by_;
};

} // namespace

std::optional<Pick> findPick(const Graph &graph, const FusedGroup &group, const Node &n) {
  return Finder(graph, group, n).find();
}

} // namespace dlc::compiler
