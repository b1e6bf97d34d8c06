// Reductions: accumulators are registers, one for each unrolled copy and lane, and are joined in a fixed tree (copies
// by halves, then lanes by halves), so that a result depends on the schedule only, not on the number of threads.
#include "compiler/lower/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

static bool isArg(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

static Type yieldedType(ReduceOp op, unsigned i) {
  return op.getBody().front().getTerminator()->getOperand(i).getType();
}

static bool isNarrow(Type type) { return type.isF16() || type.isBF16(); }

// Whether the accumulators of a reduce are lanes: the vectorised dim is one of its dims.
bool KernelEmitter::accIsLanes(unsigned sink) const {
  return width_ > 1 && plan_.vecDim >= 0 && (plan_.sinks[sink].dims >> plan_.vecDim & 1);
}

unsigned KernelEmitter::accCopies(unsigned sink) const {
  if (!accIsLanes(sink))
    return 1;
  bool kept = !(plan_.sinks[sink].by >> plan_.vecDim & 1);
  return kept ? lanes_.copies : plan_.copiesOf[sink];
}

Value KernelEmitter::identity(Combine combine, Type type) {
  Type element = getElementTypeOrSelf(type);
  double inf = std::numeric_limits<double>::infinity();
  bool low = combine == Combine::max || combine == Combine::argmax;
  switch (combine) {
  case Combine::add:
  case Combine::ori:
  case Combine::maxu:
    return constant(type, 0);
  case Combine::mul:
    return constant(type, 1);
  case Combine::andi:
  case Combine::minu:
    return constant(type, -1);
  default:
    break;
  }
  if (isa<FloatType>(element))
    return constantFloat(type, low ? -inf : inf);
  unsigned bits = element.getIntOrFloatBitWidth();
  int64_t lowest = bits == 64 ? INT64_MIN : -(int64_t(1) << (bits - 1));
  return constant(type, low ? lowest : -(lowest + 1));
}

void KernelEmitter::startReduce(unsigned sink) {
  auto op = cast<ReduceOp>(plan_.sinks[sink].op);
  Accumulators slots;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    Type scalar = yieldedType(op, i);
    Type element = isNarrow(scalar) ? b_.getF32Type() : repr(scalar);
    auto shaped = [&](Type type) { return accIsLanes(sink) ? lanesOf(type) : type; };
    slots.emplace_back(accCopies(sink), identity(op.getCombine(i), shaped(element)));
    if (isArg(op.getCombine(i)))
      slots.emplace_back(accCopies(sink), constant(shaped(i64()), -1));
  }
  acc_[sink] = std::move(slots);
}

//===--- Joining two values ---===//

Value KernelEmitter::combine(Combine kind, Value acc, Value x) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(x.getType()));
  switch (kind) {
  case Combine::add:
    return isFloat ? b_.create<arith::AddFOp>(loc_, acc, x).getResult() : b_.create<arith::AddIOp>(loc_, acc, x);
  case Combine::mul:
    return isFloat ? b_.create<arith::MulFOp>(loc_, acc, x).getResult() : b_.create<arith::MulIOp>(loc_, acc, x);
  case Combine::andi:
    return b_.create<arith::AndIOp>(loc_, acc, x);
  case Combine::ori:
    return b_.create<arith::OrIOp>(loc_, acc, x);
  case Combine::minu:
    return b_.create<arith::MinUIOp>(loc_, acc, x);
  case Combine::maxu:
    return b_.create<arith::MaxUIOp>(loc_, acc, x);
  case Combine::min:
  case Combine::max:
    break;
  default:
    llvm_unreachable("argmax and argmin have two slots");
  }
  if (!isFloat)
    return kind == Combine::max ? b_.create<arith::MaxSIOp>(loc_, acc, x).getResult()
                                : b_.create<arith::MinSIOp>(loc_, acc, x);
  // NaN wins: taken when x is NaN; kept when acc is, because ordered comparisons with it are false.
  auto order = kind == Combine::max ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
  Value better = b_.create<arith::CmpFOp>(loc_, order, x, acc);
  Value isNan = b_.create<arith::CmpFOp>(loc_, arith::CmpFPredicate::UNO, x, x);
  Value take = b_.create<arith::OrIOp>(loc_, better, isNan);
  return b_.create<arith::SelectOp>(loc_, take, x, acc);
}

// acc and x are (value) or (value, position). `folding`: x may come before acc and may be empty (position -1).
SmallVector<Value> KernelEmitter::combineSlots(Combine kind, ValueRange acc, ValueRange x, bool folding) {
  if (!isArg(kind))
    return {combine(kind, acc[0], x[0])};
  auto both = [&](Value p, Value q) -> Value { return b_.create<arith::AndIOp>(loc_, p, q); };
  auto either = [&](Value p, Value q) -> Value { return b_.create<arith::OrIOp>(loc_, p, q); };
  auto cmpI = [&](arith::CmpIPredicate p, Value a, Value c) -> Value {
    return b_.create<arith::CmpIOp>(loc_, p, a, c);
  };
  bool max = kind == Combine::argmax;
  Value better, same;
  if (isa<FloatType>(getElementTypeOrSelf(x[0].getType()))) {
    auto cmp = [&](arith::CmpFPredicate p, Value a, Value c) -> Value {
      return b_.create<arith::CmpFOp>(loc_, p, a, c);
    };
    Value xNan = cmp(arith::CmpFPredicate::UNO, x[0], x[0]), accOk = cmp(arith::CmpFPredicate::ORD, acc[0], acc[0]);
    better = cmp(max ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x[0], acc[0]);
    better = either(better, both(xNan, accOk));
    if (folding) {
      Value accNan = cmp(arith::CmpFPredicate::UNO, acc[0], acc[0]);
      same = either(cmp(arith::CmpFPredicate::OEQ, x[0], acc[0]), both(xNan, accNan));
    }
  } else {
    better = cmpI(max ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt, x[0], acc[0]);
    if (folding)
      same = cmpI(arith::CmpIPredicate::eq, x[0], acc[0]);
  }
  Value none = constant(acc[1].getType(), 0);
  Value take = either(better, cmpI(arith::CmpIPredicate::slt, acc[1], none));
  if (folding) {
    take = either(take, both(same, cmpI(arith::CmpIPredicate::slt, x[1], acc[1])));
    take = both(take, cmpI(arith::CmpIPredicate::sge, x[1], none));
  }
  return {b_.create<arith::SelectOp>(loc_, take, x[0], acc[0]), b_.create<arith::SelectOp>(loc_, take, x[1], acc[1])};
}

//===--- At one point ---===//

void KernelEmitter::accumulate(unsigned sink) {
  auto op = cast<ReduceOp>(plan_.sinks[sink].op);
  bool lanes = accIsLanes(sink);
  unsigned copies = lanes && lanes_.open ? lanes_.copies : 1;
  Operation *yield = op.getBody().front().getTerminator();
  for (unsigned copy = 0; copy < copies; ++copy) {
    unsigned slot = 0;
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      Combine kind = op.getCombine(i);
      Value x = eval(yield->getOperand(i), copy).value;
      if (isNarrow(yieldedType(op, i)))
        x = widen(x, yieldedType(op, i));
      SmallVector<Value> item{lanes ? splat(x) : x};
      if (isArg(kind)) {
        Value position;
        for (Attribute name : op.getBy()) {
          unsigned dim = kernel_.getDimIndex(cast<StringAttr>(name).getValue());
          position = addI(position ? mulI(position, dimSize(dim)) : position, indexOf(dim, copy));
        }
        item.push_back(lanes ? splat(position) : position);
      }
      SmallVector<Value> old;
      for (unsigned k = 0; k < item.size(); ++k)
        old.push_back(acc_[sink][slot + k][copy]);
      SmallVector<Value> joined = combineSlots(kind, old, item, /*folding=*/false);
      for (unsigned k = 0; k < item.size(); ++k) {
        Value next = joined[k];
        if (lanes && lanes_.mask)
          next = b_.create<arith::SelectOp>(loc_, lanes_.mask, next, old[k]);
        acc_[sink][slot + k][copy] = next;
      }
      slot += item.size();
    }
  }
}

//===--- After the loops ---===//

// Joins the lanes of vectors by halves; returns scalars.
SmallVector<Value> KernelEmitter::foldLanes(Combine kind, SmallVector<Value> slots) {
  for (int64_t n = width_ / 2; n >= 1; n /= 2) {
    SmallVector<Value> low, high;
    SmallVector<int64_t> lowLanes = llvm::to_vector(llvm::seq<int64_t>(0, n));
    SmallVector<int64_t> highLanes = llvm::to_vector(llvm::seq<int64_t>(n, 2 * n));
    for (Value slot : slots) {
      low.push_back(b_.create<vector::ShuffleOp>(loc_, slot, slot, lowLanes));
      high.push_back(b_.create<vector::ShuffleOp>(loc_, slot, slot, highLanes));
    }
    slots = combineSlots(kind, low, high, /*folding=*/true);
  }
  for (Value &slot : slots)
    slot = b_.create<vector::ExtractOp>(loc_, slot, int64_t(0));
  return slots;
}

void KernelEmitter::finishReduce(unsigned sink) {
  auto op = cast<ReduceOp>(plan_.sinks[sink].op);
  Accumulators slots = std::move(acc_[sink]);
  acc_.erase(sink);
  bool fold = accIsLanes(sink) && (plan_.sinks[sink].by >> plan_.vecDim & 1);
  unsigned slot = 0;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    Combine kind = op.getCombine(i);
    unsigned count = isArg(kind) ? 2 : 1;
    unsigned copies = slots[slot].size();
    auto slotsOf = [&](unsigned copy) {
      SmallVector<Value> list;
      for (unsigned k = 0; k < count; ++k)
        list.push_back(slots[slot + k][copy]);
      return list;
    };
    SmallVector<SmallVector<Value>> perCopy;
    for (unsigned copy = 0; copy < copies; ++copy)
      perCopy.push_back(slotsOf(copy));
    if (fold) {
      while (perCopy.size() > 1) {
        unsigned half = (perCopy.size() + 1) / 2;
        for (unsigned k = half; k < perCopy.size(); ++k)
          perCopy[k - half] = combineSlots(kind, perCopy[k - half], perCopy[k], /*folding=*/true);
        perCopy.resize(half);
      }
      perCopy[0] = foldLanes(kind, perCopy[0]);
    }
    for (auto [copy, values] : llvm::enumerate(perCopy)) {
      Value result = isArg(kind) ? values[1] : values[0];
      if (!isArg(kind) && isNarrow(yieldedType(op, i)))
        result = narrow(result, yieldedType(op, i));
      scopes_.back().memo[{op.getResult(i), static_cast<unsigned>(copy)}] = result;
    }
    slot += count;
  }
}

// A masked tail runs one copy's body for each copy in turn: after a trip copy 1 becomes copy 0 and so on.
void KernelEmitter::rotateAccumulators(const LoopNode &node) {
  for (unsigned sink : node.carried)
    for (SmallVector<Value> &slot : acc_[sink])
      if (slot.size() > 1)
        std::rotate(slot.begin(), slot.begin() + 1, slot.end());
}

} // namespace dlc::compiler
