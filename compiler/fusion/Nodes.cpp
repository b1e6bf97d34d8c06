// Descriptions by the kind that an op's record states; the few structured ops that are point by point are named here.
#include "compiler/fusion/Nodes.h"
#include "compiler/fusion/ScalarCode.h"

using namespace mlir;

namespace dlc::compiler {

namespace {

/// Right-aligned broadcasting of `v` to the result. False if a dim is neither equal nor 1.
bool broadcastUse(Value v, const Dims &result, const Symbols &symbols, OperandUse &use) {
  Dims sizes = symbols.sizes(v);
  use.value = v;
  if (sizes.size() > result.size())
    return false;
  size_t lead = result.size() - sizes.size();
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k].same(result[lead + k]))
      use.dims.push_back({DimUse::Result, static_cast<unsigned>(lead + k)});
    else if (sizes[k].same(Dim(1)))
      use.dims.push_back({DimUse::Fixed});
    else
      return false;
  }
  return true;
}

int64_t wrapDim(int64_t d, int64_t rank) { return d < 0 ? d + rank : d; }

bool describePoint(Node &n, const Symbols &symbols) {
  Dims result = symbols.sizes(n.result());
  // The first operand of these only gives the shape.
  StringRef name = n.info->name;
  bool shapeOnly = name == "copy" || name == "fill" || n.info->kind == OpKind::Creation;
  for (OpOperand &operand : n.op->getOpOperands()) {
    Value v = operand.get();
    if (!isa<RankedTensorType>(v.getType()) || (shapeOnly && operand.getOperandNumber() == 0))
      continue;
    OperandUse use;
    if (!broadcastUse(v, result, symbols, use))
      return false;
    n.uses.push_back(use);
  }
  n.kind = NodeKind::Point;
  return true;
}

/// Dims named by the attribute `dim`: one, a list, or all when absent or empty.
SmallVector<int64_t> reducedDims(Operation *op, int64_t rank) {
  SmallVector<int64_t> dims;
  if (rank == 0)
    return dims;
  Attribute a = op->getAttr("dim");
  if (auto list = dyn_cast_or_null<DenseI64ArrayAttr>(a))
    for (int64_t d : list.asArrayRef())
      dims.push_back(wrapDim(d, rank));
  else if (auto one = dyn_cast_or_null<IntegerAttr>(a))
    dims.push_back(wrapDim(one.getInt(), rank));
  if (dims.empty())
    for (int64_t d = 0; d < rank; ++d)
      dims.push_back(d);
  llvm::sort(dims);
  return dims;
}

bool describeReduce(Node &n, const Symbols &symbols) {
  if (!reduceForm(*n.info))
    return false;
  Value operand = n.op->getOperand(0);
  int64_t rank = cast<RankedTensorType>(operand.getType()).getRank();
  n.reduced = reducedDims(n.op, rank);
  auto keep = n.op->getAttrOfType<BoolAttr>("keepdim");
  bool keepdim = keep && keep.getValue();
  OperandUse use{operand, {}, false};
  unsigned out = 0, position = 0;
  for (int64_t d = 0; d < rank; ++d) {
    bool reduced = llvm::is_contained(n.reduced, d);
    use.dims.push_back(reduced ? DimUse{DimUse::Reduced, position++} : DimUse{DimUse::Result, out});
    out += !reduced || keepdim;
  }
  n.uses.push_back(use);
  n.kind = NodeKind::Reduce;
  return true;
}

/// Products of matrices, or of batches of them: [.., m, k] by [.., k, n].
bool describeContract(Node &n, const Symbols &symbols) {
  if (n.op->hasAttr(kLibraryAttr) || n.op->getNumOperands() != 2)
    return false;
  Value lhs = n.op->getOperand(0), rhs = n.op->getOperand(1);
  auto rankOf = [](Value v) {
    auto t = dyn_cast<RankedTensorType>(v.getType());
    return t ? t.getRank() : 0;
  };
  int64_t rank = rankOf(n.result());
  DType dtype = dtypeOf(n.result());
  if (rank < 2 || rankOf(lhs) != rank || rankOf(rhs) != rank || (dtype != DType::F32 && dtype != DType::F64) ||
      dtypeOf(lhs) != dtype || dtypeOf(rhs) != dtype || symbols.sizes(lhs).back().same(Dim(1)))
    return false;
  OperandUse a{lhs, {}, true}, b{rhs, {}, true}; // each element is read for many sums
  for (unsigned d = 0; d < rank; ++d) {
    bool row = d + 2 == rank, column = d + 1 == rank;
    a.dims.push_back(column ? DimUse{DimUse::Reduced, 0} : DimUse{DimUse::Result, d});
    b.dims.push_back(row ? DimUse{DimUse::Reduced, 0} : DimUse{DimUse::Result, d});
  }
  n.uses = {a, b};
  n.reduced = {rank - 1};
  n.kind = NodeKind::Contract;
  n.cost = 1;
  return true;
}

/// embedding, index_select, gather: operand `table` at rows given by operand `index`.
bool describeGather(Node &n, const Symbols &symbols) {
  OperandRanges operands(n.op, *n.info);
  bool embedding = StringRef(n.info->name) == "embedding";
  Value table = operands[embedding ? "weight" : "self"], index = operands[embedding ? "input" : "index"];
  int64_t rank = cast<RankedTensorType>(table.getType()).getRank();
  int64_t indexRank = cast<RankedTensorType>(index.getType()).getRank();
  std::optional<int64_t> dim = gatherDim(n.op, *n.info, rank);
  bool same = StringRef(n.info->name) == "gather";
  if (!dim || rank == 0 || (!same && !embedding && indexRank != 1))
    return false;
  OperandUse rows{index, {}, false}, from{table, {}, true};
  for (int64_t k = 0; k < indexRank; ++k)
    rows.dims.push_back({DimUse::Result, static_cast<unsigned>(same || embedding ? k : *dim)});
  for (int64_t k = 0; k < rank; ++k)
    from.dims.push_back(k == *dim ? DimUse{DimUse::Gathered}
                                  : DimUse{DimUse::Result, static_cast<unsigned>(embedding ? indexRank + k - 1 : k)});
  n.uses = {from, rows};
  n.kind = NodeKind::Point;
  n.mayFail = true;
  n.cost = 2;
  return true;
}

/// select_scatter: the base everywhere, read at every point; the source at the points of its slice, which all points
/// have.
bool describeSelectScatter(Node &n, const Symbols &symbols) {
  OperandRanges operands(n.op, *n.info);
  int64_t rank = cast<RankedTensorType>(n.result().getType()).getRank();
  int64_t dim = wrapDim(n.op->getAttrOfType<IntegerAttr>("dim").getInt(), rank);
  OperandUse base{operands["self"], {}, false}, src{operands["src"], {}, false};
  for (unsigned k = 0; k < rank; ++k) {
    base.dims.push_back({DimUse::Result, k});
    if (k != dim)
      src.dims.push_back({DimUse::Result, k});
  }
  n.uses = {base, src};
  n.kind = NodeKind::Point;
  return symbols.dim(operands["index"]).has_value() && dtypeOf(src.value) == dtypeOf(base.value);
}

} // namespace

std::optional<int64_t> gatherDim(Operation *op, const OpInfo &info, int64_t rank) {
  StringRef name = info.name;
  if (name == "embedding")
    return 0;
  if (name == "index_select" || name == "gather")
    if (auto dim = op->getAttrOfType<IntegerAttr>("dim"))
      return wrapDim(dim.getInt(), rank);
  return std::nullopt;
}

std::optional<ReduceForm> reduceForm(const OpInfo &info) {
  static const struct {
    StringRef name;
    ReduceForm form;
  } kForms[] = {{"sum", {ReduceForm::Add}},  {"mean", {ReduceForm::Add, true}}, {"prod", {ReduceForm::Mul}},
                {"amax", {ReduceForm::Max}}, {"amin", {ReduceForm::Min}},       {"all", {ReduceForm::And}},
                {"any", {ReduceForm::Or}},   {"argmax", {ReduceForm::ArgMax}},  {"argmin", {ReduceForm::ArgMin}}};
  for (auto &f : kForms)
    if (f.name == info.name)
      return f.form;
  return std::nullopt;
}

Node describe(Operation *op, Layouts &layouts) {
  Node n;
  n.op = op;
  n.info = infoOf(op);
  if (!n.info || op->getNumResults() == 0)
    return n;
  const Symbols &symbols = layouts.symbols();
  if (n.info->kind == OpKind::View) {
    n.kind = layouts.isFreeView(op) ? NodeKind::View : NodeKind::Opaque;
    return n;
  }
  if (op->getNumResults() != 1)
    return n;
  bool ok = false;
  if (n.info->kind == OpKind::Reduce)
    ok = describeReduce(n, symbols);
  else if (n.info->kind == OpKind::Contraction)
    ok = describeContract(n, symbols);
  else if (gatherDim(op, *n.info, 1))
    ok = describeGather(n, symbols);
  else if (StringRef(n.info->name) == "select_scatter")
    ok = describeSelectScatter(n, symbols);
  else if (hasScalarCode(op, *n.info))
    ok = describePoint(n, symbols);
  if (!ok) {
    n.uses.clear();
    n.kind = NodeKind::Opaque;
    return n;
  }
  if (n.kind == NodeKind::Point && !n.mayFail) {
    ScalarCost c = scalarCost(op, *n.info, symbols);
    n.cost = c.cost;
    n.mayFail = c.mayFail;
  }
  return n;
}

} // namespace dlc::compiler
