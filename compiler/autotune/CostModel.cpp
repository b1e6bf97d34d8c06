// Arithmetic by vector operations, with the latency of short chains; memory by the lines an access touches in a trip of
// the innermost loop. Constants are of the measured kernels: an operation of a vector 0.12 ns, a line from L2 1.5 ns.
#include "compiler/autotune/CostModel.h"
#include "compiler/lower/ContractPlan.h"

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

namespace {

constexpr double kOpNs = 0.12, kLaneNs = 0.35, kLineNs = 1.5, kTripNs = 0.5, kAddLatencyNs = 1.0;

class Model {
public:
  Model(const KernelPlan &plan, const TuningSizes &sizes) : plan_(plan), sizes_(sizes) {}

  double run() {
    double ns = 0;
    for (auto [i, sink] : llvm::enumerate(plan_.sinks)) {
      double points = 1;
      for (unsigned dim = 0; dim < sizes_.dims.size(); ++dim)
        if (sink.dims >> dim & 1)
          points *= static_cast<double>(std::max<int64_t>(1, sizes_.dims[dim]));
      ns += sinkNs(sink, std::max(1u, plan_.copiesOf[i]), points);
    }
    return ns;
  }

private:
  bool goesBy(const Sink &sink, int dim) const { return dim >= 0 && (sink.dims >> dim & 1); }

  double sinkNs(const Sink &sink, unsigned copies, double points) {
    double lanes = goesBy(sink, plan_.vecDim) ? vectorLanes() : 1;
    double trips = points / lanes, ops = 1;
    llvm::SmallPtrSet<Operation *, 8> counted;
    auto write = dyn_cast<WriteOp>(sink.op);
    addOps(write ? write.getValue().getDefiningOp() : sink.op, sink.op, counted, ops);
    // A vector wider than the registers takes several operations.
    double ns = trips * std::max(1.0, lanes / registerLanes()) * ops * kOpNs + trips / copies * kTripNs;
    // A sum whose accumulators are too few waits for each addition.
    if (sink.by && goesBy(sink, plan_.vecDim) && (sink.by >> plan_.vecDim & 1))
      ns = std::max(ns, trips / copies * kAddLatencyNs);
    llvm::SmallPtrSet<Operation *, 8> seen; // of this sink
    accesses(sink.op, sink, points, lanes, seen, ns);
    return ns;
  }

  /// What a sink computes for a point: its stage and the maps that it uses, but for those kept from an earlier sink.
  void addOps(Operation *stage, Operation *sink, llvm::SmallPtrSetImpl<Operation *> &counted, double &ops) {
    if (!stage || !isStage(stage) || !counted.insert(stage).second || (isa<ReduceOp>(stage) && stage != sink))
      return;
    bool kept = llvm::any_of(plan_.stashes, [&](const Stash &s) { return s.stage.getDefiningOp() == stage; });
    if (kept && !stored_.insert(stage).second) {
      ops += 1; // read back
      return;
    }
    ops += estimateCost(stage);
    for (Operation &op : stage->getRegion(0).front())
      if (auto use = dyn_cast<UseOp>(op))
        addOps(use.getValue().getDefiningOp(), sink, counted, ops);
  }

  /// Lanes of a register for the widest type that is computed with.
  double registerLanes() const {
    unsigned bits = 8;
    FuncOp func = plan_.func;
    func.walk([&](ReadOp read) {
      Type type = cast<MemRefType>(read.getBuffer().getType()).getElementType();
      if (type.isIntOrFloat())
        bits = std::max(bits, isa<FloatType>(type) ? std::max(32u, type.getIntOrFloatBitWidth())
                                                   : type.getIntOrFloatBitWidth());
    });
    return static_cast<double>(sizes_.vectorBits) / bits;
  }

  /// Lanes that are in use: a dim shorter than the vector wastes the rest.
  double vectorLanes() const {
    double n = static_cast<double>(std::max<int64_t>(1, sizes_.dims[plan_.vecDim])), width = plan_.width;
    return n / std::ceil(n / width);
  }

  void accesses(Operation *op, const Sink &sink, double points, double lanes, llvm::SmallPtrSetImpl<Operation *> &seen,
                double &ns) {
    if (!op || !seen.insert(op).second)
      return;
    if (auto write = dyn_cast<WriteOp>(op)) {
      ArrayRef<StringAttr> dims = write.getValue().getType().getDims();
      SmallVector<Attribute> over(dims.begin(), dims.end());
      ns += 2 * accessNs(write.getMap(), cast<MemRefType>(write.getBuffer().getType()), over, sink, points, lanes);
      if (Operation *stage = write.getValue().getDefiningOp(); stage && isa<MapOp>(stage))
        accesses(stage, sink, points, lanes, seen, ns);
      return;
    }
    for (Operation &inner : op->getRegion(0).front()) {
      if (auto read = dyn_cast<ReadOp>(inner))
        ns += accessNs(read.getMap(), cast<MemRefType>(read.getBuffer().getType()), getOver(op).getValue(), sink,
                       points, lanes);
      else if (auto use = dyn_cast<UseOp>(inner))
        if (Operation *stage = use.getValue().getDefiningOp(); stage && isa<MapOp>(stage))
          accesses(stage, sink, points, lanes, seen, ns);
    }
  }

  /// The stride of `map` along a dim of the kernel, in elements; -1: not known (large).
  int64_t strideAlong(AffineMap map, MemRefType type, ArrayRef<Attribute> over, unsigned dim) const {
    SmallVector<int64_t> strides = getStrides(type);
    int64_t total = 0;
    for (auto [position, name] : llvm::enumerate(over)) {
      FuncOp func = plan_.func;
      if (name != func.getDimName(dim))
        continue;
      for (auto [expr, stride] : llvm::zip(map.getResults(), strides))
        if (expr.isFunctionOfDim(position)) {
          if (stride < 0 || ShapedType::isDynamic(stride))
            return -1;
          total += stride;
        }
    }
    return total;
  }

  double accessNs(AffineMap map, MemRefType type, ArrayRef<Attribute> over, const Sink &sink, double points,
                  double lanes) {
    double bytes = type.getElementType().isIndex() ? 8 : std::max(1u, type.getElementTypeBitWidth() / 8);
    int inner = -1;
    for (unsigned dim : plan_.order)
      if (sink.dims >> dim & 1)
        inner = static_cast<int>(dim);
    double ns = 0;
    if (goesBy(sink, plan_.vecDim)) {
      int64_t step = strideAlong(map, type, over, plan_.vecDim);
      if (step != 0 && step != 1)
        ns += points * kLaneNs; // lane by lane
    }
    if (inner < 0)
      return ns;
    int64_t step = strideAlong(map, type, over, inner);
    double line = step == 0 ? 0 : step == 1 ? bytes / 64 : std::min(1.0, step < 0 ? 1.0 : step * bytes / 64);
    // A vector along another dim than the innermost reads whole vectors at each step.
    if (inner != plan_.vecDim && lanes > 1 && step != 0)
      line = std::max(bytes / 64, line / lanes);
    return ns + points * line * kLineNs;
  }

  const KernelPlan &plan_;
  const TuningSizes &sizes_;
  llvm::SmallPtrSet<Operation *, 8> stored_; // stages that an earlier sink computed and kept
};

} // namespace

/// Products or loads of a tile, what is around its slices of k, and copies of operands.
static double contractNs(const ContractPlan &c, const TuningSizes &sizes) {
  constexpr double kGhz = 3, kPackLhs = 0.6, kPackRhs = 0.5;
  auto product = [&](ArrayRef<unsigned> dims) {
    double n = 1;
    for (unsigned dim : dims)
      n *= static_cast<double>(std::max<int64_t>(1, sizes.dims[dim]));
    return n;
  };
  double m = product(c.m), n = product(c.n), inner = product(c.kInner), k = product(c.kOuter) * inner;
  double rows = static_cast<double>(c.rows), vectors = static_cast<double>(c.vectors);
  double columns = static_cast<double>(c.columns()), slice = c.blockK ? static_cast<double>(c.blockK) : k;
  double cycles =
      std::max({rows * vectors / 2, (rows + vectors) / 2 * 1.05, rows * vectors < 8 ? 2.0 : 0.0}) + 0.15 * vectors;
  double tiles = std::ceil(m / rows) * std::ceil(n / columns);
  double total = tiles * (k * cycles + std::ceil(k / slice) * (20 + 2 * rows + rows * vectors));
  if (c.lhs.block)
    total += kPackLhs * m * k * std::max(1.0, std::ceil(n / (columns * static_cast<double>(c.blockPanels))));
  if (c.rhs.block)
    total += kPackRhs * n * k * std::ceil(m / static_cast<double>(c.blockRows));
  return total * product(c.outer) / kGhz;
}

double estimateNs(const KernelPlan &plan, const TuningSizes &sizes) {
  return plan.contract ? contractNs(*plan.contract, sizes) : Model(plan, sizes).run();
}

} // namespace dlc::compiler
