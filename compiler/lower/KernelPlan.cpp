// Plans the loops of a kernel: reduces and writes ("sinks") are grouped greedily into one loop nest, a loop being
// closed only where a later sink needs a reduction that the loop completes.
#include "compiler/lower/ContractPlan.h"
#include "compiler/lower/PlanStorage.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

DimSet toSet(FuncOp func, ArrayAttr names) {
  DimSet set = 0;
  for (Attribute name : names)
    set |= DimSet(1) << func.getDimIndex(cast<StringAttr>(name).getValue());
  return set;
}

unsigned KernelPlan::sinkOf(Operation *op) const {
  for (auto [i, sink] : llvm::enumerate(sinks))
    if (sink.op == op)
      return i;
  llvm_unreachable("not a sink of this plan");
}

bool KernelPlan::isLoaded(Value stage, unsigned loop) const {
  return llvm::any_of(stashes, [&](const Stash &s) { return s.stage == stage && s.storeLoop != loop; });
}

//===--- Dependence on dims ---===//

static DimSet mapDims(FuncOp func, AffineMap map, ArrayRef<Attribute> over) {
  DimSet set = 0;
  for (auto [i, name] : llvm::enumerate(over))
    if (map.isFunctionOfDim(i))
      set |= DimSet(1) << func.getDimIndex(cast<StringAttr>(name).getValue());
  return set;
}

static DimSet ownDims(FuncOp func, Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op))
    return mapDims(func, read.getMap(), getOver(op->getParentOp()).getValue());
  if (auto index = dyn_cast<IndexOp>(op))
    return DimSet(1) << func.getDimIndex(index.getDim());
  return 0;
}

llvm::DenseMap<Value, DimSet> computeDeps(FuncOp func) {
  llvm::DenseMap<Value, DimSet> deps;
  for (Operation &op : func.getBlock()) {
    if (!isStage(&op))
      continue;
    Block &region = op.getRegion(0).front();
    for (Region &each : op.getRegions())
      for (Operation &inner : each.front()) {
        DimSet set = ownDims(func, &inner);
        for (Value operand : inner.getOperands())
          set |= deps.lookup(operand);
        for (Value result : inner.getResults())
          deps[result] = set;
      }
    for (Value result : op.getResults()) {
      unsigned i = cast<OpResult>(result).getResultNumber();
      DimSet set = deps.lookup(region.getTerminator()->getOperand(i));
      if (auto reduce = dyn_cast<ReduceOp>(op)) // an accumulator lives at all kept dims
        set = toSet(func, reduce.getOver()) & ~toSet(func, reduce.getBy());
      if (auto contract = dyn_cast<ContractOp>(op))
        set = toSet(func, contract.getOver()) & ~toSet(func, contract.getBy());
      deps[result] = set;
    }
  }
  return deps;
}

bool isParallelDim(FuncOp func, Operation *op, unsigned dim) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return (toSet(func, reduce.getOver()) >> dim & 1) && !(toSet(func, reduce.getBy()) >> dim & 1);
  auto write = cast<WriteOp>(op);
  ArrayRef<StringAttr> dims = write.getValue().getType().getDims();
  auto it = llvm::find(dims, func.getDimName(dim));
  if (it == dims.end())
    return false;
  bool scatters = llvm::any_of(write.getSyms(), [](Value sym) { return isa<ValType>(sym.getType()); });
  if (!scatters && !write.getAccumulate())
    return true;
  AffineExpr alone = getAffineDimExpr(it - dims.begin(), func.getContext());
  return llvm::is_contained(write.getMap().getResults(), alone);
}

//===--- Loop order ---===//

SmallVector<unsigned> findOrder(FuncOp func, int last) {
  unsigned n = func.getNumDims();
  SmallVector<DimSet> before(n, 0); // dims that must come earlier
  for (auto reduce : func.getOps<ReduceOp>()) {
    DimSet by = toSet(func, reduce.getBy()), kept = toSet(func, reduce.getOver()) & ~by;
    for (unsigned dim = 0; dim < n; ++dim)
      if (by >> dim & 1)
        before[dim] |= kept;
  }
  SmallVector<unsigned> order;
  DimSet done = 0;
  while (order.size() < n) {
    int pick = -1;
    for (unsigned dim = 0; dim < n && pick < 0; ++dim)
      if (!(done >> dim & 1) && static_cast<int>(dim) != last && !(before[dim] & ~done))
        pick = static_cast<int>(dim);
    if (pick < 0 && last >= 0 && !(done >> last & 1) && !(before[last] & ~done))
      pick = last;
    if (pick < 0)
      return {};
    order.push_back(pick);
    done |= DimSet(1) << pick;
  }
  return order;
}

static bool orderIsLegal(FuncOp func, ArrayRef<unsigned> order) {
  for (auto reduce : func.getOps<ReduceOp>()) {
    DimSet by = toSet(func, reduce.getBy()), over = toSet(func, reduce.getOver());
    bool inBy = false;
    for (unsigned dim : order) {
      if (!(over >> dim & 1))
        continue;
      if (inBy && !(by >> dim & 1))
        return false;
      inBy |= by >> dim & 1;
    }
  }
  return true;
}

//===--- Cost ---===//

static unsigned opCost(Operation &op) {
  auto prim = dyn_cast<PrimOp>(op);
  if (!prim)
    return !isa<UseOp, YieldOp>(op) && op.getNumOperands() > 0;
  bool cheap = llvm::StringSwitch<bool>(prim.getName())
                   .Cases("add", "sub", "mul", "abs", "neg", "min", "max", "fma", "square", true)
                   .Cases("sign", "isnan", "isinf", "isfinite", "relu", "relu_backward", true)
                   .Cases("eq", "ne", "lt", "le", "gt", "ge", "select", "truth", "clamp", true)
                   .Cases("and", "or", "xor", "not", "logical_and", "logical_or", "logical_not", true)
                   .Cases("floor", "ceil", "trunc", "round", "fmin", "fmax", true)
                   .Default(prim.getName().starts_with("to_"));
  if (cheap)
    return 2;
  bool divides =
      llvm::StringSwitch<bool>(prim.getName()).Cases("div", "sqrt", "rsqrt", "reciprocal", true).Default(false);
  return divides ? 5 : 20;
}

unsigned countFlops(Operation *stage) {
  if (isa<ContractOp>(stage))
    return 2;
  unsigned flops = 0;
  for (Operation &op : stage->getRegion(0).front()) {
    auto prim = dyn_cast<PrimOp>(op);
    bool counts = op.getNumOperands() && isa<FloatType>(op.getOperand(0).getType()) && !isa<UseOp, YieldOp>(op) &&
                  !(prim && prim.getName().starts_with("to_"));
    unsigned cost = counts ? opCost(op) : 0;
    flops += cost == 2 ? 1 : cost;
  }
  return flops + (isa<ReduceOp>(stage) ? stage->getNumResults() : 0);
}

unsigned estimateCost(Operation *stage) {
  unsigned cost = 0;
  for (Operation &op : stage->getRegion(0).front())
    cost += opCost(op);
  return cost;
}

namespace {
/// Adds up what a sink evaluates in its innermost loop.
struct CostSum {
  const KernelPlan &plan;
  unsigned inner, loop;
  llvm::DenseSet<Operation *> seen;
  unsigned cost = 1;

  void add(Value value) {
    Operation *stage = value.getDefiningOp();
    if (loop != ~0u && isa_and_nonnull<MapOp>(stage) && plan.isLoaded(value, loop))
      ++cost;
    else
      addStage(stage);
  }
  void addStage(Operation *stage) {
    if (!stage || !isStage(stage) || !seen.insert(stage).second)
      return;
    if (isa<ReduceOp>(stage) && seen.size() > 1)
      return; // computed before
    for (Operation &op : stage->getRegion(0).front()) {
      if (auto use = dyn_cast<UseOp>(op))
        add(use.getValue());
      else if (op.getNumResults() && plan.deps.lookup(op.getResult(0)) >> inner & 1)
        cost += opCost(op);
    }
  }
};
} // namespace

unsigned estimateSinkCost(const KernelPlan &plan, const Sink &sink, unsigned loop) {
  unsigned inner = 0;
  for (unsigned dim : plan.order)
    if (sink.dims >> dim & 1)
      inner = dim;
  CostSum sum{plan, inner, loop, {}, 1};
  if (auto write = dyn_cast<WriteOp>(sink.op))
    sum.add(write.getValue());
  else
    sum.addStage(sink.op);
  return sum.cost;
}

//===--- Long chains ---===//

namespace {
/// Collects the long scalar functions that a loop evaluates along its lanes, in the order of evaluation.
struct LongFunctions {
  const KernelPlan &plan;
  unsigned loop;
  llvm::DenseSet<Value> seen;
  std::vector<Cut> found;

  /// Whether two scalars are the same function of the point.
  static bool same(Value a, Value b) {
    a = resolve(a);
    b = resolve(b);
    if (a == b)
      return true;
    Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
    if (!x || !y || x->getName() != y->getName() || x->getNumOperands() != y->getNumOperands() || isStage(x) ||
        a.getType() != b.getType() || x->getAttrDictionary() != y->getAttrDictionary() ||
        getOver(x->getParentOp()) != getOver(y->getParentOp()))
      return false;
    for (auto [p, q] : llvm::zip(x->getOperands(), y->getOperands()))
      if (!same(p, q))
        return false;
    return true;
  }
  /// The scalar behind uses of maps.
  static Value resolve(Value value) {
    for (;;) {
      Operation *op = value.getDefiningOp();
      if (auto use = dyn_cast_or_null<UseOp>(op))
        value = use.getValue();
      else if (auto map = dyn_cast_or_null<MapOp>(op))
        value = map.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
      else
        return value;
    }
  }

  void collect(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second || !plan.variesByLane(value) || isa<ReduceOp>(op))
      return;
    if (auto map = dyn_cast<MapOp>(op)) {
      if (!plan.isLoaded(value, loop))
        collect(map.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
      return;
    }
    for (Value operand : op->getOperands())
      collect(operand);
    Type type = value.getType();
    if (!isa<PrimOp>(op) || opCost(*op) < 20 || !type.isIntOrFloat() || type.getIntOrFloatBitWidth() < 16)
      return;
    for (Cut &cut : found)
      if (same(cut[0], value))
        return cut.push_back(value);
    found.push_back({value});
  }
};
} // namespace

std::vector<Cut> findCuts(const KernelPlan &plan, const LoopNode &node) {
  LongFunctions functions{plan, node.id, {}, {}};
  for (unsigned s : node.sinks) {
    Operation *op = plan.sinks[s].op;
    if (auto write = dyn_cast<WriteOp>(op)) {
      functions.collect(write.getValue());
      for (Value sym : write.getSyms())
        functions.collect(sym);
    } else {
      for (Value yielded : op->getRegion(0).front().getTerminator()->getOperands())
        functions.collect(yielded);
    }
  }
  return std::move(functions.found);
}

//===--- The loop tree ---===//

namespace {

class Planner {
public:
  explicit Planner(FuncOp func) : func_(func) { plan_.func = func; }
  FailureOr<KernelPlan> run();

private:
  FailureOr<KernelPlan> planContraction();
  LogicalResult readSchedule();
  void collectSinks();
  void addDeps(Value value, llvm::SmallVectorImpl<unsigned> &deps, llvm::DenseSet<Operation *> &seen);
  SmallVector<LoopItem, 2> planBody(DimSet scope, SmallVector<unsigned> sinks);
  int nextDim(unsigned sink, DimSet scope);
  void chooseAllCopies(MutableArrayRef<LoopItem> items);
  void chooseCopies(LoopNode &node);
  void chooseCuts(LoopNode &node);
  DimSet prefixOf(unsigned dim);
  LogicalResult checkWrites();
  InFlightDiagnostic error() { return func_.emitOpError(); }

  FuncOp func_;
  KernelPlan plan_;
  llvm::DenseMap<Operation *, unsigned> sinkNumber_;
};

} // namespace

LogicalResult Planner::readSchedule() {
  ScheduleAttr schedule = func_.getScheduleAttr();
  if (!schedule)
    return error() << "has no schedule; run kernel-schedule first";
  for (StringRef name : schedule.getOrder())
    plan_.order.push_back(func_.getDimIndex(name));
  if (plan_.order.size() != func_.getNumDims())
    return error() << "has an incomplete schedule; run kernel-schedule first";
  if (!orderIsLegal(func_, plan_.order))
    return error() << "needs a loop order in which the dims that a reduction keeps come before those it reduces";
  if (!schedule.getVecDim().empty()) {
    plan_.vecDim = func_.getDimIndex(schedule.getVecDim());
    plan_.width = schedule.getVecWidth();
  }
  for (auto [i, name] : llvm::enumerate(schedule.getPar())) {
    unsigned dim = func_.getDimIndex(name);
    if (i >= plan_.order.size() || plan_.order[i] != dim)
      return error() << "can't split dim '" << name << "' over threads: par must be the first dims of the loop order";
    for (Operation &op : func_.getBlock())
      if (isa<ReduceOp, WriteOp>(op) && !isParallelDim(func_, &op, dim))
        return error() << "can't split dim '" << name << "' over threads: a stage does not go along it freely";
    plan_.par.push_back(dim);
  }
  for (auto [i, dim] : llvm::enumerate(plan_.par))
    if (static_cast<int>(dim) == plan_.vecDim && i + 1 != plan_.par.size())
      return error() << "needs the vectorised dim last among the parallel dims";
  return success();
}

// Reduces whose value `value` (a stage's) needs, without looking through reduces.
void Planner::addDeps(Value value, llvm::SmallVectorImpl<unsigned> &deps, llvm::DenseSet<Operation *> &seen) {
  Operation *stage = value.getDefiningOp();
  if (!stage || !seen.insert(stage).second)
    return;
  if (isa<ReduceOp>(stage)) {
    unsigned number = sinkNumber_.lookup(stage);
    if (!llvm::is_contained(deps, number))
      deps.push_back(number);
    for (unsigned inner : plan_.sinks[number].deps)
      if (!llvm::is_contained(deps, inner))
        deps.push_back(inner);
    return;
  }
  if (isa<MapOp>(stage))
    stage->walk([&](UseOp use) { addDeps(use.getValue(), deps, seen); });
}

void Planner::collectSinks() {
  for (Operation &op : func_.getBlock()) {
    if (!isa<ReduceOp, WriteOp>(op))
      continue;
    Sink sink;
    sink.op = &op;
    llvm::DenseSet<Operation *> seen;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      sink.dims = toSet(func_, reduce.getOver());
      sink.by = toSet(func_, reduce.getBy());
      reduce.walk([&](UseOp use) { addDeps(use.getValue(), sink.deps, seen); });
    } else {
      auto write = cast<WriteOp>(op);
      for (StringAttr dim : write.getValue().getType().getDims())
        sink.dims |= DimSet(1) << func_.getDimIndex(dim.getValue());
      addDeps(write.getValue(), sink.deps, seen);
      for (Value sym : write.getSyms())
        addDeps(sym, sink.deps, seen);
    }
    sinkNumber_[&op] = plan_.sinks.size();
    plan_.sinks.push_back(std::move(sink));
  }
}

int Planner::nextDim(unsigned sink, DimSet scope) {
  for (unsigned dim : plan_.order)
    if ((plan_.sinks[sink].dims & ~scope) >> dim & 1)
      return static_cast<int>(dim);
  return -1;
}

// A body is emitted once for each copy and once for the tail: only short ones are unrolled, long ones take one body.
void Planner::chooseCopies(LoopNode &node) {
  constexpr unsigned kUnrollBudget = 48, kSingleBody = 30;
  ScheduleAttr schedule = func_.getScheduleAttr();
  unsigned cost = 1;
  bool innermost = true;
  for (unsigned s : node.sinks) {
    cost += estimateSinkCost(plan_, plan_.sinks[s], node.id);
    innermost &= plan_.order.back() == node.dim || (plan_.sinks[s].dims & ~prefixOf(node.dim)) == 0;
  }
  node.copies = schedule.getInt("unroll", 1);
  // Loops inside of a vectorised one walk memory in strips, which should not be narrow.
  constexpr unsigned kStripCopies = 4, kStripBudget = 400;
  unsigned least = !innermost && cost * kStripCopies <= kStripBudget ? kStripCopies : 1;
  while (node.copies > least && cost * node.copies > kUnrollBudget)
    node.copies /= 2;
  StringRef tail = schedule.getWord("tail");
  node.single = innermost && (tail == "single" || (tail != "mask" && cost >= kSingleBody));
  if (node.single) {
    node.copies = 1;
    chooseCuts(node);
  }
  for (unsigned s : node.sinks)
    plan_.copiesOf[s] = node.copies;
}

// One body of a long chain keeps the processor waiting, since its window holds too few trips to overlap them. So each
// long function but the last, which is computed with the rest, gets a loop of its own.
void Planner::chooseCuts(LoopNode &node) {
  constexpr int64_t kLongChain = 3, kTile = 512;
  int64_t tile = func_.getScheduleAttr().getInt("fission", -1);
  std::vector<Cut> cuts = findCuts(plan_, node);
  if (tile == 0 || cuts.size() < 2 || (tile < 0 && static_cast<int64_t>(cuts.size()) < kLongChain))
    return;
  cuts.pop_back();
  node.tile = llvm::alignTo(tile < 0 ? kTile : tile, plan_.width);
  node.cuts = std::move(cuts);
}

void Planner::chooseAllCopies(MutableArrayRef<LoopItem> items) {
  for (LoopItem &item : items) {
    if (!item.loop)
      continue;
    if (static_cast<int>(item.loop->dim) == plan_.vecDim && plan_.width > 1)
      chooseCopies(*item.loop);
    chooseAllCopies(item.loop->items);
  }
}

// The dims up to and including `dim` in the loop order.
DimSet Planner::prefixOf(unsigned dim) {
  DimSet set = 0;
  for (unsigned other : plan_.order) {
    set |= DimSet(1) << other;
    if (other == dim)
      break;
  }
  return set;
}

SmallVector<LoopItem, 2> Planner::planBody(DimSet scope, SmallVector<unsigned> sinks) {
  SmallVector<LoopItem, 2> items;
  auto waitsFor = [&](unsigned sink, ArrayRef<unsigned> others) {
    return llvm::any_of(plan_.sinks[sink].deps, [&](unsigned dep) { return llvm::is_contained(others, dep); });
  };
  while (!sinks.empty()) {
    auto leaf = llvm::find_if(sinks, [&](unsigned s) { return nextDim(s, scope) < 0 && !waitsFor(s, sinks); });
    if (leaf != sinks.end()) {
      LoopItem item;
      item.sink = static_cast<int>(*leaf);
      items.push_back(std::move(item));
      sinks.erase(leaf);
      continue;
    }
    auto first = llvm::find_if(sinks, [&](unsigned s) { return nextDim(s, scope) >= 0 && !waitsFor(s, sinks); });
    int dim = nextDim(*first, scope);
    SmallVector<unsigned> group, rest;
    for (unsigned s : sinks) {
      bool fits = nextDim(s, scope) == dim && llvm::all_of(plan_.sinks[s].deps, [&](unsigned dep) {
                    bool pending = llvm::is_contained(sinks, dep);
                    return !pending || (llvm::is_contained(group, dep) && !(plan_.sinks[dep].by >> dim & 1));
                  });
      (fits ? group : rest).push_back(s);
    }
    auto node = std::make_unique<LoopNode>();
    node->dim = dim;
    node->id = plan_.numLoops++;
    node->sinks = group;
    for (unsigned s : group)
      if (plan_.sinks[s].by >> dim & 1)
        node->carried.push_back(s);
    node->items = planBody(scope | DimSet(1) << dim, group);
    LoopItem item;
    item.loop = std::move(node);
    items.push_back(std::move(item));
    sinks = rest;
  }
  return items;
}

// A buffer that is read and written is updated in place. A write that may hit one place twice runs point by point.
LogicalResult Planner::checkWrites() {
  for (auto write : func_.getOps<WriteOp>()) {
    for (Operation *user : write.getBuffer().getUsers()) {
      auto read = dyn_cast<ReadOp>(user);
      if (read && (read.getMap() != write.getMap() || !read.getSyms().empty() || !write.getSyms().empty()))
        return error() << "reads and writes argument #" << cast<BlockArgument>(write.getBuffer()).getArgNumber()
                       << " through different maps";
    }
    bool goesAlong =
        plan_.vecDim >= 0 && llvm::is_contained(write.getValue().getType().getDims(), func_.getDimName(plan_.vecDim));
    if (plan_.width > 1 && goesAlong && !isParallelDim(func_, write, plan_.vecDim))
      return error() << "can't vectorise dim '" << func_.getDimName(plan_.vecDim).getValue()
                     << "': a write may hit one place from several lanes";
  }
  return success();
}

// No loop tree: the stages after the sum are evaluated on its tiles, all writes together.
FailureOr<KernelPlan> Planner::planContraction() {
  plan_.deps = computeDeps(func_);
  if (failed(planContract(plan_)))
    return failure();
  collectSinks();
  plan_.copiesOf.assign(plan_.sinks.size(), 1);
  chooseEpilogue(plan_);
  return std::move(plan_);
}

FailureOr<KernelPlan> Planner::run() {
  if (func_.getNumDims() > 60)
    return error() << "has more than 60 dims";
  if (!func_.getOps<ContractOp>().empty())
    return planContraction();
  if (failed(readSchedule()) || failed(checkWrites()))
    return failure();
  collectSinks();
  plan_.deps = computeDeps(func_);
  plan_.copiesOf.assign(plan_.sinks.size(), 1);
  SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, plan_.sinks.size()));
  plan_.top = planBody(0, all);
  if (failed(checkInPlace(plan_)))
    return failure();
  planStashes(plan_);
  chooseAllCopies(plan_.top);
  return std::move(plan_);
}

FailureOr<KernelPlan> planKernel(FuncOp func) { return Planner(func).run(); }

bool isLowerable(FuncOp func) {
  if (!func.getOps<ContractOp>().empty())
    return canContract(func);
  return !findOrder(func, -1).empty() || func.getNumDims() == 0;
}

} // namespace dlc::compiler
