// The loop structure of a kernel: prologue, parallel range, scalar loops, and the vectorised loop as main loop and
// masked tail.
#include "compiler/lower/ContractEmitter.h"
#include "compiler/lower/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

KernelEmitter::KernelEmitter(KernelPlan &plan, OpBuilder &builder)
    : plan_(plan), b_(builder), loc_(plan.func.getLoc()), kernel_(plan.func), width_(plan.width) {}

Value KernelEmitter::callC(StringRef name, Type result, ValueRange operands) {
  auto module = kernel_->getParentOfType<ModuleOp>();
  auto callee = module.lookupSymbol<func::FuncOp>(name);
  if (!callee) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(module.getBody());
    callee = b_.create<func::FuncOp>(loc_, name, b_.getFunctionType(operands.getTypes(), {result}));
    callee.setPrivate();
  }
  return b_.create<func::CallOp>(loc_, callee, operands).getResult(0);
}

//===--- Prologue ---===//

void KernelEmitter::emitPrologue(Value bufs, Value ints) {
  ints_ = ints;
  auto loadInt = [&](unsigned index) -> Value {
    Value from = b_.create<LLVM::GEPOp>(loc_, ptr(), i64(), ints, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    return b_.create<LLVM::LoadOp>(loc_, i64(), from, 8, /*isVolatile=*/false, /*isNonTemporal=*/false,
                                   /*isInvariant=*/true);
  };
  for (BlockArgument arg : kernel_.getBody().getArguments()) {
    unsigned number = arg.getArgNumber();
    strides_.emplace_back();
    auto memref = dyn_cast<MemRefType>(arg.getType());
    if (!memref) {
      Value value = loadInt(kernel_.getIntIndex(number));
      if (arg.getType().isF64())
        value = b_.create<arith::BitcastOp>(loc_, b_.getF64Type(), value);
      args_.push_back(value);
      continue;
    }
    Value from = b_.create<LLVM::GEPOp>(loc_, ptr(), ptr(), bufs,
                                        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(kernel_.getBufIndex(number))});
    args_.push_back(b_.create<LLVM::LoadOp>(loc_, ptr(), from, 8, false, false, /*isInvariant=*/true));
    unsigned next = kernel_.getIntIndex(number);
    for (int64_t stride : getStrides(memref))
      strides_.back().push_back(ShapedType::isDynamic(stride) ? loadInt(next++) : constant(i64(), stride));
  }
  errorSlot_ = args_.back();
  parBegin_ = loadInt(kernel_.getNumInts());
  parEnd_ = loadInt(kernel_.getNumInts() + 1);
}

Value KernelEmitter::dimSize(unsigned dim) {
  if (kernel_.isStaticDim(dim))
    return constant(i64(), kernel_.getDimSizes()[dim]);
  return args_[kernel_.getSizeArg(dim).getArgNumber()];
}

Operation *KernelEmitter::emit() {
  auto type = b_.getFunctionType({ptr(), ptr()}, {});
  auto function = b_.create<func::FuncOp>(loc_, kernel_.getSymName(), type);
  OpBuilder::InsertionGuard guard(b_);
  Block *entry = entry_ = function.addEntryBlock();
  b_.setInsertionPointToStart(entry);
  emitPrologue(entry->getArgument(0), entry->getArgument(1));
  dimIv_.resize(kernel_.getNumDims());
  scopes_.emplace_back();
  for (Operation &op : kernel_.getBlock()) // constants and scalars outside the stages
    if (!isStage(&op) && !isa<WriteOp>(op))
      for (Value result : op.getResults())
        eval(result, 0);
  if (plan_.contract)
    ContractEmitter(*this, *plan_.contract).emit();
  else
    emitParallel();
  b_.create<func::ReturnOp>(loc_);
  if (!failed_)
    return function;
  function.erase();
  return nullptr;
}

//===--- Parallel range ---===//

// The loops over `par` become one loop over their flattened points. If the vectorised dim is the last of them, the
// range counts its elements: the loop over the dims before it covers the rows that the range touches, and the bounds
// of the vectorised loop are cut at the ends of the range.
void KernelEmitter::emitParallel() {
  SmallVector<unsigned> outer(plan_.par);
  bool cutsLanes = !outer.empty() && static_cast<int>(outer.back()) == plan_.vecDim;
  if (cutsLanes)
    outer.pop_back();
  if (plan_.par.empty() || plan_.top.empty()) { // the range is [0, 1): an empty piece does nothing
    Value some = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, parBegin_, parEnd_);
    return when(some, [&] { emitItems(plan_.top); });
  }
  LoopNode *node = plan_.top[0].loop.get();
  if (outer.empty())
    return emitLoop(*node, parBegin_, parEnd_);

  Value one = constant(i64(), 1), lo = parBegin_, hi = parEnd_, rowSize;
  if (cutsLanes) {
    rowSize = b_.create<arith::MaxSIOp>(loc_, dimSize(plan_.par.back()), one);
    lo = b_.create<arith::DivUIOp>(loc_, parBegin_, rowSize);
    Value last = addI(parEnd_, b_.create<arith::SubIOp>(loc_, rowSize, one));
    hi = b_.create<arith::DivUIOp>(loc_, last, rowSize);
  }
  auto loop = b_.create<scf::ForOp>(loc_, lo, hi, one);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(loop.getBody());
  scopes_.back().child = loop;
  scopes_.emplace_back();
  Value point = loop.getInductionVar(), rest = point;
  for (unsigned i = outer.size(); i-- > 1;) {
    Value size = dimSize(outer[i]);
    dimIv_[outer[i]] = b_.create<arith::RemUIOp>(loc_, rest, size);
    rest = b_.create<arith::DivUIOp>(loc_, rest, size);
  }
  dimIv_[outer[0]] = rest;
  for (unsigned dim : outer) {
    scopes_.back().dims |= DimSet(1) << dim;
    openLoops_.push_back(node->id);
    if (dim != outer.back() || cutsLanes)
      node = node->items[0].loop.get();
  }
  if (cutsLanes) {
    Value start = b_.create<arith::MulIOp>(loc_, point, rowSize), zero = constant(i64(), 0);
    Value from = b_.create<arith::MaxSIOp>(loc_, zero, b_.create<arith::SubIOp>(loc_, parBegin_, start));
    Value to =
        b_.create<arith::MinSIOp>(loc_, dimSize(plan_.par.back()), b_.create<arith::SubIOp>(loc_, parEnd_, start));
    emitLoop(*node, from, to);
  } else {
    emitItems(node->items);
  }
  for (unsigned i = 0; i < outer.size(); ++i)
    openLoops_.pop_back();
  scopes_.pop_back();
}

//===--- Bodies ---===//

void KernelEmitter::emitItems(MutableArrayRef<LoopItem> items) {
  SmallVector<unsigned> leaves;
  for (LoopItem &item : items) {
    if (item.sink >= 0) {
      leaves.push_back(item.sink);
      continue;
    }
    emitLeaves(leaves);
    leaves.clear();
    unsigned dim = item.loop->dim;
    emitLoop(*item.loop, constant(i64(), 0), dimSize(dim));
  }
  emitLeaves(leaves);
}

// Values first, then stores: a buffer updated in place is read before it is written.
void KernelEmitter::emitLeaves(ArrayRef<unsigned> sinks) {
  struct Pending {
    WriteOp op;
    unsigned copy;
    Value value;
    SmallVector<Value> syms;
  };
  SmallVector<Pending> stores;
  unsigned copies = useLanes() ? lanes_.copies : 1;
  for (unsigned sink : sinks) {
    auto write = dyn_cast<WriteOp>(plan_.sinks[sink].op);
    if (!write) {
      accumulate(sink);
      continue;
    }
    bool lanes = useLanes() && (plan_.sinks[sink].dims >> plan_.vecDim & 1);
    for (unsigned copy = 0; copy < (lanes ? copies : 1); ++copy) {
      Pending store{write, copy, eval(write.getValue(), copy).value, {}};
      for (Value sym : write.getSyms())
        store.syms.push_back(eval(sym, copy).value);
      stores.push_back(std::move(store));
    }
  }
  for (Pending &store : stores)
    emitWrite(store.op, store.copy, store.value, store.syms);
}

void KernelEmitter::withScope(DimSet dims, Operation *loop, llvm::function_ref<void()> body) {
  scopes_.back().child = loop;
  Scope inner;
  inner.dims = scopes_.back().dims | dims;
  scopes_.push_back(std::move(inner));
  body();
  scopes_.pop_back();
}

void KernelEmitter::buildLoop(LoopNode &node, Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body) {
  buildLoop(node, lo, hi, step, /*withDim=*/true, body);
}

void KernelEmitter::buildLoop(LoopNode &node, Value lo, Value hi, int64_t step, bool withDim,
                              llvm::function_ref<void(Value)> body) {
  SmallVector<Value> init;
  auto forEach = [&](llvm::function_ref<void(Value &)> visit) {
    for (unsigned sink : node.carried)
      for (SmallVector<Value> &slot : acc_[sink])
        for (Value &value : slot)
          visit(value);
  };
  forEach([&](Value &value) { init.push_back(value); });
  auto loop = b_.create<scf::ForOp>(loc_, lo, hi, constant(i64(), step), init);
  {
    OpBuilder::InsertionGuard guard(b_);
    Block *block = loop.getBody();
    if (!block->empty()) // without iter_args the builder adds the yield itself
      block->back().erase();
    b_.setInsertionPointToStart(block);
    unsigned next = 0;
    forEach([&](Value &value) { value = loop.getRegionIterArg(next++); });
    if (withDim)
      dimIv_[node.dim] = loop.getInductionVar();
    withScope(withDim ? DimSet(1) << node.dim : 0, loop, [&] { body(loop.getInductionVar()); });
    SmallVector<Value> yields;
    forEach([&](Value &value) { yields.push_back(value); });
    b_.setInsertionPointToEnd(block);
    b_.create<scf::YieldOp>(loc_, yields);
  }
  unsigned next = 0;
  forEach([&](Value &value) { value = loop.getResult(next++); });
}

//===--- One loop ---===//

void KernelEmitter::emitLoop(LoopNode &node, Value lo, Value hi) {
  SmallVector<unsigned> opened;
  for (unsigned sink : node.carried)
    if (!acc_.count(sink)) {
      startReduce(sink);
      opened.push_back(sink);
    }
  openLoops_.push_back(node.id);
  if (static_cast<int>(node.dim) == plan_.vecDim && width_ > 1)
    emitLaneLoop(node, lo, hi);
  else
    emitScalarLoop(node, lo, hi);
  openLoops_.pop_back();
  for (unsigned sink : opened)
    finishReduce(sink);
}

void KernelEmitter::emitScalarLoop(LoopNode &node, Value lo, Value hi) {
  buildLoop(node, lo, hi, 1, [&](Value) { emitItems(node.items); });
}

void KernelEmitter::emitLaneLoop(LoopNode &node, Value lo, Value hi) {
  bool reduces = llvm::any_of(node.carried, [&](unsigned sink) { return accIsLanes(sink); });
  if (node.tile)
    return emitTiles(node, lo, hi);
  if (node.single)
    return emitMaskedLoop(node, lo, hi, /*rotate=*/false);
  int64_t step = static_cast<int64_t>(width_) * node.copies;
  Value size = b_.create<arith::MaxSIOp>(loc_, b_.create<arith::SubIOp>(loc_, hi, lo), constant(i64(), 0));
  Value rest = b_.create<arith::RemUIOp>(loc_, size, constant(i64(), step));
  Value middle = addI(lo, b_.create<arith::SubIOp>(loc_, size, rest));
  buildLoop(node, lo, middle, step, [&](Value iv) {
    lanes_.open = true;
    lanes_.copies = node.copies;
    lanes_.iv = iv;
    for (unsigned copy = 0; copy < node.copies; ++copy)
      lanes_.base.push_back(copy ? addI(iv, constant(i64(), copy * width_)) : iv);
    emitItems(node.items);
    lanes_ = Lanes();
  });
  if (!reduces || node.copies == 1)
    return emitMaskedLoop(node, middle, hi, /*rotate=*/false);
  Value some = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::ne, rest, constant(i64(), 0));
  Value all = addI(middle, constant(i64(), step));
  Value end = b_.create<arith::SelectOp>(loc_, some, all, middle);
  tailEnd_ = hi;
  emitMaskedLoop(node, middle, end, /*rotate=*/true);
}

// One vector from `iv` on, of which the lanes before `end` count.
void KernelEmitter::openLanes(LoopNode &node, Value iv, Value end) {
  Value left = b_.create<arith::SubIOp>(loc_, end, iv);
  Value width = constant(i64(), width_);
  Type i32 = b_.getI32Type();
  Value clamped = b_.create<arith::MinSIOp>(loc_, left, width);
  Value count = b_.create<arith::TruncIOp>(loc_, i32, clamped);
  lanes_.open = true;
  lanes_.copies = 1;
  lanes_.iv = iv;
  lanes_.base.push_back(iv);
  lanes_.mask = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, iota(i32), splat(count));
  if (node.single)
    lanes_.full = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::sge, left, width);
}

// Tiles of the range: in each, a loop for every cut, whose values go to the stack, and a last one for all the rest.
void KernelEmitter::emitTiles(LoopNode &node, Value lo, Value hi) {
  SmallVector<Value> buffers;
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(entry_);
    for (const Cut &cut : node.cuts)
      buffers.push_back(b_.create<LLVM::AllocaOp>(loc_, ptr(), repr(cut[0].getType()), constant(i64(), node.tile), 64));
  }
  auto place = [&](size_t i, Value iv, Value start) -> Value {
    Value at = b_.create<arith::SubIOp>(loc_, iv, start);
    return b_.create<LLVM::GEPOp>(loc_, ptr(), repr(node.cuts[i][0].getType()), buffers[i], ValueRange{at});
  };
  buildLoop(node, lo, hi, node.tile, /*withDim=*/false, [&](Value start) {
    Value end = b_.create<arith::MinSIOp>(loc_, addI(start, constant(i64(), node.tile)), hi);
    for (size_t done = 0; done <= node.cuts.size(); ++done)
      buildLoop(node, start, end, width_, /*withDim=*/true, [&](Value iv) {
        openLanes(node, iv, end);
        for (size_t i = 0; i < done; ++i) {
          Type lanes = lanesOf(repr(node.cuts[i][0].getType()));
          Value loaded = b_.create<LLVM::LoadOp>(loc_, lanes, place(i, iv, start), 4);
          for (Value same : node.cuts[i])
            scopes_.back().memo[{same, 0}] = loaded;
        }
        if (done < node.cuts.size())
          b_.create<LLVM::StoreOp>(loc_, splat(eval(node.cuts[done][0], 0).value), place(done, iv, start), 4);
        else
          emitItems(node.items);
        lanes_ = Lanes();
      });
  });
}

// `rotate`: as many trips as there are copies, the last ones perhaps without any lane.
void KernelEmitter::emitMaskedLoop(LoopNode &node, Value lo, Value hi, bool rotate) {
  Value end = rotate ? tailEnd_ : hi;
  buildLoop(node, lo, hi, width_, [&](Value iv) {
    openLanes(node, iv, end);
    emitItems(node.items);
    if (rotate)
      rotateAccumulators(node);
    lanes_ = Lanes();
  });
}

} // namespace dlc::compiler
