// One tile of a contraction: addresses of its operands, the loop over k with the sums in registers, and the epilogue.
#include "compiler/lower/ContractEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

//===--- Addresses ---===//

static unsigned alignOf(Type element) { return std::max(1u, element.getIntOrFloatBitWidth() / 8); }

// A packed column's panel is a dim of its own here: its step is kept under the column, whose index must then be the
// panel's first column divided by the panel's size.
ContractEmitter::Steps ContractEmitter::stepsOf(ReadOp read) {
  Steps steps;
  auto buffer = cast<BlockArgument>(read.getBuffer());
  steps.buffer = e_.args_[buffer.getArgNumber()];
  steps.element = e_.repr(cast<MemRefType>(buffer.getType()).getElementType());
  AffineMap map = read.getMap();
  SmallVector<unsigned> dims;
  for (Attribute name : getOver(read->getParentOp()))
    dims.push_back(e_.kernel_.getDimIndex(cast<StringAttr>(name).getValue()));
  Values syms;
  for (Value sym : read.getSyms())
    syms.push_back(e_.toI64(e_.eval(sym, 0).value));
  steps.constant = number(0);
  for (auto [expr, stride] : llvm::zip(map.getResults(), e_.strides_[buffer.getArgNumber()])) {
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr); binary && binary.getKind() == AffineExprKind::FloorDiv) {
      steps.of[p_.n] = stride;
      continue;
    } else if (binary && binary.getKind() == AffineExprKind::Mod) {
      continue;
    }
    LinearIndex linear = toLinear(expr, dims.size(), syms.size());
    for (auto [i, c] : llvm::enumerate(linear.dims))
      if (c) {
        Value &step = steps.of[dims[i]];
        step = add(step, mul(stride, number(c)));
      }
    Value constant = number(linear.constant);
    for (auto [i, c] : llvm::enumerate(linear.syms))
      if (c)
        constant = add(constant, mul(syms[i], number(c)));
    steps.constant = add(steps.constant, mul(constant, stride));
  }
  return steps;
}

Value ContractEmitter::offsetOf(const Steps &steps, ArrayRef<unsigned> dims) {
  Value offset = number(0);
  for (unsigned dim : dims)
    if (Value step = steps.of.lookup(dim))
      offset = add(offset, mul(e_.dimIv_[dim], step));
  return offset;
}

// The tile's rows; those past the end are the last one again. `row` counts in the block.
void ContractEmitter::placeRows(Value row, SmallVectorImpl<Row> &rows) {
  Values indices = decode(add(blockRow_, row), p_.m);
  for (int64_t i = 0; i < p_.rows; ++i) {
    Row place;
    setIndices(p_.m, indices);
    place.offset = offsetOf(lhsSteps_, p_.m);
    place.indices = indices;
    rows.push_back(place);
    if (i + 1 == p_.rows || p_.m.empty())
      continue;
    Values following = next(indices, p_.m);
    Value exists = compare(arith::CmpIPredicate::slt, add(row, number(i + 1)), blockSize_);
    for (auto [index, other] : llvm::zip(indices, following))
      index = b_.create<arith::SelectOp>(loc_, exists, other, index);
  }
}

// Whether no bounded index of lhs is outside at the current dims, or null if nothing is bounded.
Value ContractEmitter::insideBounds() {
  ReadOp read = p_.lhs.read;
  Value inside;
  if (!read.getBound())
    return inside;
  ArrayRef<int64_t> bounded = *read.getBoundDims();
  for (auto [result, size] : llvm::zip(bounded, read.getBoundSizes())) {
    LinearIndex linear = toLinear(read.getMap().getResult(result), read.getMap().getNumDims(), read.getSyms().size());
    Value index = number(linear.constant);
    for (auto [i, name] : llvm::enumerate(getOver(p_.op)))
      if (linear.dims[i])
        index = add(index,
                    mul(e_.dimIv_[e_.kernel_.getDimIndex(cast<StringAttr>(name).getValue())], number(linear.dims[i])));
    for (auto [i, sym] : llvm::enumerate(read.getSyms()))
      if (linear.syms[i])
        index = add(index, mul(e_.toI64(e_.eval(sym, 0).value), number(linear.syms[i])));
    Value ok = compare(arith::CmpIPredicate::ult, index, e_.eval(size, 0).value);
    inside = inside ? b_.create<arith::AndIOp>(loc_, inside, ok).getResult() : ok;
  }
  return inside;
}

ContractEmitter::Rows ContractEmitter::rowsInPlace(ArrayRef<Row> places) {
  Rows rows;
  rows.element = lhsSteps_.element;
  rows.step = lhsSteps_.of.lookup(p_.kInner);
  rows.step = rows.step ? rows.step : number(0);
  Value shared = add(lhsSteps_.constant, add(offsetOf(lhsSteps_, p_.outer), offsetOf(lhsSteps_, p_.kOuter)));
  shared = add(shared, mul(sliceBegin_, rows.step));
  Value from = at(lhsSteps_.buffer, rows.element, shared);
  for (const Row &place : places) {
    Value pointer = at(from, rows.element, place.offset);
    setIndices(p_.m, place.indices);
    if (Value inside = insideBounds())
      pointer = b_.create<LLVM::SelectOp>(loc_, inside, pointer, zeroRow());
    rows.pointers.push_back(pointer);
  }
  return rows;
}

// How many rows early the tile at `row` begins.
Value ContractEmitter::rowsEarly(Value row) {
  if (!p_.shiftsRows)
    return number(0);
  return most(number(0), sub(add(add(blockRow_, row), number(p_.rows)), rows_));
}

// Rows that are neighbours in memory.
ContractEmitter::Rows ContractEmitter::neighbours(Value row) {
  e_.dimIv_[p_.m[0]] = sub(add(blockRow_, row), rowsEarly(row));
  Row place;
  place.offset = offsetOf(lhsSteps_, p_.m);
  place.indices = {e_.dimIv_[p_.m[0]]};
  Rows rows = rowsInPlace(place);
  rows.apart = 1;
  return rows;
}

ContractEmitter::Rows ContractEmitter::rowsPacked(Value row) {
  Rows rows;
  rows.element = sumType();
  rows.apart = lhsPanels() ? 1 : rowLength_;
  rows.step = number(lhsPanels() ? p_.rows : 1);
  Value place = lhsPanels() ? div(row, number(p_.rows)) : row;
  rows.pointers.push_back(at(lhsBlock_, rows.element, mul(place, number(rowLength_))));
  return rows;
}

// The first column that a panel's tile computes. A last panel of rhs in place begins earlier than it should instead of
// going past the end; what it computes again is not written.
Value ContractEmitter::firstColumn(Value panel) {
  Value first = mul(panel, number(p_.columns()));
  if (p_.rhs.block || p_.rhs.comesPacked)
    return first;
  return least(first, sub(columns_, number(p_.columns())));
}

// The lanes from `column` of a panel's tile on that are written.
Value ContractEmitter::lanesOfPanel(Value panel, Value column) {
  Value from = add(firstColumn(panel), column);
  if (p_.rhs.block || p_.rhs.comesPacked)
    return maskOf(sub(columns_, from));
  Value before = maskOf(sub(mul(panel, number(p_.columns())), from));
  return b_.create<arith::XOrIOp>(loc_, before, e_.constant(before.getType(), 1));
}

ContractEmitter::Columns ContractEmitter::columnsAt(Value panel, Value place) {
  Columns columns;
  if (p_.rhs.block) {
    columns.element = sumType();
    columns.step = number(p_.columns());
    columns.pointer = at(rhsBlock_, columns.element, mul(place, number(panelLength_)));
    return columns;
  }
  columns.element = rhsSteps_.element;
  columns.step = rhsSteps_.of.lookup(p_.kInner);
  columns.step = columns.step ? columns.step : number(0);
  e_.dimIv_[p_.n] = p_.rhs.comesPacked ? panel : firstColumn(panel);
  Value offset = add(rhsSteps_.constant, add(offsetOf(rhsSteps_, p_.outer), offsetOf(rhsSteps_, p_.kOuter)));
  offset = add(offset, add(offsetOf(rhsSteps_, {p_.n}), mul(sliceBegin_, columns.step)));
  columns.pointer = at(rhsSteps_.buffer, columns.element, offset);
  return columns;
}

// Zeros to read instead of a padded row: as many as a slice has.
Value ContractEmitter::zeroRow() {
  constexpr StringRef name = "zero_row";
  auto module = e_.kernel_->getParentOfType<ModuleOp>();
  int64_t step = staticStep(e_.kernel_, p_.lhs.read, p_.kInner);
  Type type = LLVM::LLVMArrayType::get(lhsSteps_.element, p_.packK * std::max<int64_t>(step, 1));
  std::string full = (name + "_" + e_.kernel_.getSymName()).str();
  if (!module.lookupSymbol<LLVM::GlobalOp>(full)) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(module.getBody());
    auto global =
        b_.create<LLVM::GlobalOp>(loc_, type, /*isConstant=*/true, LLVM::Linkage::Internal, full, Attribute(), 64);
    Block *block = b_.createBlock(&global.getInitializerRegion());
    b_.setInsertionPointToStart(block);
    b_.create<LLVM::ReturnOp>(loc_, b_.create<LLVM::ZeroOp>(loc_, type).getResult());
  }
  return b_.create<LLVM::AddressOfOp>(loc_, e_.ptr(), full);
}

//===--- The loop over k ---===//

Value ContractEmitter::multiplyAdd(Value x, Value y, Value sum) {
  if (isa<FloatType>(sumType()))
    return b_.create<math::FmaOp>(loc_, x, y, sum);
  return b_.create<arith::AddIOp>(loc_, sum, b_.create<arith::MulIOp>(loc_, x, y));
}

Value ContractEmitter::loadColumns(const Columns &columns, Value pointer) {
  Value loaded = b_.create<LLVM::LoadOp>(loc_, e_.lanesOf(columns.element), pointer, alignOf(columns.element));
  if (p_.rhs.block)
    return loaded;
  Type stored = p_.rhs.read.getResult().getType();
  if (stored == p_.rhs.yield.getType())
    return toSum(loaded, stored);
  loaded = stored.isF32() ? loaded : e_.widen(loaded, stored);
  return sumType().isF64() ? b_.create<arith::ExtFOp>(loc_, sumLanes(), loaded).getResult() : loaded;
}

Value ContractEmitter::loadRow(const Rows &rows, Value pointer) {
  Value loaded = b_.create<LLVM::LoadOp>(loc_, rows.element, pointer, alignOf(rows.element));
  if (!p_.lhs.block)
    loaded = toSum(loaded, p_.lhs.yield.getType());
  return e_.splat(loaded);
}

// `count` products, the first at k (also as `offset` in elements of lhs).
ContractEmitter::Values ContractEmitter::trip(const Rows &rows, const Columns &columns, Value pointer, Value offset,
                                              int64_t count, Values sums) {
  for (int64_t u = 0; u < count; ++u) {
    Values right;
    Value row = at(pointer, columns.element, mul(columns.step, number(u)));
    for (int64_t v = 0; v < p_.vectors; ++v)
      right.push_back(loadColumns(columns, at(row, columns.element, v * p_.width)));
    int64_t set = u % p_.sets * p_.rows * p_.vectors;
    Value shift = mul(rows.step, number(u));
    for (int64_t i = 0; i < p_.rows; ++i) {
      Value base = rows.pointers[rows.pointers.size() > 1 ? i : 0];
      Value from = at(at(base, rows.element, offset), rows.element, shift);
      if (rows.pointers.size() == 1)
        from = at(from, rows.element, i * rows.apart);
      Value left = loadRow(rows, from);
      for (int64_t v = 0; v < p_.vectors; ++v) {
        Value &sum = sums[set + i * p_.vectors + v];
        sum = multiplyAdd(left, right[v], sum);
      }
    }
  }
  return sums;
}

// What is carried through the loop over k for the prefetches: where they are, and for lines the number in their column
// of lines.
ContractEmitter::Values ContractEmitter::startPrefetch(const Columns &columns, Value panel, Value row, Value trips) {
  int64_t line = 64 * 8 / columns.element.getIntOrFloatBitWidth();
  Value done = mul(mul(div(row, number(p_.rows)), trips), number(p_.prefetches));
  // Tiles for which nothing is left ask for what they have.
  auto whileLess = [&](Value x, Value end, Value pointer) -> Value {
    Value some = compare(arith::CmpIPredicate::slt, x, end);
    return b_.create<LLVM::SelectOp>(loc_, some, pointer, columns.pointer);
  };
  // Two pages: what the processor itself looks ahead ends with a page.
  constexpr int64_t kStreamBytes = 8192;
  if (p_.prefetch == ContractPlan::Stream)
    return {at(columns.pointer, b_.getI8Type(), kStreamBytes)};
  if (p_.prefetch == ContractPlan::Panel) {
    Value ahead = p_.sliced() ? mul(sliceSize_, columns.step) : rhsSteps_.of.lookup(p_.n);
    ahead = p_.rhs.block ? number(panelLength_) : ahead;
    Value lines = mul(sliceSize_, number((p_.columns() + line - 1) / line));
    return {whileLess(done, lines, at(columns.pointer, columns.element, add(ahead, mul(done, number(line)))))};
  }
  if (p_.prefetch == ContractPlan::Rows) {
    Value ahead = at(columns.pointer, columns.element, add(number(p_.columns()), mul(done, columns.step)));
    return {whileLess(done, sliceSize_, ahead)};
  }
  // The columns of the panel to come, for one line of k after the other.
  Value across = div(done, number(p_.columns())), down = sub(done, mul(across, number(p_.columns())));
  Value first = mul(add(panel, number(1)), number(p_.columns())), step = rhsSteps_.of.lookup(p_.n);
  Value offset = add(rhsSteps_.constant, add(offsetOf(rhsSteps_, p_.outer), offsetOf(rhsSteps_, p_.kOuter)));
  offset = add(add(offset, mul(add(first, down), step)), mul(across, number(line)));
  Value lines = mul(ceilDiv(sliceSize_, number(line)), number(p_.columns()));
  return {whileLess(done, lines, at(rhsSteps_.buffer, columns.element, offset)), down};
}

ContractEmitter::Values ContractEmitter::prefetch(const Columns &columns, const Values &state) {
  int64_t line = 64 * 8 / columns.element.getIntOrFloatBitWidth();
  auto ask = [&](Value pointer) { b_.create<LLVM::Prefetch>(loc_, pointer, /*rw=*/0, /*hint=*/2, /*cache=*/1); };
  Value next = state[0];
  if (p_.prefetch == ContractPlan::Panel || p_.prefetch == ContractPlan::Stream) {
    for (int64_t i = 0; i < p_.prefetches; ++i)
      ask(at(next, columns.element, i * line));
    return {at(next, columns.element, p_.prefetches * line)};
  }
  bool rows = p_.prefetch == ContractPlan::Rows;
  Value step = rows ? columns.step : rhsSteps_.of.lookup(p_.n);
  for (int64_t i = 0; i < p_.prefetches; ++i)
    for (int64_t v = 0; v < (rows ? p_.columns() : line); v += line)
      ask(at(at(next, columns.element, mul(step, number(i))), columns.element, v));
  next = at(next, columns.element, mul(step, number(p_.prefetches)));
  if (rows)
    return {next};
  Value down = add(state[1], number(p_.prefetches));
  Value wraps = compare(arith::CmpIPredicate::sge, down, number(p_.columns()));
  Value top = at(next, columns.element, sub(number(line), mul(step, number(p_.columns()))));
  return {b_.create<LLVM::SelectOp>(loc_, wraps, top, next), b_.create<arith::SelectOp>(loc_, wraps, number(0), down)};
}

ContractEmitter::Values ContractEmitter::innerLoop(const Rows &rows, const Columns &columns, Value panel, Value row,
                                                   Values sums) {
  auto known = sliceSize_.getDefiningOp<arith::ConstantOp>();
  int64_t size = known ? cast<IntegerAttr>(known.getValue()).getInt() : -1;
  Value rest =
      size >= 0 ? number(size % p_.unroll) : b_.create<arith::RemUIOp>(loc_, sliceSize_, number(p_.unroll)).getResult();
  Value main = sub(sliceSize_, rest);
  size_t count = sums.size();
  sums.push_back(columns.pointer);
  sums.push_back(number(0));
  auto run = [&](Value lo, Value hi, int64_t products, Values state) {
    sums.append(state);
    sums = loop(lo, hi, number(products), 0, sums, [&](Value, Values carried) {
      Values ahead(carried.begin() + count + 2, carried.end());
      Value pointer = carried[count], offset = carried[count + 1];
      carried.truncate(count);
      if (!ahead.empty())
        ahead = prefetch(columns, ahead);
      Values result = trip(rows, columns, pointer, offset, products, std::move(carried));
      result.push_back(at(pointer, columns.element, mul(columns.step, number(products))));
      result.push_back(add(offset, mul(rows.step, number(products))));
      result.append(ahead);
      return result;
    });
    sums.truncate(count + 2);
  };
  Values state;
  if (p_.prefetch != ContractPlan::None)
    state = startPrefetch(columns, panel, row, div(main, number(p_.unroll)));
  run(number(0), main, p_.unroll, state);
  if (size < 0 || size % p_.unroll)
    run(main, sliceSize_, 1, {});
  sums.truncate(count);
  return sums;
}

// Loops over kOuter inside of the tile, unless they are slices.
ContractEmitter::Values ContractEmitter::outerLoops(unsigned level, Values sums,
                                                    llvm::function_ref<Values(Values)> body) {
  if (p_.slicesOuter || level == p_.kOuter.size())
    return body(std::move(sums));
  unsigned dim = p_.kOuter[level];
  return loop(number(0), e_.dimSize(dim), number(1), setOf({dim}), std::move(sums), [&](Value iv, Values carried) {
    e_.dimIv_[dim] = iv;
    return outerLoops(level + 1, std::move(carried), body);
  });
}

ContractEmitter::Values ContractEmitter::sumProducts(Value panel, Value place, Value row, Values sums) {
  SmallVector<Row> places;
  if (!p_.lhs.block && !p_.shiftsRows)
    placeRows(row, places);
  int64_t count = p_.rows * p_.vectors;
  for (int64_t s = count; s < count * p_.sets; ++s)
    sums.push_back(e_.constant(sumLanes(), 0));
  sums = outerLoops(0, std::move(sums), [&](Values carried) {
    Rows rows = p_.lhs.block ? rowsPacked(row) : p_.shiftsRows ? neighbours(row) : rowsInPlace(places);
    return innerLoop(rows, columnsAt(panel, place), panel, row, std::move(carried));
  });
  for (int64_t sets = p_.sets; sets > 1; sets /= 2)
    for (int64_t s = 0; s < count * sets / 2; ++s)
      sums[s] = e_.combine(Combine::add, sums[s], sums[s + count * sets / 2]);
  sums.truncate(count);
  return sums;
}

//===--- One tile ---===//

void ContractEmitter::emitTile(Value panel, Value place, Value row, Value first, Value last) {
  Value sums = sums_;
  if (p_.sliced())
    sums = at(sums_, sumType(), add(mul(row, number(sumLength_)), mul(place, number(p_.columns()))));
  unsigned align = alignOf(sumType());
  auto forEach = [&](llvm::function_ref<void(int64_t, Value)> visit) {
    for (int64_t i = 0; i < p_.rows; ++i)
      for (int64_t v = 0; v < p_.vectors; ++v)
        visit(i * p_.vectors + v, at(sums, sumType(), i * sumLength_ + v * p_.width));
  };
  Values values(p_.rows * p_.vectors, e_.constant(sumLanes(), 0));
  if (p_.sliced()) {
    auto start = b_.create<scf::IfOp>(loc_, SmallVector<Type>(values.size(), sumLanes()), first, true);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(start.thenBlock());
    b_.create<scf::YieldOp>(loc_, values);
    b_.setInsertionPointToStart(start.elseBlock());
    forEach([&](int64_t i, Value from) { values[i] = b_.create<LLVM::LoadOp>(loc_, sumLanes(), from, align); });
    b_.create<scf::YieldOp>(loc_, values);
    values.assign(start.getResults().begin(), start.getResults().end());
  }
  values = sumProducts(panel, place, row, std::move(values));
  auto throughMemory = [&] {
    forEach([&](int64_t i, Value to) { b_.create<LLVM::StoreOp>(loc_, values[i], to, align); });
    emitEpilogue(panel, row, at(sums, sumType(), mul(rowsEarly(row), number(sumLength_))));
  };
  if (p_.direct) {
    Value n0 = mul(panel, number(p_.columns()));
    Value rows = compare(arith::CmpIPredicate::sle, add(row, number(p_.rows)), blockSize_);
    Value columns = compare(arith::CmpIPredicate::sle, add(n0, number(p_.columns())), columns_);
    Value whole = b_.create<arith::AndIOp>(loc_, rows, columns);
    return branch(whole, setOf({p_.n}), [&] { emitDirect(n0, row, values); }, throughMemory);
  }
  if (!last)
    return throughMemory();
  forEach([&](int64_t i, Value to) { b_.create<LLVM::StoreOp>(loc_, values[i], to, align); });
  branch(last, 0, [&] { emitEpilogue(panel, row, sums); }, nullptr);
}

//===--- Epilogue ---===//

// Lanes along the vectorised dim from `n0` on, in the current scope.
void ContractEmitter::emitLanes(Value n0, int64_t copies, Value mask, llvm::function_ref<void()> body) {
  KernelEmitter::Lanes &lanes = e_.lanes_;
  lanes.open = true;
  lanes.copies = static_cast<unsigned>(copies);
  lanes.iv = n0;
  for (int64_t copy = 0; copy < copies; ++copy)
    lanes.base.push_back(add(n0, number(copy * p_.width)));
  lanes.mask = mask;
  body();
  lanes = KernelEmitter::Lanes();
}

// All rows of a whole tile, one after the other, from registers. The rows are scopes in one block: what several share
// is put before an op that marks where they begin.
void ContractEmitter::emitDirect(Value n0, Value row, const Values &sums) {
  Value flat = add(blockRow_, row);
  Values indices = decode(flat, p_.m);
  emitLanes(n0, p_.vectors, Value(), [&] {
    Operation *mark = b_.create<arith::ConstantOp>(loc_, b_.getI64IntegerAttr(0));
    for (int64_t i = 0; i < p_.rows; ++i) {
      inScope(mark, setOf(p_.m), [&] {
        setIndices(p_.m, indices);
        for (int64_t v = 0; v < p_.vectors; ++v)
          e_.scopes_.back().memo[{p_.op.getResult(), static_cast<unsigned>(v)}] = sums[i * p_.vectors + v];
        e_.emitLeaves(llvm::to_vector(llvm::seq<unsigned>(0, e_.plan_.sinks.size())));
      });
      indices = p_.m.empty() ? indices : next(indices, p_.m);
    }
  });
}

// Short epilogues have a body for whole panels and one for the last; of a long one there is only the second, which
// tells whole vectors from parts at its loads and stores.
void ContractEmitter::emitEpilogue(Value panel, Value row, Value sums) {
  constexpr unsigned kLong = 24;
  unsigned cost = 0;
  for (const Sink &sink : e_.plan_.sinks)
    cost += estimateSinkCost(e_.plan_, sink);
  Value n0 = firstColumn(panel), left = sub(columns_, n0), first = mul(panel, number(p_.columns()));
  Value rows = least(sub(blockSize_, row), number(p_.rows));
  DimSet nDim = setOf({p_.n});
  auto part = [&] {
    loop(number(0), least(left, number(p_.columns())), number(p_.width), nDim, [&](Value column) {
      emitLanes(add(n0, column), 1, lanesOfPanel(panel, column), [&] {
        Value inside = compare(arith::CmpIPredicate::sge, sub(left, column), number(p_.width));
        Value own = compare(arith::CmpIPredicate::sge, add(n0, column), first);
        // A mask costs nothing in 512-bit code.
        if (cost >= kLong && p_.width * sumType().getIntOrFloatBitWidth() < 512)
          e_.lanes_.full = b_.create<arith::AndIOp>(loc_, inside, own);
        emitEpilogueRows(row, rows, at(sums, sumType(), column), 1);
      });
    });
  };
  if (cost >= kLong)
    return part();
  auto whole = [&] { emitLanes(n0, p_.vectors, Value(), [&] { emitEpilogueRows(row, rows, sums, p_.vectors); }); };
  Value full = compare(arith::CmpIPredicate::sle, add(first, number(p_.columns())), columns_);
  int64_t columns = staticProduct(e_.kernel_, {p_.n});
  bool exact = columns >= 0 && columns % p_.columns() == 0;
  if (exact)
    full = e_.constant(e_.i1(), 1);
  branch(full, nDim, whole, part);
}

void ContractEmitter::emitEpilogueRows(Value row, Value rows, Value sums, int64_t copies) {
  Value flat = add(blockRow_, row);
  Values start = decode(flat, p_.m);
  auto body = [&](Value i, const Values &indices) {
    setIndices(p_.m, indices);
    Value from = at(sums, sumType(), mul(i, number(sumLength_)));
    for (int64_t copy = 0; copy < copies; ++copy) {
      Value sum = b_.create<LLVM::LoadOp>(loc_, sumLanes(), at(from, sumType(), copy * p_.width), alignOf(sumType()));
      e_.scopes_.back().memo[{p_.op.getResult(), static_cast<unsigned>(copy)}] = sum;
    }
    e_.emitLeaves(llvm::to_vector(llvm::seq<unsigned>(0, e_.plan_.sinks.size())));
  };
  if (p_.m.size() <= 1)
    return loop(number(0), rows, number(1), setOf(p_.m),
                [&](Value i) { body(i, p_.m.empty() ? Values() : Values{add(flat, i)}); });
  loop(number(0), rows, number(1), setOf(p_.m), start, [&](Value i, Values indices) {
    body(i, indices);
    return next(indices, p_.m);
  });
}

} // namespace dlc::compiler
