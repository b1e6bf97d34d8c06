// Reads and writes of memory: addresses from affine maps, bounds, and the choice between one element, neighbouring
// lanes (vector load, masked in a tail) and lanes anywhere (gather, scatter).
#include "compiler/lower/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

//===--- Indices ---===//

LinearIndex toLinear(AffineExpr expr, unsigned dims, unsigned syms) {
  LinearIndex result;
  result.dims.assign(dims, 0);
  result.syms.assign(syms, 0);
  if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
    result.constant = c.getValue();
  } else if (auto d = dyn_cast<AffineDimExpr>(expr)) {
    result.dims[d.getPosition()] = 1;
  } else if (auto s = dyn_cast<AffineSymbolExpr>(expr)) {
    result.syms[s.getPosition()] = 1;
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    LinearIndex lhs = toLinear(binary.getLHS(), dims, syms), rhs = toLinear(binary.getRHS(), dims, syms);
    auto isConstant = [](const LinearIndex &l) {
      return l.valid && llvm::all_of(l.dims, [](int64_t c) { return c == 0; }) &&
             llvm::all_of(l.syms, [](int64_t c) { return c == 0; });
    };
    bool adds = expr.getKind() == AffineExprKind::Add;
    if (expr.getKind() == AffineExprKind::Mul && isConstant(lhs))
      std::swap(lhs, rhs);
    result.valid = lhs.valid && rhs.valid && (adds || (expr.getKind() == AffineExprKind::Mul && isConstant(rhs)));
    auto join = [&](int64_t a, int64_t b) { return adds ? a + b : a * rhs.constant; };
    for (unsigned i = 0; i < dims; ++i)
      result.dims[i] = join(lhs.dims[i], rhs.dims[i]);
    for (unsigned i = 0; i < syms; ++i)
      result.syms[i] = join(lhs.syms[i], rhs.syms[i]);
    result.constant = join(lhs.constant, rhs.constant);
  }
  return result;
}

// Any affine expression as SSA arithmetic; indices are not negative, so floordiv and mod truncate.
Value KernelEmitter::indexValue(AffineExpr expr, const Access &access) {
  if (auto c = dyn_cast<AffineConstantExpr>(expr))
    return constant(i64(), c.getValue());
  if (auto d = dyn_cast<AffineDimExpr>(expr))
    return indexOf(access.dims[d.getPosition()], access.copy);
  if (auto s = dyn_cast<AffineSymbolExpr>(expr))
    return access.syms[s.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = indexValue(binary.getLHS(), access), rhs = indexValue(binary.getRHS(), access);
  if (expr.getKind() == AffineExprKind::Add)
    return addI(lhs, rhs);
  if (expr.getKind() == AffineExprKind::Mul)
    return mulI(lhs, rhs);
  if (isLanes(lhs) || isLanes(rhs)) {
    lhs = splat(lhs);
    rhs = splat(rhs);
  }
  Value zero = constant(rhs.getType(), 0), one = constant(rhs.getType(), 1);
  rhs = b_.create<arith::SelectOp>(loc_, b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::eq, rhs, zero), one, rhs);
  if (expr.getKind() == AffineExprKind::Mod)
    return b_.create<arith::RemSIOp>(loc_, lhs, rhs);
  if (expr.getKind() == AffineExprKind::CeilDiv)
    lhs = addI(lhs, b_.create<arith::SubIOp>(loc_, rhs, one));
  return b_.create<arith::DivSIOp>(loc_, lhs, rhs);
}

Value KernelEmitter::applyBound(const Access &access, Value index, Value size, Address &address) {
  bool lanes = isLanes(index);
  if (lanes)
    size = splat(size);
  Value zero = constant(index.getType(), 0), one = constant(index.getType(), 1);
  auto cmp = [&](arith::CmpIPredicate p, Value x, Value y) -> Value { return b_.create<arith::CmpIOp>(loc_, p, x, y); };
  if (access.bound == Bound::clamp) {
    Value last = b_.create<arith::SubIOp>(loc_, size, one);
    index = b_.create<arith::MinSIOp>(loc_, index, last);
    index = b_.create<arith::MaxSIOp>(loc_, index, zero);
    address.ok = andMasks(address.ok, cmp(arith::CmpIPredicate::sgt, size, zero));
    return index;
  }
  if (access.bound == Bound::wrap) {
    Value wrapped = b_.create<arith::AddIOp>(loc_, index, size);
    index = b_.create<arith::SelectOp>(loc_, cmp(arith::CmpIPredicate::slt, index, zero), wrapped, index);
  }
  Value inside = cmp(arith::CmpIPredicate::ult, index, size); // unsigned: negative is outside too
  address.ok = andMasks(address.ok, inside);
  if (access.bound != Bound::pad) {
    Value outside = b_.create<arith::XOrIOp>(loc_, inside, constant(inside.getType(), 1));
    raise(outside, static_cast<int64_t>(KernelFault::IndexOutOfRange));
  }
  return index;
}

// The common case: coefficients, no lanes of indices. Returns false if the index needs more.
bool KernelEmitter::addLinearIndex(const Access &access, unsigned result, Address &address) {
  LinearIndex linear = toLinear(access.map.getResult(result), access.dims.size(), access.syms.size());
  if (!linear.valid)
    return false;
  for (auto [i, coefficient] : llvm::enumerate(linear.syms))
    if (coefficient && isLanes(access.syms[i]))
      return false;
  auto bound = llvm::find(access.boundDims, static_cast<int64_t>(result));
  bool bounded = bound != access.boundDims.end();
  Value stride = strides_[access.buffer.getArgNumber()][result];
  int64_t staticStride = getStrides(cast<MemRefType>(access.buffer.getType()))[result];
  Value shared;
  int64_t laneCoefficient = 0;
  auto add = [&](Value x, int64_t c) { shared = addI(shared, c == 1 ? x : mulI(x, constant(i64(), c))); };
  for (auto [i, c] : llvm::enumerate(linear.dims))
    if (useLanes() && static_cast<int>(access.dims[i]) == plan_.vecDim)
      laneCoefficient += c;
  bool neighbours = laneCoefficient == 1 && staticStride == 1;
  bool apart = neighbours && !bounded && !address.addsLane;
  for (auto [i, c] : llvm::enumerate(linear.dims)) {
    bool isLaneDim = useLanes() && static_cast<int>(access.dims[i]) == plan_.vecDim;
    if (c && !(isLaneDim && apart))
      add(isLaneDim ? lanes_.base[access.copy] : dimIv_[access.dims[i]], c);
  }
  address.addsLane |= apart;
  for (auto [i, c] : llvm::enumerate(linear.syms))
    if (c)
      add(access.syms[i], c);
  if (linear.constant || !shared)
    shared = addI(shared, constant(i64(), linear.constant));
  if (bounded && laneCoefficient) {
    if (!neighbours || access.bound != Bound::pad)
      return false;
    applyBound(access, addI(shared, iota(i64())), access.sizes[bound - access.boundDims.begin()], address);
  } else if (bounded) {
    shared = applyBound(access, shared, access.sizes[bound - access.boundDims.begin()], address);
  }
  address.offset = addI(address.offset, mulI(shared, stride));
  if (neighbours)
    ++address.neighbours;
  else if (laneCoefficient)
    address.lanes = addI(address.lanes, mulI(iota(i64()), mulI(stride, constant(i64(), laneCoefficient))));
  return true;
}

void KernelEmitter::addIndex(const Access &access, unsigned result, Address &address) {
  if (addLinearIndex(access, result, address))
    return;
  Value index = indexValue(access.map.getResult(result), access);
  auto bound = llvm::find(access.boundDims, static_cast<int64_t>(result));
  if (bound != access.boundDims.end())
    index = applyBound(access, index, access.sizes[bound - access.boundDims.begin()], address);
  Value part = mulI(index, strides_[access.buffer.getArgNumber()][result]);
  (isLanes(part) ? address.lanes : address.offset) = addI(isLanes(part) ? address.lanes : address.offset, part);
}

KernelEmitter::Address KernelEmitter::address(const Access &access) {
  Address result;
  result.buffer = args_[access.buffer.getArgNumber()];
  result.element = repr(cast<MemRefType>(access.buffer.getType()).getElementType());
  for (unsigned i = 0; i < access.map.getNumResults(); ++i)
    addIndex(access, i, result);
  if (!result.offset)
    result.offset = constant(i64(), 0);
  // Two unit strides in one address (a diagonal), or neighbours plus other lanes: every lane by itself.
  if (result.neighbours > 1 || (result.neighbours && result.lanes)) {
    Value own = mulI(iota(i64()), constant(i64(), result.neighbours));
    result.lanes = addI(result.lanes, own);
    result.neighbours = 0;
  }
  return result;
}

//===--- Masks and pointers ---===//

Value KernelEmitter::andMasks(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  if (isLanes(x) != isLanes(y)) {
    x = splat(x);
    y = splat(y);
  }
  return b_.create<arith::AndIOp>(loc_, x, y);
}

Value KernelEmitter::anyLane(Value mask) {
  if (!isLanes(mask))
    return mask;
  Type bits = b_.getIntegerType(width_);
  Value word = b_.create<LLVM::BitcastOp>(loc_, bits, mask);
  return b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::ne, word, constant(bits, 0));
}

void KernelEmitter::when(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = b_.create<scf::IfOp>(loc_, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(branch.thenBlock());
  body();
}

void KernelEmitter::raise(Value condition, int64_t code) {
  if (lanes_.mask && isLanes(condition))
    condition = andMasks(condition, lanes_.mask);
  when(anyLane(condition), [&] {
    Value seen = b_.create<LLVM::LoadOp>(loc_, i64(), errorSlot_, 8);
    Value worst = b_.create<arith::MaxSIOp>(loc_, seen, constant(i64(), code));
    b_.create<LLVM::StoreOp>(loc_, worst, errorSlot_, 8);
  });
}

Value KernelEmitter::pointer(const Address &address, unsigned copy) {
  auto step = [&](Value from, LLVM::GEPArg index) -> Value {
    return b_.create<LLVM::GEPOp>(loc_, ptr(), address.element, from, ArrayRef<LLVM::GEPArg>{index});
  };
  Value result = step(address.buffer, address.offset);
  if (!address.addsLane)
    return result;
  result = step(result, lanes_.iv);
  return copy ? step(result, static_cast<int32_t>(copy * width_)) : result;
}

// Pointers of the lanes; those outside `mask` point at the integer arguments, which are always readable.
Value KernelEmitter::lanePointers(const Address &address, unsigned copy, Value mask) {
  Type vector = LLVM::LLVMFixedVectorType::get(ptr(), width_);
  Value shared = address.addsLane ? addI(address.offset, lanes_.base[copy]) : address.offset;
  Value offsets = addI(splat(shared), address.lanes);
  Value pointers = b_.create<LLVM::GEPOp>(loc_, vector, address.element, address.buffer, ValueRange{offsets});
  if (!mask)
    return pointers;
  Value zeros = constant(lanesOf(i64()), 0);
  Value safe = b_.create<LLVM::GEPOp>(loc_, vector, b_.getI8Type(), ints_, ValueRange{zeros});
  return b_.create<LLVM::SelectOp>(loc_, mask, pointers, safe);
}

// The lanes that count and whose address may be used, or null for all.
Value KernelEmitter::maskOf(const Address &address) {
  Value mask = andMasks(lanes_.mask, address.ok);
  return mask ? splat(mask) : mask;
}

//===--- Loads ---===//

static unsigned alignOf(Type element) { return std::max(1u, element.getIntOrFloatBitWidth() / 8); }

Value KernelEmitter::loadVector(const Address &address, unsigned copy, Value pad) {
  Type vector = lanesOf(address.element);
  unsigned align = alignOf(address.element);
  Value mask = maskOf(address);
  Value other = pad ? splat(pad) : constant(vector, 0);
  if (!address.isContiguous()) {
    Value all = constant(lanesOf(i1()), 1);
    Value pointers = lanePointers(address, copy, mask);
    Value loaded = b_.create<LLVM::masked_gather>(loc_, vector, pointers, all, ValueRange{}, align);
    return mask ? b_.create<arith::SelectOp>(loc_, mask, loaded, other).getResult() : loaded;
  }
  Value from = pointer(address, copy);
  if (!mask)
    return b_.create<LLVM::LoadOp>(loc_, vector, from, align);
  if (!lanes_.full || address.ok)
    return b_.create<LLVM::MaskedLoadOp>(loc_, vector, from, mask, other, align);
  auto branch = b_.create<scf::IfOp>(loc_, TypeRange{vector}, lanes_.full, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(branch.thenBlock());
  b_.create<scf::YieldOp>(loc_, ValueRange{b_.create<LLVM::LoadOp>(loc_, vector, from, align)});
  b_.setInsertionPointToStart(branch.elseBlock());
  b_.create<scf::YieldOp>(loc_, ValueRange{b_.create<LLVM::MaskedLoadOp>(loc_, vector, from, mask, other, align)});
  return branch.getResult(0);
}

Value KernelEmitter::load(const Address &address, unsigned copy, Value pad) {
  bool perLane = address.neighbours || address.lanes || (address.ok && isLanes(address.ok));
  if (perLane && address.isSamePlace()) { // one place, but a lane may be outside
    Address each = address;
    each.lanes = constant(lanesOf(i64()), 0);
    return loadVector(each, copy, pad);
  }
  if (perLane)
    return loadVector(address, copy, pad);
  Value from = pointer(address, copy);
  if (address.ok)
    from = b_.create<LLVM::SelectOp>(loc_, address.ok, from, ints_);
  Value loaded = b_.create<LLVM::LoadOp>(loc_, address.element, from, alignOf(address.element));
  if (!address.ok)
    return loaded;
  Value other = pad ? pad : constant(address.element, 0);
  return b_.create<arith::SelectOp>(loc_, address.ok, loaded, other);
}

Value KernelEmitter::fromMemory(Value x, Type scalar) {
  if (scalar.isInteger(1) && !getElementTypeOrSelf(x.getType()).isInteger(1))
    return b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::ne, x, constant(x.getType(), 0));
  return x;
}

Value KernelEmitter::toMemory(Value x, Type scalar) {
  if (!scalar.isInteger(1))
    return x;
  Type byte = isLanes(x) ? lanesOf(b_.getI8Type()) : b_.getI8Type();
  return b_.create<arith::ExtUIOp>(loc_, byte, x);
}

KernelEmitter::Placed KernelEmitter::evalRead(ReadOp op, unsigned copy) {
  Access access;
  access.buffer = cast<BlockArgument>(op.getBuffer());
  access.map = op.getMap();
  access.bound = op.getBound();
  access.copy = copy;
  DimSet dims = 0;
  for (auto [i, name] : llvm::enumerate(getOver(op->getParentOp()))) {
    access.dims.push_back(kernel_.getDimIndex(cast<StringAttr>(name).getValue()));
    if (access.map.isFunctionOfDim(i))
      dims |= DimSet(1) << access.dims.back();
  }
  unsigned level = levelOf(dims);
  SmallVector<Value> syms;
  auto place = [&](Value value) {
    Placed placed = eval(value, copy);
    level = std::max(level, placed.level);
    return placed.value;
  };
  for (Value sym : op.getSyms())
    syms.push_back(place(sym));
  for (Value size : op.getBoundSizes())
    access.sizes.push_back(place(size));
  Value pad = op.getPad() ? place(op.getPad()) : Value();
  if (op.getBoundDims())
    access.boundDims.assign(op.getBoundDims()->begin(), op.getBoundDims()->end());
  Value result = at(level, [&] {
    for (Value sym : syms)
      access.syms.push_back(toI64(sym));
    Type type = op.getResult().getType();
    Value stored = pad ? toMemory(pad, type) : pad;
    return fromMemory(load(address(access), copy, stored), type);
  });
  return {result, level};
}

//===--- Stores ---===//

void KernelEmitter::store(const Address &address, unsigned copy, Value value) {
  unsigned align = alignOf(address.element);
  bool perLane = address.neighbours || address.lanes;
  if (!perLane) {
    when(address.ok, [&] { b_.create<LLVM::StoreOp>(loc_, value, pointer(address, copy), align); });
    return;
  }
  value = splat(value);
  Value mask = maskOf(address);
  if (!address.isContiguous()) {
    Value lanes = mask ? mask : constant(lanesOf(i1()), 1);
    b_.create<LLVM::masked_scatter>(loc_, value, lanePointers(address, copy, Value()), lanes, align);
    return;
  }
  Value to = pointer(address, copy);
  if (!mask) {
    b_.create<LLVM::StoreOp>(loc_, value, to, align);
  } else if (!lanes_.full || address.ok) {
    b_.create<LLVM::MaskedStoreOp>(loc_, value, to, mask, align);
  } else {
    auto branch = b_.create<scf::IfOp>(loc_, lanes_.full, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    b_.create<LLVM::StoreOp>(loc_, value, to, align);
    b_.setInsertionPointToStart(branch.elseBlock());
    b_.create<LLVM::MaskedStoreOp>(loc_, value, to, mask, align);
  }
}

void KernelEmitter::emitWrite(WriteOp op, unsigned copy, Value value, ArrayRef<Value> syms) {
  Access access;
  access.buffer = cast<BlockArgument>(op.getBuffer());
  access.map = op.getMap();
  access.bound = op.getBound();
  access.copy = copy;
  for (StringAttr name : op.getValue().getType().getDims())
    access.dims.push_back(kernel_.getDimIndex(name.getValue()));
  for (Value sym : syms)
    access.syms.push_back(toI64(sym));
  for (Value size : op.getBoundSizes())
    access.sizes.push_back(eval(size, copy).value);
  if (op.getBoundDims())
    access.boundDims.assign(op.getBoundDims()->begin(), op.getBoundDims()->end());
  Address to = address(access);
  Type scalar = op.getValue().getType().getElementType();
  if (auto combineKind = op.getAccumulate()) {
    Value old = fromMemory(load(to, copy, Value()), scalar);
    if (isLanes(old))
      value = splat(value);
    if (scalar.isBF16() || scalar.isF16())
      value = narrow(combine(*combineKind, widen(old, scalar), widen(value, scalar)), scalar);
    else
      value = combine(*combineKind, old, value);
  }
  store(to, copy, toMemory(value, scalar));
}

} // namespace dlc::compiler
