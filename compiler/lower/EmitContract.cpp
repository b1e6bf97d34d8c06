// The loops around the tiles of a contraction: tasks, blocks, and the copies of operands into the order of the tile.
#include "compiler/lower/ContractEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

//===--- Small things ---===//

static std::optional<int64_t> constantOf(Value x) {
  auto op = x.getDefiningOp<arith::ConstantOp>();
  auto attr = op ? dyn_cast<IntegerAttr>(op.getValue()) : IntegerAttr();
  return attr ? std::optional(attr.getInt()) : std::nullopt;
}

Value ContractEmitter::add(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return number(*cx + *cy);
  if (cx == 0 || cy == 0)
    return cx == 0 ? y : x;
  return b_.create<arith::AddIOp>(loc_, x, y);
}

Value ContractEmitter::sub(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return number(*cx - *cy);
  return cy == 0 ? x : b_.create<arith::SubIOp>(loc_, x, y).getResult();
}

Value ContractEmitter::mul(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return number(*cx * *cy);
  if (cx == 1 || cy == 1)
    return cx == 1 ? y : x;
  return b_.create<arith::MulIOp>(loc_, x, y);
}

// Of numbers that are not negative, by one that is positive.
Value ContractEmitter::div(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return number(*cx / *cy);
  return cy == 1 ? x : b_.create<arith::DivUIOp>(loc_, x, y).getResult();
}

Value ContractEmitter::ceilDiv(Value x, Value y) { return div(add(x, sub(y, number(1))), y); }

Value ContractEmitter::least(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return number(std::min(*cx, *cy));
  return b_.create<arith::MinSIOp>(loc_, x, y);
}

Value ContractEmitter::most(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return number(std::max(*cx, *cy));
  return b_.create<arith::MaxSIOp>(loc_, x, y);
}

Value ContractEmitter::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return b_.create<arith::CmpIOp>(loc_, predicate, x, y);
}

Value ContractEmitter::at(Value pointer, Type element, Value offset) {
  if (auto c = constantOf(offset))
    return at(pointer, element, *c);
  return b_.create<LLVM::GEPOp>(loc_, e_.ptr(), element, pointer, ArrayRef<LLVM::GEPArg>{offset});
}

Value ContractEmitter::at(Value pointer, Type element, int64_t offset) {
  if (offset == 0)
    return pointer;
  if (!llvm::isInt<32>(offset)) // more than an index in the instruction holds
    return b_.create<LLVM::GEPOp>(loc_, e_.ptr(), element, pointer, ValueRange{number(offset)});
  return b_.create<LLVM::GEPOp>(loc_, e_.ptr(), element, pointer, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

// Indices of `dims` (the last one fastest) of a flat index.
ContractEmitter::Values ContractEmitter::decode(Value flat, ArrayRef<unsigned> dims) {
  Values indices(dims.size());
  for (unsigned i = dims.size(); i-- > 0;) {
    if (i == 0) {
      indices[0] = flat;
      break;
    }
    Value size = most(e_.dimSize(dims[i]), number(1)), rest = div(flat, size);
    indices[i] = sub(flat, mul(rest, size));
    flat = rest;
  }
  return indices;
}

// The indices after `indices`.
ContractEmitter::Values ContractEmitter::next(const Values &indices, ArrayRef<unsigned> dims) {
  Values result(indices);
  Value carry = number(1);
  for (unsigned i = dims.size(); i-- > 0;) {
    result[i] = add(indices[i], carry);
    if (i == 0)
      break;
    Value wraps = compare(arith::CmpIPredicate::eq, result[i], e_.dimSize(dims[i]));
    result[i] = b_.create<arith::SelectOp>(loc_, wraps, number(0), result[i]);
    carry = b_.create<arith::ExtUIOp>(loc_, e_.i64(), wraps);
  }
  return result;
}

void ContractEmitter::setIndices(ArrayRef<unsigned> dims, const Values &indices) {
  for (auto [dim, index] : llvm::zip(dims, indices))
    e_.dimIv_[dim] = index;
}

DimSet ContractEmitter::setOf(ArrayRef<unsigned> dims) {
  DimSet set = 0;
  for (unsigned dim : dims)
    set |= DimSet(1) << dim;
  return set;
}

void ContractEmitter::inScope(Operation *op, DimSet dims, llvm::function_ref<void()> body) {
  e_.scopes_.back().child = op;
  KernelEmitter::Scope scope;
  scope.dims = e_.scopes_.back().dims | dims;
  e_.scopes_.push_back(std::move(scope));
  body();
  e_.scopes_.pop_back();
}

ContractEmitter::Values ContractEmitter::loop(Value lo, Value hi, Value step, DimSet dims, Values init,
                                              llvm::function_ref<Values(Value, Values)> body) {
  auto op = b_.create<scf::ForOp>(loc_, lo, hi, step, init);
  OpBuilder::InsertionGuard guard(b_);
  Block *block = op.getBody();
  if (!block->empty()) // without iter_args the builder adds the yield itself
    block->back().erase();
  b_.setInsertionPointToStart(block);
  inScope(op, dims, [&] {
    Values carried(op.getRegionIterArgs().begin(), op.getRegionIterArgs().end());
    Values yielded = body(op.getInductionVar(), carried);
    b_.setInsertionPointToEnd(block);
    b_.create<scf::YieldOp>(loc_, yielded);
  });
  return Values(op.getResults().begin(), op.getResults().end());
}

void ContractEmitter::loop(Value lo, Value hi, Value step, DimSet dims, Body body) {
  loop(lo, hi, step, dims, {}, [&](Value iv, Values) -> Values {
    body(iv);
    return {};
  });
}

// `then` may add dims; both must not change what is carried.
void ContractEmitter::branch(Value condition, DimSet dims, llvm::function_ref<void()> then,
                             llvm::function_ref<void()> otherwise) {
  if (auto known = constantOf(condition)) { // a loop of one trip is a scope for the dims
    if (*known)
      return loop(number(0), number(1), number(1), dims, [&](Value) { then(); });
    return otherwise ? otherwise() : void();
  }
  auto op = b_.create<scf::IfOp>(loc_, condition, static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(op.thenBlock());
  inScope(op, dims, then);
  if (!otherwise)
    return;
  b_.setInsertionPointToStart(op.elseBlock());
  inScope(op, 0, otherwise);
}

Value ContractEmitter::toSum(Value x, Type from) {
  Type sum = e_.isLanes(x) ? sumLanes() : sumType();
  if (from.isInteger() && x.getType() != sum)
    return b_.create<arith::ExtSIOp>(loc_, sum, x);
  return x;
}

//===--- Sizes and memory ---===//

void ContractEmitter::computeSizes() {
  auto product = [&](ArrayRef<unsigned> dims) {
    Value size = number(1);
    for (unsigned dim : dims)
      size = mul(size, e_.dimSize(dim));
    return size;
  };
  rows_ = product(p_.m);
  columns_ = e_.dimSize(p_.n);
  rowBlocks_ = ceilDiv(rows_, number(p_.blockRows));
  panels_ = ceilDiv(columns_, number(p_.columns()));
  Value outer = product(p_.outer), points = mul(outer, mul(rows_, columns_));
  runs_ = ceilDiv(panels_, number(p_.blockPanels));
  Value tasks = mul(outer, mul(rowBlocks_, runs_));
  Value each = most(div(points, most(tasks, number(1))), number(1));
  firstTask_ = least(tasks, ceilDiv(e_.parBegin_, each));
  lastTask_ = least(tasks, ceilDiv(e_.parEnd_, each));
  runs_ = most(runs_, number(1)); // divided by; without tasks no loop runs
  rowBlocks_ = most(rowBlocks_, number(1));
  innerSize_ = e_.dimSize(p_.kInner);
  Value outerK = product(p_.kOuter);
  if (!p_.kOuter.empty()) {
    Value none = compare(arith::CmpIPredicate::eq, outerK, number(0));
    innerSize_ = b_.create<arith::SelectOp>(loc_, none, number(0), innerSize_);
  }
  innerSlices_ = p_.blockK ? most(ceilDiv(innerSize_, number(p_.blockK)), number(1)) : number(1);
  slices_ = p_.slicesOuter ? mul(most(outerK, number(1)), innerSlices_) : innerSlices_;
}

// One piece of memory of the thread for everything; a tile of sums alone lies on the stack.
void ContractEmitter::reserveMemory() {
  int64_t bytes = 0, size = sumType().getIntOrFloatBitWidth() / 8;
  auto reserve = [&](int64_t elements) {
    int64_t from = bytes;
    bytes += (elements * size + 127) / 128 * 128;
    return from;
  };
  int64_t lhs = -1, rhs = -1, sums = -1;
  if (p_.lhs.block) {
    // An odd number of cache lines apart, so that they don't fall into the same sets of the cache. A row of a tile is
    // stored as whole vectors, which the next one overwrites.
    int64_t line = 64 / size, length = lhsPanels() ? p_.packK * p_.rows + 2 * p_.width : p_.packK;
    rowLength_ = ((length + line - 1) / line | 1) * line;
    lhs = reserve(rowLength_ * (lhsPanels() ? p_.blockRows / p_.rows : p_.blockRows) + 64);
  }
  if (p_.rhs.block) {
    // Likewise, as a row of k is written to all panels.
    int64_t line = 64 / size;
    panelLength_ = ((p_.packK * p_.columns() + line - 1) / line | 1) * line;
    rhs = reserve(p_.blockPanels * panelLength_);
  }
  sumLength_ = p_.columns() * (p_.sliced() ? p_.blockPanels : 1);
  if (p_.sliced())
    sums = reserve(p_.blockRows * sumLength_);
  if (bytes) {
    Value memory = e_.callC("dlc_kernel_scratch", e_.ptr(), {number(bytes)});
    auto part = [&](int64_t from) { return from < 0 ? Value() : at(memory, b_.getI8Type(), number(from)); };
    lhsBlock_ = part(lhs);
    rhsBlock_ = part(rhs);
    sums_ = part(sums);
  }
  if (!sums_)
    sums_ = b_.create<LLVM::AllocaOp>(loc_, e_.ptr(), sumType(), number(p_.rows * p_.columns()), 64);
}

//===--- Loops ---===//

void ContractEmitter::emit() {
  computeSizes();
  reserveMemory();
  if (!p_.lhs.block || p_.lhs.transposes)
    lhsSteps_ = stepsOf(p_.lhs.read);
  if (!p_.rhs.block || p_.rhs.transposes)
    rhsSteps_ = stepsOf(p_.rhs.read);
  loop(div(firstTask_, runs_), ceilDiv(lastTask_, runs_), number(1), setOf(p_.outer),
       [&](Value group) { emitGroup(group); });
}

void ContractEmitter::emitGroup(Value group) {
  Value point = div(group, rowBlocks_), block = sub(group, mul(point, rowBlocks_));
  setIndices(p_.outer, decode(point, p_.outer));
  blockRow_ = mul(block, number(p_.blockRows));
  blockSize_ = least(sub(rows_, blockRow_), number(p_.blockRows));
  Value start = mul(group, runs_), length = number(p_.blockPanels);
  Value lo = most(number(0), sub(firstTask_, start)), hi = least(runs_, sub(lastTask_, start));
  loop(lo, hi, number(1), 0, [&](Value run) {
    Value first = mul(run, length);
    emitRun(first, least(sub(panels_, first), length));
  });
}

void ContractEmitter::emitRun(Value first, Value count) {
  if (!p_.sliced()) {
    sliceBegin_ = number(0);
    sliceSize_ = innerSize_;
    return emitSlice(first, count, number(0), number(1));
  }
  DimSet dims = p_.slicesOuter ? setOf(p_.kOuter) : 0;
  loop(number(0), slices_, number(1), dims, [&](Value slice) {
    Value inner = slice;
    if (p_.slicesOuter) {
      Value outer = div(slice, innerSlices_);
      inner = sub(slice, mul(outer, innerSlices_));
      setIndices(p_.kOuter, decode(outer, p_.kOuter));
    }
    sliceBegin_ = p_.blockK ? mul(inner, number(p_.blockK)) : number(0);
    sliceSize_ = p_.blockK ? least(sub(innerSize_, sliceBegin_), number(p_.blockK)) : innerSize_;
    emitSlice(first, count, slice, slices_);
  });
}

void ContractEmitter::emitSlice(Value first, Value count, Value slice, Value slices) {
  if (p_.rhs.block)
    packRhs(first, count);
  if (p_.lhs.block)
    packLhs();
  Value isFirst, isLast;
  if (p_.sliced()) {
    isFirst = compare(arith::CmpIPredicate::eq, slice, number(0));
    isLast = compare(arith::CmpIPredicate::eq, slice, sub(slices, number(1)));
  }
  loop(number(0), count, number(1), 0, [&](Value place) {
    Value panel = add(first, place);
    loop(number(0), blockSize_, number(p_.rows), 0, [&](Value row) { emitTile(panel, place, row, isFirst, isLast); });
  });
}

//===--- Packing ---===//

void ContractEmitter::storePacked(Value block, Value offset, Value value, Value mask) {
  Value to = at(block, sumType(), offset);
  unsigned align = sumType().getIntOrFloatBitWidth() / 8;
  value = e_.splat(value);
  if (mask) // whole vectors are stored: what is outside counts as zero
    value = b_.create<arith::SelectOp>(loc_, mask, value, e_.constant(value.getType(), 0));
  b_.create<LLVM::StoreOp>(loc_, value, to, align);
}

// Panels of rows of k, [panel][k][columns], with zeros for columns past the end.
void ContractEmitter::packRhs(Value first, Value count) {
  if (p_.rhs.transposes)
    return packTransposed(first, count);
  DimSet kDim = setOf({p_.kInner}), nDim = setOf({p_.n});
  Type from = p_.rhs.yield.getType();
  auto store = [&](Value k, Value place, Value column, unsigned copy, Value mask) {
    Value offset = add(add(mul(place, number(panelLength_)), mul(k, number(p_.columns()))), column);
    storePacked(rhsBlock_, offset, toSum(e_.eval(p_.rhs.yield, copy).value, from), mask);
  };
  Value start = mul(first, number(p_.columns())), whole = div(sub(columns_, start), number(p_.columns()));
  whole = least(whole, count);
  int64_t columns = staticProduct(e_.kernel_, {p_.n});
  bool exact = columns >= 0 && columns % p_.columns() == 0;
  inStrips([&](Value lo, Value hi) {
    auto rows = [&](DimSet dims, llvm::function_ref<void(Value)> body) {
      loop(lo, hi, number(1), kDim | dims, [&](Value k) {
        e_.dimIv_[p_.kInner] = add(sliceBegin_, k);
        body(k);
      });
    };
    loop(number(0), whole, number(1), 0, [&](Value place) {
      rows(nDim, [&](Value k) {
        emitLanes(add(start, mul(place, number(p_.columns()))), p_.vectors, Value(), [&] {
          for (int64_t v = 0; v < p_.vectors; ++v)
            store(k, place, number(v * p_.width), v, Value());
        });
      });
    });
    if (exact)
      return;
    loop(whole, count, number(1), 0, [&](Value place) {
      Value n0 = add(start, mul(place, number(p_.columns()))), left = sub(columns_, n0);
      rows(0, [&](Value k) {
        loop(number(0), number(p_.columns()), number(p_.width), nDim, [&](Value column) {
          Value mask = maskOf(sub(left, column));
          emitLanes(add(n0, column), 1, mask, [&] { store(k, place, column, 0, mask); });
        });
      });
    });
  });
}

// Short pieces of a slice of k, so that neither the rows that are read nor the panels that are written are too many
// pages at a time.
void ContractEmitter::inStrips(llvm::function_ref<void(Value, Value)> body) {
  constexpr int64_t kStrip = 32;
  loop(number(0), sliceSize_, number(kStrip), 0,
       [&](Value lo) { body(lo, least(add(lo, number(kStrip)), sliceSize_)); });
}

// Columns that lie along k: squares of width x width, transposed in registers. Rows of k up to a whole square are
// stored too (zeros); columns past the end are the last one again.
void ContractEmitter::packTransposed(Value first, Value count) {
  Value start = mul(first, number(p_.columns())), last = sub(columns_, number(1));
  Value offset = add(rhsSteps_.constant, add(offsetOf(rhsSteps_, p_.outer), offsetOf(rhsSteps_, p_.kOuter)));
  Value origin = at(rhsSteps_.buffer, rhsSteps_.element, add(offset, sliceBegin_));
  Value step = rhsSteps_.of.lookup(p_.n), width = number(p_.width);
  unsigned align = sumType().getIntOrFloatBitWidth() / 8;
  auto square = [&](Value block, Value k, Value mask) {
    Values lines;
    for (unsigned i = 0; i < p_.width; ++i) {
      Value column = least(add(mul(block, width), add(start, number(i))), last);
      Value from = at(at(origin, sumType(), mul(column, step)), sumType(), k);
      if (mask)
        lines.push_back(
            b_.create<LLVM::MaskedLoadOp>(loc_, sumLanes(), from, mask, ValueRange{e_.constant(sumLanes(), 0)}, align));
      else
        lines.push_back(b_.create<LLVM::LoadOp>(loc_, sumLanes(), from, align));
    }
    transpose(lines);
    Value vectors = number(p_.vectors), place = div(block, vectors);
    Value column = mul(sub(block, mul(place, vectors)), width);
    Value to = add(add(mul(place, number(panelLength_)), mul(k, number(p_.columns()))), column);
    for (unsigned i = 0; i < p_.width; ++i)
      storePacked(rhsBlock_, add(to, number(i * p_.columns())), lines[i], Value());
  };
  loop(number(0), mul(count, number(p_.vectors)), number(1), 0, [&](Value block) {
    loop(number(0), sliceSize_, width, 0, [&](Value k) { square(block, k, tailOfSquare(k)); });
  });
}

// The lanes of a square's lines from `k` on that are in the slice, or null if that is all of them. (Squares are long
// code: there is one body, with a mask even where none would be needed.)
Value ContractEmitter::tailOfSquare(Value k) {
  auto size = constantOf(sliceSize_);
  return size && *size % p_.width == 0 ? Value() : maskOf(sub(sliceSize_, k));
}

// In each step the lanes with a bit set of the one line change places with those without it of the other.
void ContractEmitter::transpose(Values &lines) {
  int64_t width = p_.width;
  for (int64_t bit = width / 2; bit > 0; bit /= 2)
    for (int64_t i = 0; i < width; ++i) {
      if (i & bit)
        continue;
      SmallVector<int64_t> low, high;
      for (int64_t j = 0; j < width; ++j) {
        low.push_back(j & bit ? width + j - bit : j);
        high.push_back(j & bit ? width + j : j + bit);
      }
      Value a = lines[i], b = lines[i + bit];
      lines[i] = b_.create<vector::ShuffleOp>(loc_, a, b, low);
      lines[i + bit] = b_.create<vector::ShuffleOp>(loc_, a, b, high);
    }
}

// The first `count` lanes (all, none if it is negative).
Value ContractEmitter::maskOf(Value count) {
  Type i32 = b_.getI32Type();
  Value clamped = most(least(count, number(p_.width)), number(0));
  Value narrow = b_.create<arith::TruncIOp>(loc_, i32, clamped);
  return compare(arith::CmpIPredicate::slt, e_.iota(i32), e_.splat(narrow));
}

void ContractEmitter::packLhs() {
  if (p_.lhs.transposes)
    return packLhsTransposed();
  if (p_.lhs.byColumns)
    return packLhsColumns();
  packLhsRows();
}

// [row][k]: lanes go along k. Rows up to a whole tile are copies of the last one.
void ContractEmitter::packLhsRows() {
  int vecDim = std::exchange(e_.plan_.vecDim, static_cast<int>(p_.kInner));
  Value last = sub(blockSize_, number(1)), rows = mul(ceilDiv(blockSize_, number(p_.rows)), number(p_.rows));
  Type from = p_.lhs.yield.getType();
  DimSet kDim = setOf({p_.kInner});
  Value rest = b_.create<arith::RemUIOp>(loc_, sliceSize_, number(p_.width)), main = sub(sliceSize_, rest);
  loop(number(0), rows, number(1), setOf(p_.m), [&](Value row) {
    setIndices(p_.m, decode(add(blockRow_, least(row, last)), p_.m));
    auto store = [&](Value k, Value mask) {
      emitLanes(add(sliceBegin_, k), 1, mask, [&] {
        Value offset = add(mul(row, number(rowLength_)), k);
        storePacked(lhsBlock_, offset, toSum(e_.eval(p_.lhs.yield, 0).value, from), mask);
      });
    };
    loop(number(0), main, number(p_.width), kDim, [&](Value k) { store(k, Value()); });
    loop(main, sliceSize_, number(p_.width), kDim, [&](Value k) { store(k, maskOf(rest)); });
  });
  e_.plan_.vecDim = vecDim;
}

// The rows of a tile for one k, side by side. They may be fewer than the lanes: a call for the next k comes after this
// one and overwrites the rest.
void ContractEmitter::storeTileRow(Value tile, Value k, ArrayRef<Value> parts) {
  Value offset = add(mul(tile, number(rowLength_)), mul(k, number(p_.rows)));
  for (auto [i, part] : llvm::enumerate(parts))
    storePacked(lhsBlock_, add(offset, number(static_cast<int64_t>(i) * p_.width)), part, Value());
}

// [tile][k][row] from rows that are neighbours.
void ContractEmitter::packLhsColumns() {
  int vecDim = std::exchange(e_.plan_.vecDim, static_cast<int>(p_.m.back()));
  Type from = p_.lhs.yield.getType();
  DimSet rowDim = setOf({p_.m.back()});
  int64_t parts = (p_.rows + p_.width - 1) / p_.width;
  auto row = [&](Value tile, Value k, Value left) {
    Values lanes;
    for (int64_t i = 0; i < parts; ++i) {
      Value mask = left ? maskOf(sub(left, number(i * p_.width))) : Value();
      Value first = add(blockRow_, add(mul(tile, number(p_.rows)), number(i * p_.width)));
      emitLanes(first, 1, mask, [&] {
        inScope(b_.create<arith::ConstantOp>(loc_, b_.getI64IntegerAttr(0)), rowDim,
                [&] { lanes.push_back(e_.splat(toSum(e_.eval(p_.lhs.yield, 0).value, from))); });
      });
    }
    storeTileRow(tile, k, lanes);
  };
  // Vectors reach past the tile, so those of the last ones are masked.
  int64_t reach = parts * p_.width;
  Value whole = most(sub(blockSize_, number(reach - p_.rows)), number(0));
  whole = div(whole, number(p_.rows));
  inStrips([&](Value lo, Value hi) {
    auto tiles = [&](Value from, Value to, bool masked) {
      loop(from, to, number(1), 0, [&](Value tile) {
        Value left = masked ? sub(blockSize_, mul(tile, number(p_.rows))) : Value();
        loop(lo, hi, number(1), setOf({p_.kInner}), [&](Value k) {
          e_.dimIv_[p_.kInner] = add(sliceBegin_, k);
          row(tile, k, left);
        });
      });
    };
    tiles(number(0), whole, false);
    tiles(whole, ceilDiv(blockSize_, number(p_.rows)), true);
  });
  e_.plan_.vecDim = vecDim;
}

// [tile][k][row] from rows that lie along k: the rows of a tile are loaded as squares and transposed in registers. What
// of a square is no row is not stored for long (see storeTileRow).
void ContractEmitter::packLhsTransposed() {
  Value width = number(p_.width);
  int64_t parts = (p_.rows + p_.width - 1) / p_.width;
  unsigned align = sumType().getIntOrFloatBitWidth() / 8;
  loop(number(0), ceilDiv(blockSize_, number(p_.rows)), number(1), 0, [&](Value tile) {
    SmallVector<Row> places;
    placeRows(mul(tile, number(p_.rows)), places);
    Rows rows = rowsInPlace(places);
    auto square = [&](Value k, Value mask) {
      SmallVector<Values> lines(parts);
      for (int64_t i = 0; i < parts * p_.width; ++i) {
        if (i >= p_.rows) {
          lines[i / p_.width].push_back(lines[i / p_.width].front());
          continue;
        }
        Value from = at(rows.pointers[i], sumType(), k);
        if (mask)
          lines[i / p_.width].push_back(b_.create<LLVM::MaskedLoadOp>(loc_, sumLanes(), from, mask,
                                                                      ValueRange{e_.constant(sumLanes(), 0)}, align));
        else
          lines[i / p_.width].push_back(b_.create<LLVM::LoadOp>(loc_, sumLanes(), from, align));
      }
      for (Values &part : lines)
        transpose(part);
      for (unsigned i = 0; i < p_.width; ++i) {
        Values row;
        for (Values &part : lines)
          row.push_back(part[i]);
        storeTileRow(tile, add(k, number(i)), row);
      }
    };
    loop(number(0), sliceSize_, width, 0, [&](Value k) { square(k, tailOfSquare(k)); });
  });
}

} // namespace dlc::compiler
