// Views between flat batches of matrices and (batch, heads, positions, features), and the ops of attention over these.
#include "compiler/graph/RaiseParts.h"
#include "dialects/dlc/Rules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dlc::compiler {

Value RaiseParts::view(Value v, const Dims &sizes) {
  if (same(symbols_.sizes(v), sizes))
    return v;
  ir::OpParts parts;
  parts.operands.push_back({v});
  SmallVector<Value, 2> values;
  for (const Dim &d : sizes)
    values.push_back(ir::materialize(b_, loc_, d, func_));
  parts.operands.push_back(values);
  Type element = cast<RankedTensorType>(v.getType()).getElementType();
  Type type = ir::tensorType(element, sizes, static_cast<unsigned>(symbols_.count()));
  return ir::createOp(b_, loc_, *findOp("view"), parts, {type})->getResult(0);
}

/// Whether `op` swaps dims a and b.
static bool swaps(Operation *op, int64_t a, int64_t b) {
  if (!isOp(op, "transpose"))
    return false;
  int64_t rank = cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
  auto dim = [&](StringRef name) { return (op->getAttrOfType<IntegerAttr>(name).getInt() + rank) % rank; };
  int64_t x = dim("dim0"), y = dim("dim1");
  return (x == a && y == b) || (x == b && y == a);
}

Value RaiseParts::transpose(Value v, int64_t a, int64_t b) {
  if (swaps(v.getDefiningOp(), a, b))
    return v.getDefiningOp()->getOperand(0);
  Dims sizes = symbols_.sizes(v);
  std::swap(sizes[a], sizes[b]);
  ir::OpParts parts;
  parts.operands.push_back({v});
  parts.operands.resize(3);
  parts.attributes.push_back(b_.getNamedAttr("dim0", b_.getI64IntegerAttr(a)));
  parts.attributes.push_back(b_.getNamedAttr("dim1", b_.getI64IntegerAttr(b)));
  Type element = cast<RankedTensorType>(v.getType()).getElementType();
  Type type = ir::tensorType(element, sizes, static_cast<unsigned>(symbols_.count()));
  return ir::createOp(b_, loc_, *findOp("transpose"), parts, {type})->getResult(0);
}

Value RaiseParts::unflatten(Value v, const Dims &sizes) {
  Operation *op = v.getDefiningOp();
  if (isOp(op, "view") && same(symbols_.sizes(op->getOperand(0)), sizes))
    return op->getOperand(0);
  return view(v, sizes);
}

Value RaiseParts::unflattenSwapped(Value v, const Dims &sizes) {
  Operation *op = v.getDefiningOp();
  if (swaps(op, 1, 2))
    return unflatten(op->getOperand(0), sizes);
  return transpose(unflatten(v, Dims{sizes[0], sizes[1], sizes[3], sizes[2]}), 2, 3);
}

Value RaiseParts::maskOf(Value mask, bool flat, bool negated) {
  Dims sizes = symbols_.sizes(mask), four;
  size_t rank = sizes.size();
  for (size_t i = rank; i < (flat ? 3u : 4u); ++i)
    four.push_back(Dim(1));
  for (size_t i = 0; i < rank; ++i)
    four.push_back(sizes[i]);
  if (flat)
    four.insert(1, Dim(1));
  if (negated) {
    ir::OpParts parts;
    parts.operands.push_back({mask});
    mask = ir::createOp(b_, loc_, *findOp("logical_not"), parts, {mask.getType()})->getResult(0);
  }
  return view(mask, four);
}

Value RaiseParts::number(double x) { return ir::materialize(b_, loc_, Number(x)); }

Value RaiseParts::again(Value number) { return ir::materialize(b_, loc_, numberOf(number)); }

Operation *RaiseParts::attention(const RaisedAttention &call) {
  const OpInfo &info = *findOp("attention");
  ir::OpParts parts;
  parts.operands = {{call.query}, {call.key}, {call.value}, {}, {}, {call.scale}, {}, {call.fill}, {}};
  if (call.mask)
    parts.operands[3].push_back(call.mask);
  parts.attributes = {flag("is_causal", false), flag("divides", call.divides), flag("zero_empty", false)};
  return ir::createOp(b_, loc_, info, parts);
}

Operation *RaiseParts::attentionBackward(const RaisedAttention &call, Value grad, Operation *forward, Value gradScale,
                                         Value gradFill) {
  const OpInfo &info = *findOp("attention_backward");
  ir::OpParts parts;
  parts.operands = {{grad},
                    {call.query},
                    {call.key},
                    {call.value},
                    {},
                    {forward->getResult(0)},
                    {forward->getResult(1)},
                    {},
                    {call.scale},
                    {},
                    {call.fill},
                    {},
                    {gradScale},
                    {gradFill}};
  if (call.mask)
    parts.operands[4].push_back(call.mask);
  parts.attributes = {flag("is_causal", false), flag("divides", call.divides), flag("zero_empty", false)};
  return ir::createOp(b_, loc_, info, parts);
}

void RaiseParts::replaceFlat(Operation *op, Value v, bool swapped) {
  if (swapped)
    v = transpose(v, 2, 3);
  Value flat = op->getResult(0);
  // What views it with heads again reads the value itself.
  Dims sizes = symbols_.sizes(v);
  for (Operation *user : llvm::make_early_inc_range(flat.getUsers()))
    if (isOp(user, "view") && same(symbols_.sizes(user->getResult(0)), sizes))
      user->getResult(0).replaceAllUsesWith(v);
  for (Operation *user : llvm::make_early_inc_range(flat.getUsers()))
    if (isOp(user, "view") && user->use_empty())
      user->erase();
  if (!flat.use_empty())
    flat.replaceAllUsesWith(view(v, symbols_.sizes(flat)));
}

} // namespace dlc::compiler
