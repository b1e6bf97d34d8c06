// The choice is by sizes alone (hints for symbols): generated code wins where the right operand is packed beforehand.
#include "compiler/fusion/Contract.h"
#include "compiler/fusion/ScalarCode.h"
#include "compiler/graph/StatePart.h"
#include "dialects/kernel/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

int64_t panelColumns(int64_t n, int64_t elementBytes, unsigned vectorBits) {
  int64_t width = static_cast<int64_t>(vectorBits) / 8 / elementBytes;
  int64_t registers = vectorBits >= 512 ? 32 : 16, best = width;
  double least = 1e300;
  for (int64_t vectors = 1; vectors <= (registers == 32 ? 4 : 3); ++vectors) {
    // As many rows of sums as fit beside a row of the panel and one element.
    int64_t rows = std::min<int64_t>(14, (registers - vectors - 1) / vectors), columns = vectors * width;
    double cycles = std::max(rows * vectors / 2.0, (rows + vectors) / 2.0 * 1.3) + 0.15;
    double all = cycles / static_cast<double>(rows) * static_cast<double>((n + columns - 1) / columns);
    if (all > least * 1.001)
      continue;
    least = all;
    best = columns;
  }
  return best;
}

bool isLargeProduct(const Dims &sizes) { return sizes.size() == 2 && sizes[0].value() >= 16 && sizes[1].value() >= 48; }

namespace {

/// The state argument that `v` is, or that it is a view of.
bool isStateView(func::FuncOp func, Value v, Layouts &layouts) { return isState(func, layouts.of(v).root); }

/// Whether generated code is expected to beat the library. With a packed operand: not where most of a vector of columns
/// is padding and that is paid for many rows. Else: where the operands are worth packing, and
/// sums are long if lhs lies by columns.
bool isWorthGenerating(func::FuncOp func, const Node &n, Layouts &layouts, unsigned vectorBits) {
  Dims sizes = layouts.symbols().sizes(n.result());
  if (sizes.size() != 2)
    return false;
  const Layout &lhs = layouts.of(n.uses[0].value);
  if (!isStateView(func, n.uses[1].value, layouts))
    return isLargeProduct(sizes) && (lhs.strides[1].same(Dim(1)) || lhs.sizes[1].value() >= 128);
  int64_t width = static_cast<int64_t>(vectorBits) / 8 / static_cast<int64_t>(itemSize(dtypeOf(n.result())));
  return sizes[1].value() * 2 >= width * 3 || sizes[0].value() <= 4;
}

} // namespace

void chooseLibraryProducts(func::FuncOp func, Layouts &layouts, const FusionOptions &options) {
  for (Operation &op : func.getBody().front()) {
    Node n = describe(&op, layouts);
    if (n.kind != NodeKind::Contract)
      continue;
    if (options.contract == 0 || (options.contract < 0 && !isWorthGenerating(func, n, layouts, options.vectorBits)))
      op.setAttr(kLibraryAttr, UnitAttr::get(func.getContext()));
  }
}

PackedOperand WeightPacker::packedFor(const Graph &graph, const FusedGroup &group) {
  for (uint32_t m : group.members) {
    const Node &n = graph.node(m);
    if (n.kind != NodeKind::Contract)
      continue;
    Layout layout = layouts_.of(n.uses[1].value);
    if (layout.sizes.size() != 2 || !isState(func_, layout.root) || !layout.sizes[0].isConst() ||
        !layout.sizes[1].isConst())
      return {};
    DType t = dtypeOf(n.result());
    int64_t columns = panelColumns(layout.sizes[1].value(), static_cast<int64_t>(itemSize(t)), options_.vectorBits);
    if (Value narrow = beforeWidening(layout.root))
      layout.root = narrow;
    for (const Known &k : known_)
      if (k.layout.root == layout.root && k.columns == columns && same(k.layout.sizes, layout.sizes) &&
          same(k.layout.strides, layout.strides) && k.layout.offset.same(layout.offset))
        return {k.packed, 1, columns};
    Value packed = pack(layout, cast<RankedTensorType>(layout.root.getType()).getElementType(), columns);
    known_.push_back({layout, columns, packed});
    return {packed, 1, columns};
  }
  return {};
}

/// The state that a derived value is, in a narrower type: it is packed as it is, and widened where it is multiplied.
Value WeightPacker::beforeWidening(Value v) {
  auto arg = cast<BlockArgument>(v);
  if (!isDerived(func_, arg))
    return {};
  auto name = func_.getArgAttrOfType<FlatSymbolRefAttr>(arg.getArgNumber(), kDerivedAttr);
  auto maker = func_->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(name.getAttr());
  Operation *first = &maker.getBody().front().front();
  bool casts =
      first->getName().getStringRef() == "dlc.cast" && first->getNextNode() == first->getBlock()->getTerminator();
  if (!casts || first->getOperand(0) != maker.getArgument(0) || maker.getArgAttr(0, "dlc.strides"))
    return {};
  DType from = dtypeOf(first->getOperand(0)), to = dtypeOf(v);
  if (to != DType::F32 || (from != DType::BF16 && from != DType::F16))
    return {};
  int64_t source = func_.getArgAttrOfType<DenseI64ArrayAttr>(arg.getArgNumber(), kFromAttr)[0];
  for (BlockArgument a : func_.getArguments())
    if (isa<RankedTensorType>(a.getType()) && derivedSourceOf(func_, a) == source)
      return a;
  return {};
}

/// A derived argument, and its function: one kernel that reads the weight column by column, zeros behind the last.
Value WeightPacker::pack(const Layout &layout, Type element, int64_t columns) {
  MLIRContext *c = func_.getContext();
  Location loc = func_.getLoc();
  int64_t k = layout.sizes[0].value(), n = layout.sizes[1].value(), panels = (n + columns - 1) / columns;
  Value argument;
  func::FuncOp made =
      addDerivedFunction(func_, RankedTensorType::get({panels, k, columns}, element), {layout.root}, argument);
  OpBuilder inModule = OpBuilder::atBlockEnd(func_->getParentOfType<ModuleOp>().getBody());
  std::string name = (made.getSymName() + "_pack").str();
  KernelBuilder kernel(inModule, loc, name);
  Type memory = memoryType(dtypeOf(element), c);
  SmallVector<int64_t> strides{layout.strides[0].value(), layout.strides[1].value()};
  Value from =
      kernel.buffer(memory, {strides[0] == 1 ? 1 : ShapedType::kDynamic, strides[1] == 1 ? 1 : ShapedType::kDynamic});
  Dims ints;
  for (int64_t s : strides)
    if (s != 1)
      ints.push_back(Dim(s));
  Value size = kernel.index(), depth = kernel.index(), bound = kernel.index();
  for (int64_t i : {panels, k, n})
    ints.push_back(Dim(i));
  kernel.dim("p", size);
  kernel.dim("k", depth);
  kernel.dim("c", columns);
  AffineExpr p = getAffineDimExpr(0, c), row = getAffineDimExpr(1, c), column = getAffineDimExpr(2, c);
  Value value = kernel.map({"p", "k", "c"}, [&](StageBuilder &s) {
    Value zero = constantScalar(s, dtypeOf(element), 0).value;
    s.yield({s.read(from, AffineMap::get(3, 0, {row, p * columns + column}, c), {}, Bound::pad, {1}, {bound}, zero)});
  })[0];
  Value to = kernel.output(memory, {ShapedType::kDynamic, ShapedType::kDynamic, 1});
  for (int64_t i : {k * columns, columns})
    ints.push_back(Dim(i));
  kernel.write(value, to, AffineMap::getMultiDimIdentityMap(3, c));
  FuncOp func = kernel.finish();

  OpBuilder b = OpBuilder::atBlockEnd(&made.getBody().front());
  OperationState state(loc, "dlc.launch");
  state.addOperands(made.getArgument(0));
  state.addTypes(argument.getType());
  state.addAttribute("kernel", FlatSymbolRefAttr::get(func.getSymNameAttr()));
  state.addAttribute("offsets", AffineMapAttr::get(ir::toAffine(Dims{layout.offset, Dim(0)}, 0, c)));
  state.addAttribute("ints", AffineMapAttr::get(ir::toAffine(ints, 0, c)));
  state.addAttribute("number_at", b.getDenseI64ArrayAttr({}));
  state.addAttribute("inplace", b.getDenseI64ArrayAttr({}));
  state.addAttribute("cost", b.getI64IntegerAttr(1));
  state.addAttribute("ops", b.getArrayAttr({b.getStringAttr("pack")}));
  Operation *launch = b.create(state);
  b.create<func::ReturnOp>(loc, launch->getResults());
  return argument;
}

} // namespace dlc::compiler
