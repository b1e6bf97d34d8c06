// Building kernel.func from C++. Result types of a stage come from its yield, so the stage is made anew once the
// region is there.
#include "dialects/kernel/KernelBuilder.h"

using namespace mlir;

namespace dlc::ir::kernel {

//===--- StageBuilder ---===//

Value StageBuilder::read(Value buffer, AffineMap map, ValueRange syms, Type as) {
  Type type = as ? as : cast<MemRefType>(buffer.getType()).getElementType();
  return b.create<ReadOp>(loc, type, buffer, map, syms, BoundAttr(), DenseI64ArrayAttr(), ValueRange(), Value());
}

Value StageBuilder::read(Value buffer, AffineMap map, ValueRange syms, Bound bound, ArrayRef<int64_t> dims,
                         ValueRange sizes, Value pad, Type as) {
  Type type = as ? as : cast<MemRefType>(buffer.getType()).getElementType();
  return b.create<ReadOp>(loc, type, buffer, map, syms, BoundAttr::get(b.getContext(), bound),
                          b.getDenseI64ArrayAttr(dims), sizes, pad);
}

Value StageBuilder::use(Value stage) {
  return b.create<UseOp>(loc, cast<ValType>(stage.getType()).getElementType(), stage);
}

Value StageBuilder::index(StringRef dim) { return b.create<IndexOp>(loc, b.getI64Type(), dim); }

Value StageBuilder::prim(StringRef name, ValueRange operands, Type result) {
  return b.create<PrimOp>(loc, result, name, operands);
}

void StageBuilder::yield(ValueRange values) { b.create<YieldOp>(loc, values); }

//===--- KernelBuilder ---===//

KernelBuilder::KernelBuilder(OpBuilder &b, Location loc, StringRef name) : loc_(loc), body_(b.getContext()) {
  OperationState state(loc, FuncOp::getOperationName());
  state.addAttribute("sym_name", b.getStringAttr(name));
  state.addAttribute("dim_names", b.getArrayAttr({}));
  state.addAttribute("dim_sizes", b.getDenseI64ArrayAttr({}));
  state.addAttribute("outs", b.getDenseI64ArrayAttr({}));
  state.addRegion()->emplaceBlock();
  func_ = cast<FuncOp>(b.create(state));
  body_.setInsertionPointToEnd(&func_.getBlock());
}

MemRefType KernelBuilder::memref(Type element, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> sizes(strides.size(), ShapedType::kDynamic);
  if (strides.empty())
    return MemRefType::get(sizes, element);
  return MemRefType::get(sizes, element, StridedLayoutAttr::get(body_.getContext(), 0, strides));
}

Value KernelBuilder::buffer(Type element, ArrayRef<int64_t> strides) {
  return func_.getBlock().addArgument(memref(element, strides), loc_);
}

Value KernelBuilder::output(Type element, ArrayRef<int64_t> strides) {
  Value arg = buffer(element, strides);
  outs_.push_back(cast<BlockArgument>(arg).getArgNumber());
  return arg;
}

Value KernelBuilder::index() { return scalar(body_.getIndexType()); }

Value KernelBuilder::scalar(Type type) { return func_.getBlock().addArgument(type, loc_); }

void KernelBuilder::dim(StringRef name, Value sizeArg) {
  dim(name, FuncOp::encodeSizeArg(cast<BlockArgument>(sizeArg).getArgNumber()));
}

void KernelBuilder::dim(StringRef name, int64_t size) {
  dimNames_.push_back(body_.getStringAttr(name));
  dimSizes_.push_back(size);
}

ArrayAttr KernelBuilder::names(ArrayRef<StringRef> dims) { return body_.getStrArrayAttr(dims); }

SmallVector<StringRef> KernelBuilder::without(ArrayRef<StringRef> dims, ArrayRef<StringRef> removed) {
  SmallVector<StringRef> kept;
  for (StringRef dim : dims)
    if (!llvm::is_contained(removed, dim))
      kept.push_back(dim);
  return kept;
}

ResultRange KernelBuilder::results(Operation *stage, ArrayAttr dims, ArrayRef<Combine> combines) {
  SmallVector<StringAttr> names;
  for (Attribute dim : dims)
    names.push_back(cast<StringAttr>(dim));
  OperationState state(loc_, stage->getName());
  for (auto [i, value] : llvm::enumerate(stage->getRegion(0).front().getTerminator()->getOperands())) {
    bool isArg = i < combines.size() && (combines[i] == Combine::argmax || combines[i] == Combine::argmin);
    Type element = isArg ? body_.getI64Type() : value.getType();
    state.addTypes(ValType::get(body_.getContext(), element, names));
  }
  state.addAttributes(stage->getAttrs());
  state.addRegion()->takeBody(stage->getRegion(0));
  Operation *typed = body_.create(state);
  stage->erase();
  return typed->getResults();
}

ResultRange KernelBuilder::map(ArrayRef<StringRef> over, Body body) {
  ArrayAttr dims = names(over);
  auto stage = body_.create<MapOp>(loc_, TypeRange(), dims);
  StageBuilder inner(OpBuilder::atBlockEnd(&stage.getBody().emplaceBlock()), loc_);
  body(inner);
  return results(stage, dims, {});
}

ResultRange KernelBuilder::reduce(ArrayRef<StringRef> over, ArrayRef<StringRef> by, ArrayRef<Combine> combines,
                                  Body body) {
  SmallVector<Attribute> joins;
  for (Combine combine : combines)
    joins.push_back(CombineAttr::get(body_.getContext(), combine));
  auto stage = body_.create<ReduceOp>(loc_, TypeRange(), names(over), names(by), body_.getArrayAttr(joins));
  StageBuilder inner(OpBuilder::atBlockEnd(&stage.getBody().emplaceBlock()), loc_);
  body(inner);
  return results(stage, names(without(over, by)), combines);
}

Value KernelBuilder::contract(ArrayRef<StringRef> over, ArrayRef<StringRef> by, Type sum, Body lhs, Body rhs) {
  SmallVector<StringAttr> kept;
  for (StringRef dim : without(over, by))
    kept.push_back(body_.getStringAttr(dim));
  auto stage = body_.create<ContractOp>(loc_, ValType::get(body_.getContext(), sum, kept), names(over), names(by));
  for (auto [region, body] : {std::pair(&stage.getLhs(), lhs), std::pair(&stage.getRhs(), rhs)}) {
    StageBuilder inner(OpBuilder::atBlockEnd(&region->emplaceBlock()), loc_);
    body(inner);
  }
  return stage.getResult();
}

WriteOp KernelBuilder::write(Value value, Value buffer, AffineMap map, ValueRange syms) {
  return write(value, buffer, map, syms, std::nullopt, {}, {}, std::nullopt);
}

WriteOp KernelBuilder::write(Value value, Value buffer, AffineMap map, ValueRange syms, std::optional<Bound> bound,
                             ArrayRef<int64_t> dims, ValueRange sizes, std::optional<Combine> accumulate) {
  MLIRContext *ctx = body_.getContext();
  return body_.create<WriteOp>(loc_, value, buffer, map, syms, bound ? BoundAttr::get(ctx, *bound) : BoundAttr(),
                               bound ? body_.getDenseI64ArrayAttr(dims) : DenseI64ArrayAttr(), sizes,
                               accumulate ? CombineAttr::get(ctx, *accumulate) : CombineAttr());
}

FuncOp KernelBuilder::finish() {
  buffer(body_.getI64Type(), {});
  func_.setDimNamesAttr(body_.getArrayAttr(dimNames_));
  func_.setDimSizes(dimSizes_);
  func_.setOuts(outs_);
  if (schedule_)
    func_.setScheduleAttr(schedule_);
  return func_;
}

} // namespace dlc::ir::kernel
