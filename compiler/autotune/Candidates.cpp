// A table says which fields a class of kernels searches and with which values; the candidates are their product, as far
// as it can be lowered.
#include "compiler/autotune/Candidates.h"
#include "compiler/autotune/CostModel.h"
#include "compiler/lower/KernelPlan.h"
#include "compiler/lower/Schedule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

namespace {

/// A schedule's fields while it is being varied.
using Fields = NamedAttrList;

/// Gives variants of `from`, without itself.
using Vary = void (*)(FuncOp kernel, const Fields &from, const TuningSizes &sizes, SmallVectorImpl<Fields> &out);

Fields with(const Fields &from, StringRef name, Attribute value) {
  Fields fields = from;
  fields.set(name, value);
  return fields;
}

ScheduleAttr attributeOf(FuncOp kernel, const Fields &fields) {
  return ScheduleAttr::get(kernel.getContext(), fields.getDictionary(kernel.getContext()));
}

//===--- Fields ---===//

template <int64_t... Values>
void varyUnroll(FuncOp kernel, const Fields &from, const TuningSizes &, SmallVectorImpl<Fields> &out) {
  for (int64_t n : {Values...})
    out.push_back(with(from, "unroll", Builder(kernel.getContext()).getI64IntegerAttr(n)));
}

/// Half and twice as many lanes.
void varyWidth(FuncOp kernel, const Fields &from, const TuningSizes &sizes, SmallVectorImpl<Fields> &out) {
  ScheduleAttr schedule = attributeOf(kernel, from);
  Builder b(kernel.getContext());
  int64_t width = schedule.getVecWidth();
  for (int64_t other : {width / 2, width * 2})
    if (width > 1 && other >= 4 && other <= int64_t(sizes.vectorBits) / 8)
      out.push_back(
          with(from, "vec", b.getDictionaryAttr(b.getNamedAttr(schedule.getVecDim(), b.getI64IntegerAttr(other)))));
}

void varyTail(FuncOp kernel, const Fields &from, const TuningSizes &, SmallVectorImpl<Fields> &out) {
  for (StringRef word : {"mask", "single"})
    out.push_back(with(from, "tail", StringAttr::get(kernel.getContext(), word)));
}

/// Another vectorised dim, with the loop order and parallel dims that go with it.
void varyVecDim(FuncOp kernel, const Fields &from, const TuningSizes &sizes, SmallVectorImpl<Fields> &out) {
  ScheduleAttr schedule = attributeOf(kernel, from);
  Builder b(kernel.getContext());
  for (unsigned dim = 0; dim < kernel.getNumDims(); ++dim) {
    StringAttr name = kernel.getDimName(dim);
    if (name.getValue() == schedule.getVecDim() || schedule.getVecWidth() <= 1 || sizes.dims[dim] < 4)
      continue;
    SmallVector<unsigned> order = findOrder(kernel, static_cast<int>(dim));
    if (order.empty())
      continue;
    Fields fields =
        with(from, "vec", b.getDictionaryAttr(b.getNamedAttr(name, b.getI64IntegerAttr(schedule.getVecWidth()))));
    SmallVector<Attribute> names;
    for (unsigned d : order)
      names.push_back(kernel.getDimName(d));
    fields.set("order", b.getArrayAttr(names));
    fields.erase("par"); // completed anew
    out.push_back(fields);
  }
}

/// The vectorised dim one loop further out: lanes then walk along another dim.
void varyOrder(FuncOp kernel, const Fields &from, const TuningSizes &, SmallVectorImpl<Fields> &out) {
  auto order = llvm::to_vector(llvm::cast<ArrayAttr>(from.get("order")).getValue());
  if (order.size() < 2)
    return;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  Fields fields = with(from, "order", ArrayAttr::get(kernel.getContext(), order));
  fields.erase("par");
  out.push_back(fields);
}

/// Fewer parallel dims: the loops inside of the last one run whole.
void varyPar(FuncOp kernel, const Fields &from, const TuningSizes &sizes, SmallVectorImpl<Fields> &out) {
  auto list = llvm::dyn_cast_or_null<ArrayAttr>(from.get("par")); // none: to be completed
  ArrayRef<Attribute> par = list ? list.getValue() : ArrayRef<Attribute>();
  int64_t points = 1;
  for (size_t n = 1; n < par.size(); ++n) {
    points *= sizes.dims[kernel.getDimIndex(llvm::cast<StringAttr>(par[n - 1]).getValue())];
    if (points >= 8) // else threads would wait for each other
      out.push_back(with(from, "par", ArrayAttr::get(kernel.getContext(), par.take_front(n))));
  }
}

/// Every stage that several loops need, kept in an output or computed again.
void varyPlace(FuncOp kernel, const Fields &from, const TuningSizes &, SmallVectorImpl<Fields> &out) {
  Builder b(kernel.getContext());
  unsigned stage = 0;
  for (Operation &op : kernel.getBlock()) {
    if (!isStage(&op))
      continue;
    std::string name = "s" + std::to_string(stage++);
    bool used = llvm::any_of(op.getUsers(), [](Operation *user) { return isa<UseOp>(user); });
    if (!isa<MapOp>(op) || !used)
      continue;
    for (StringRef word : {"out", "recompute"}) {
      NamedAttrList place(from.get("place") ? llvm::cast<DictionaryAttr>(from.get("place")) : b.getDictionaryAttr({}));
      place.set(name, b.getStringAttr(word));
      out.push_back(with(from, "place", place.getDictionary(kernel.getContext())));
    }
  }
}

//===--- Fields of contractions ---===//

Attribute sizesOf(Builder &b, ArrayRef<std::pair<StringRef, int64_t>> sizes) {
  NamedAttrList list;
  for (auto [name, size] : sizes)
    list.append(name, b.getI64IntegerAttr(size));
  return list.getDictionary(b.getContext());
}

/// Register tiles; blocks and packing follow from them.
void varyTile(FuncOp kernel, const Fields &from, const TuningSizes &sizes, SmallVectorImpl<Fields> &out) {
  static constexpr std::pair<int64_t, int64_t> kWide[] = {{14, 2}, {12, 2}, {9, 3}, {8, 3}, {6, 4}, {4, 6}, {4, 4}},
                                               kNarrow[] = {{6, 2}, {5, 2}, {4, 3}, {4, 2}, {3, 3}, {2, 3}};
  Builder b(kernel.getContext());
  int64_t width = attributeOf(kernel, from).getVecWidth();
  for (auto [rows, vectors] : sizes.vectorBits >= 512 ? ArrayRef(kWide) : ArrayRef(kNarrow)) {
    Fields fields = with(from, "micro", sizesOf(b, {{"m", rows}, {"n", vectors * width}}));
    fields.erase("block");
    fields.erase("pack");
    out.push_back(fields);
  }
}

/// Half and twice the slice of k, and the whole.
void varySlice(FuncOp kernel, const Fields &from, const TuningSizes &, SmallVectorImpl<Fields> &out) {
  ScheduleAttr schedule = attributeOf(kernel, from);
  Builder b(kernel.getContext());
  int64_t slice = schedule.getTile("block", "k", 0);
  for (int64_t k : slice ? std::vector<int64_t>{slice / 2, slice * 2, 0} : std::vector<int64_t>{256, 512})
    out.push_back(with(from, "block", sizesOf(b, {{"k", k}})));
}

/// Operands copied into blocks, or read in place.
void varyPack(FuncOp kernel, const Fields &from, const TuningSizes &, SmallVectorImpl<Fields> &out) {
  Builder b(kernel.getContext());
  for (StringRef lhs : {"none", "block"})
    for (StringRef rhs : {"none", "block"})
      out.push_back(with(from, "pack",
                         b.getDictionaryAttr({b.getNamedAttr("lhs", b.getStringAttr(lhs)),
                                              b.getNamedAttr("rhs", b.getStringAttr(rhs))})));
}

//===--- Classes ---===//

/// What is searched: every combination of one variant (or none) of each field.
struct Space {
  KernelClass kernelClass;
  std::vector<Vary> fields;
};

const std::vector<Space> &spaces() {
  static const auto *all = new std::vector<Space>{
      {KernelClass::Map, {varyVecDim, varyOrder, varyWidth, varyUnroll<1, 2, 4>, varyTail, varyPar}},
      {KernelClass::RowReduce, {varyUnroll<1, 2, 4, 8>, varyWidth, varyPlace, varyTail, varyPar}},
      {KernelClass::Contract, {varyTile, varySlice, varyPack}},
      {KernelClass::ColumnReduce, {varyVecDim, varyUnroll<2, 4, 8, 16>, varyWidth, varyPlace, varyPar}},
  };
  return *all;
}

/// Whether the kernel with this schedule, completed, can be lowered; leaves it so.
ScheduleAttr complete(FuncOp kernel, ScheduleAttr schedule, unsigned vectorBits) {
  ScopedDiagnosticHandler quiet(kernel.getContext(), [](Diagnostic &) { return success(); });
  kernel.setScheduleAttr(schedule);
  ScheduleAttr completed = completeSchedule(kernel, vectorBits);
  if (!completed)
    return {};
  kernel.setScheduleAttr(completed);
  return failed(planKernel(kernel)) ? ScheduleAttr() : completed;
}

} // namespace

KernelClass classOf(FuncOp kernel) {
  if (!kernel.getOps<ContractOp>().empty())
    return KernelClass::Contract;
  ScheduleAttr schedule = kernel.getScheduleAttr();
  StringRef vec = schedule ? schedule.getVecDim() : StringRef();
  bool reduces = false;
  for (auto reduce : kernel.getOps<ReduceOp>()) {
    reduces = true;
    for (Attribute dim : reduce.getBy())
      if (llvm::cast<StringAttr>(dim).getValue() == vec)
        return KernelClass::RowReduce;
  }
  return reduces ? KernelClass::ColumnReduce : KernelClass::Map;
}

double modelCost(FuncOp kernel, const TuningSizes &sizes) {
  ScopedDiagnosticHandler quiet(kernel.getContext(), [](Diagnostic &) { return success(); });
  FailureOr<KernelPlan> plan = planKernel(kernel);
  return failed(plan) ? std::numeric_limits<double>::infinity() : estimateNs(*plan, sizes);
}

std::vector<ScheduleAttr> candidateSchedules(FuncOp kernel, const TuningSizes &sizes, size_t limit) {
  ScheduleAttr given = kernel.getScheduleAttr();
  KernelClass kind = classOf(kernel);
  constexpr size_t kMostFields = 400; // the product is cut here, last fields first
  SmallVector<Fields> all = {Fields(given.getFields())};
  for (const Space &space : spaces())
    for (Vary vary : space.kernelClass == kind ? space.fields : std::vector<Vary>())
      for (size_t i = 0, n = all.size(); i < n && all.size() < kMostFields; ++i) {
        SmallVector<Fields> more;
        vary(kernel, all[i], sizes, more);
        all.append(more);
      }
  llvm::SetVector<Attribute> legal;
  for (const Fields &fields : all)
    if (ScheduleAttr schedule = complete(kernel, attributeOf(kernel, fields), sizes.vectorBits))
      legal.insert(schedule);
  legal.remove(given);
  std::vector<std::pair<double, size_t>> ranked; // equal costs: in the order of the space
  for (auto [i, schedule] : llvm::enumerate(legal)) {
    kernel.setScheduleAttr(llvm::cast<ScheduleAttr>(schedule));
    ranked.emplace_back(modelCost(kernel, sizes), i);
  }
  kernel.setScheduleAttr(given);
  std::sort(ranked.begin(), ranked.end());
  // The model knows more of unrolling than of memory: the best of each way to vectorise comes before the second best.
  llvm::SetVector<Attribute> chosen, ways;
  for (const auto &[cost, i] : ranked)
    if (ways.size() < limit / 2 && ways.insert(llvm::cast<ScheduleAttr>(legal[i]).getFields().get(
                                       kind == KernelClass::Contract ? "micro" : "vec")))
      chosen.insert(legal[i]);
  for (const auto &[cost, i] : ranked)
    if (chosen.size() < limit)
      chosen.insert(legal[i]);
  std::vector<ScheduleAttr> result = {given};
  for (Attribute schedule : chosen)
    result.push_back(llvm::cast<ScheduleAttr>(schedule));
  return result;
}

} // namespace dlc::compiler
