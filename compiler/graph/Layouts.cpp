// Composition of view layouts.
#include "compiler/graph/Layouts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace dlc::compiler {

bool isRowMajor(const Dims &sizes, const Dims &strides) {
  Dim expected(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    if (!sizes[i].same(Dim(1)) && !strides[i].same(expected))
      return false;
    expected *= sizes[i];
  }
  return true;
}

bool isChannelsLast(Value v) {
  auto result = dyn_cast<OpResult>(v);
  auto list = result ? result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(kChannelsLastAttr) : DenseI64ArrayAttr();
  return list && llvm::is_contained(list.asArrayRef(), static_cast<int64_t>(result.getResultNumber()));
}

void setChannelsLast(Value v) {
  auto result = cast<OpResult>(v);
  SmallVector<int64_t> numbers;
  if (auto list = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(kChannelsLastAttr))
    numbers.append(list.asArrayRef().begin(), list.asArrayRef().end());
  numbers.push_back(result.getResultNumber());
  result.getOwner()->setAttr(kChannelsLastAttr, DenseI64ArrayAttr::get(v.getContext(), numbers));
}

static Dims channelsLastStrides(const Dims &sizes) {
  return Dims{sizes[1] * sizes[3] * sizes[2], Dim(1), sizes[1] * sizes[3], sizes[1]};
}

void Layouts::setRoot(Value v, Dims strides) {
  known_[v] = std::make_unique<Layout>(Layout{v, symbols_.sizes(v), std::move(strides), Dim(0)});
}

/// Fills the layout of the view `op`; false if its operand's layout allows no such view.
bool Layouts::compose(Operation *op, const OpInfo &info, Layout &out) {
  Layout self = of(op->getOperand(0));
  bool strided = StringRef(info.name) == "as_strided";
  if (strided && !isRowMajor(self.sizes, self.strides))
    return false;
  auto value = [&](Value v) {
    TensorMeta m = metaOf(v, symbols_);
    if (v == op->getOperand(0)) {
      m.strides = self.strides;
      m.offset = strided ? Dim(0) : self.offset;
    }
    return m;
  };
  try {
    BoxedOp<TensorMeta> boxed(op, info, {value, numberOf, symbols_});
    MetaResult r;
    info.meta(boxed.args(), r);
    out = {self.root, r.outs[0].sizes, r.outs[0].strides, r.outs[0].offset};
    if (strided)
      out.offset += self.offset;
    // The type's own expressions are the canonical ones; the meta's may be equal without being the same.
    Dims typed = symbols_.sizes(op->getResult(0));
    bool agree = typed.size() == out.sizes.size();
    for (size_t k = 0; agree && k < typed.size(); ++k)
      agree = typed[k].value() == out.sizes[k].value();
    out.sizes = typed;
    return agree;
  } catch (const Error &) {
    return false;
  }
}

const Layout &Layouts::of(Value v) {
  auto it = known_.find(v);
  if (it != known_.end())
    return *it->second;
  auto layout = std::make_unique<Layout>();
  Operation *op = v.getDefiningOp();
  const OpInfo *info = op ? infoOf(op) : nullptr;
  if (!info || info->kind != OpKind::View || !compose(op, *info, *layout)) {
    Dims sizes = symbols_.sizes(v);
    *layout = {v, sizes, isChannelsLast(v) ? channelsLastStrides(sizes) : contiguousStrides(sizes), Dim(0)};
  }
  return *(known_[v] = std::move(layout));
}

std::optional<size_t> Layouts::fastestDim(Value v) {
  const Layout &layout = of(v);
  for (size_t d = layout.sizes.size(); d-- > 0;)
    if (layout.strides[d].same(Dim(1)) && !layout.sizes[d].same(Dim(1)))
      return d;
  return std::nullopt;
}

bool Layouts::isFreeView(Operation *op) {
  const OpInfo *info = infoOf(op);
  return info && info->kind == OpKind::View && of(op->getResult(0)).root != op->getResult(0);
}

void setFunctionLayouts(func::FuncOp func, Layouts &layouts) {
  for (BlockArgument arg : func.getArguments())
    if (auto strides = func.getArgAttrOfType<AffineMapAttr>(arg.getArgNumber(), "dlc.strides"))
      layouts.setRoot(arg, layouts.symbols().dims(strides.getValue()));
  Operation *ret = func.getBody().front().getTerminator();
  DenseSet<Value> seen;
  for (OpOperand &operand : ret->getOpOperands()) {
    Value v = operand.get();
    auto strides = func.getResultAttrOfType<AffineMapAttr>(operand.getOperandNumber(), "dlc.strides");
    bool first = seen.insert(v).second;
    if (strides && first && v.getDefiningOp() && layouts.of(v).root == v)
      layouts.setRoot(v, layouts.symbols().dims(strides.getValue()));
  }
}

} // namespace dlc::compiler
