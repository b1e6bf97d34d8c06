// Where values live: maps that several loops need are kept in an output's memory instead of being computed again, and
// which output may take over the memory of an input.
#include "compiler/lower/PlanStorage.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

namespace {

/// For each sink the innermost loop it stands in (~0u: none) and its turn in the order of execution.
struct Places {
  SmallVector<unsigned> loop, turn;
};

void findPlaces(ArrayRef<LoopItem> items, unsigned loop, unsigned &turn, Places &places) {
  ++turn;
  for (const LoopItem &item : items) {
    if (item.sink >= 0) {
      places.loop[item.sink] = loop;
      places.turn[item.sink] = turn;
      continue;
    }
    findPlaces(item.loop->items, item.loop->id, turn, places);
    ++turn;
  }
}

Places findPlaces(const KernelPlan &plan) {
  Places places;
  places.loop.assign(plan.sinks.size(), ~0u);
  places.turn.assign(plan.sinks.size(), 0);
  unsigned turn = 0;
  findPlaces(plan.top, ~0u, turn, places);
  return places;
}

/// Calls `visit` for every map that the sink evaluates, directly or through other maps.
void forEachMap(Value value, llvm::DenseSet<Value> &seen, llvm::function_ref<void(Value)> visit) {
  auto map = dyn_cast_or_null<MapOp>(value.getDefiningOp());
  if (!map || !seen.insert(value).second)
    return;
  visit(value);
  map.walk([&](UseOp use) { forEachMap(use.getValue(), seen, visit); });
}

void forEachMap(const Sink &sink, llvm::function_ref<void(Value)> visit) {
  llvm::DenseSet<Value> seen;
  if (auto write = dyn_cast<WriteOp>(sink.op)) {
    forEachMap(write.getValue(), seen, visit);
    for (Value sym : write.getSyms())
      forEachMap(sym, seen, visit);
    return;
  }
  sink.op->walk([&](UseOp use) { forEachMap(use.getValue(), seen, visit); });
}

/// Calls `visit` for every read that the sink evaluates.
void forEachRead(const Sink &sink, llvm::function_ref<void(ReadOp)> visit) {
  sink.op->walk([&](ReadOp read) { visit(read); });
  forEachMap(sink, [&](Value map) { map.getDefiningOp()->walk([&](ReadOp read) { visit(read); }); });
}

unsigned costWithInputs(Value stage, llvm::DenseSet<Operation *> &seen) {
  auto map = dyn_cast_or_null<MapOp>(stage.getDefiningOp());
  if (!map || !seen.insert(map).second)
    return 0;
  unsigned cost = estimateCost(map);
  map.walk([&](UseOp use) { cost += costWithInputs(use.getValue(), seen); });
  return cost;
}

bool isPlainWrite(WriteOp write) {
  return write.getSyms().empty() && !write.getBound() && !write.getAccumulate() &&
         write.getMap().isProjectedPermutation();
}

bool readsBuffer(Value buffer) {
  return llvm::any_of(buffer.getUsers(), [](Operation *user) { return isa<ReadOp>(user); });
}

} // namespace

void forEachRead(Value value, llvm::function_ref<void(ReadOp)> visit) {
  llvm::DenseSet<Value> seen;
  forEachMap(value, seen, [&](Value map) { map.getDefiningOp()->walk([&](ReadOp read) { visit(read); }); });
}

static unsigned countReads(Value stage) {
  unsigned count = 0;
  llvm::DenseSet<Value> seen;
  forEachMap(stage, seen, [&](Value map) { map.getDefiningOp()->walk([&](ReadOp) { ++count; }); });
  return count;
}

// Below this many operations a value is computed again rather than stored and loaded, unless it is an output anyway
// and takes several loads.
static constexpr unsigned kStashCost = 12;

void planStashes(KernelPlan &plan) {
  Places places = findPlaces(plan);
  unsigned number = 0;
  llvm::DenseMap<Operation *, unsigned> stageNumber;
  for (Operation &op : plan.func.getBlock())
    if (isStage(&op))
      stageNumber[&op] = number++;
  llvm::MapVector<Value, SmallVector<unsigned>> users; // map value -> sinks, in order of execution
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, plan.sinks.size()));
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return places.turn[a] < places.turn[b]; });
  for (unsigned s : order)
    forEachMap(plan.sinks[s], [&](Value map) { users[map].push_back(s); });
  llvm::DenseSet<Value> taken;
  for (auto &[value, sinks] : users) {
    const Sink &first = plan.sinks[sinks.front()], &last = plan.sinks[sinks.back()];
    bool severalLoops = places.loop[sinks.front()] != places.loop[sinks.back()];
    auto type = cast<ValType>(value.getType());
    if (!severalLoops || plan.deps.lookup(value) != first.dims || type.getDims().size() == 0)
      continue;
    StringRef wanted = plan.func.getScheduleAttr().getPlace(stageNumber.lookup(value.getDefiningOp()));
    llvm::DenseSet<Operation *> seen;
    bool cheap = wanted.empty() && costWithInputs(value, seen) < kStashCost;
    if (wanted == "recompute" || (cheap && countReads(value) < 2))
      continue;
    bool samePoints = llvm::all_of(sinks, [&](unsigned s) { return plan.sinks[s].dims == first.dims; });
    for (unsigned s = 0; s < plan.sinks.size() && samePoints; ++s) {
      auto write = dyn_cast<WriteOp>(plan.sinks[s].op);
      if (!write || !isPlainWrite(write) || plan.sinks[s].dims != first.dims || taken.contains(write.getBuffer()) ||
          readsBuffer(write.getBuffer()) || write.getValue().getType().getElementType() != type.getElementType())
        continue;
      bool itself = write.getValue() == value && places.loop[s] == places.loop[sinks.front()];
      if (!itself && (cheap || places.turn[s] < places.turn[plan.sinkOf(last.op)]))
        continue;
      taken.insert(write.getBuffer());
      plan.stashes.push_back({value, places.loop[sinks.front()], write});
      break;
    }
  }
}

LogicalResult checkInPlace(const KernelPlan &plan) {
  Places places = findPlaces(plan);
  for (auto [w, sink] : llvm::enumerate(plan.sinks)) {
    auto write = dyn_cast<WriteOp>(sink.op);
    if (!write)
      continue;
    for (auto [s, other] : llvm::enumerate(plan.sinks)) {
      bool late = false;
      forEachRead(other, [&](ReadOp read) {
        late |= read.getBuffer() == write.getBuffer() && places.turn[s] > places.turn[w];
      });
      if (late)
        return plan.func->emitOpError() << "reads argument #" << cast<BlockArgument>(write.getBuffer()).getArgNumber()
                                        << " after it was written";
    }
  }
  return success();
}

bool mayShare(const KernelPlan &plan, BlockArgument input, WriteOp write) {
  if (!isPlainWrite(write) || llvm::any_of(plan.stashes, [&](const Stash &s) { return s.out == write; }))
    return false;
  auto in = cast<MemRefType>(input.getType()), out = cast<MemRefType>(write.getBuffer().getType());
  if (in.getElementType() != out.getElementType())
    return false;
  for (auto contract : FuncOp(plan.func).getOps<ContractOp>()) {
    bool read = false; // by tiles to come
    auto check = [&](ReadOp r) { read |= r.getBuffer() == input; };
    contract.walk(check);
    contract.walk([&](UseOp use) { forEachRead(use.getValue(), check); });
    if (read)
      return false;
  }
  Places places = findPlaces(plan);
  unsigned turn = places.turn[plan.sinkOf(write)];
  auto dims = write.getValue().getType().getDims();
  for (auto [s, sink] : llvm::enumerate(plan.sinks)) {
    bool harmless = true;
    forEachRead(sink, [&](ReadOp read) {
      if (read.getBuffer() != input)
        return;
      ArrayAttr over = getOver(read->getParentOp());
      bool sameMap = read.getMap() == write.getMap() && !read.getBound() && read.getSyms().empty() &&
                     std::equal(dims.begin(), dims.end(), over.begin(), over.end());
      harmless &= sameMap && places.turn[s] <= turn;
    });
    if (!harmless)
      return false;
  }
  return true;
}

} // namespace dlc::compiler
