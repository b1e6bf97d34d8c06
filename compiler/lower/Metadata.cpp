// Derives KernelInfo from a plan.
#include "compiler/lower/ContractPlan.h"
#include "compiler/lower/Metadata.h"
#include "compiler/lower/PlanStorage.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

static SizeRef sizeOf(FuncOp func, unsigned dim) {
  if (func.isStaticDim(dim))
    return {-1, func.getDimSizes()[dim]};
  return {static_cast<int32_t>(func.getIntIndex(func.getSizeArg(dim).getArgNumber())), 0};
}

// Calibrated roughly on softmax, layer_norm, gelu and column sums of f32: within a factor of two of what they take.
static double estimateNs(const KernelPlan &plan) {
  double ops = 0, bytes = 0;
  for (const Sink &sink : plan.sinks)
    ops += estimateSinkCost(plan, sink);
  FuncOp func = plan.func;
  func.walk([&](Operation *op) {
    if (isa<ReadOp, WriteOp>(op))
      bytes += 4;
  });
  double lanes = std::max(1u, plan.width);
  return ops * 0.12 / lanes + bytes * 0.01;
}

// Any split of the points of the sums will do: a piece takes the tiles that start in it. A constant number of products
// a sum is part of the time of a point; otherwise the products are the points.
static void describeContract(const KernelPlan &plan, KernelInfo &info) {
  FuncOp func = plan.func;
  ContractPlan &c = *plan.contract;
  double ns = 0.25 / (c.width * 2.0) / std::min(1.0, c.rows * c.vectors / 8.0);
  SmallVector<unsigned> k(c.kOuter);
  k.push_back(c.kInner);
  int64_t products = staticProduct(func, k);
  double epilogue = estimateNs(plan);
  info.rangeMultiple = 1;
  info.nsPerPoint = products < 0 ? ns : ns * static_cast<double>(products) + epilogue;
  if (products < 0)
    return;
  info.domainDims.clear();
  for (unsigned dim : plan.order)
    info.domainDims.push_back(sizeOf(func, dim));
}

static void describeWork(const KernelPlan &plan, KernelInfo &info) {
  FuncOp func = plan.func;
  for (Operation &op : func.getBody().front()) {
    if (!isStage(&op))
      continue;
    KernelInfo::Work work;
    DimSet over = toSet(func, getOver(&op));
    for (unsigned dim = 0; dim < func.getNumDims(); ++dim)
      if (over >> dim & 1)
        work.dims.push_back(sizeOf(func, dim));
    work.flops = countFlops(&op);
    info.work.push_back(std::move(work));
  }
}

KernelInfo describeKernel(const KernelPlan &plan) {
  FuncOp func = plan.func;
  KernelInfo info;
  info.name = func.getSymName().str();
  info.numInts = func.getNumInts();
  for (BlockArgument arg : func.getBody().getArguments())
    info.numBufs += isa<MemRefType>(arg.getType());
  for (unsigned dim : plan.par)
    info.parallelDims.push_back(sizeOf(func, dim));
  for (unsigned dim = 0; dim < func.getNumDims(); ++dim)
    info.domainDims.push_back(sizeOf(func, dim));
  if (plan.par.size() == 1 && static_cast<int>(plan.par.back()) == plan.vecDim)
    info.rangeMultiple = std::max<int64_t>(1, plan.width);
  info.nsPerPoint = estimateNs(plan);
  if (plan.contract)
    describeContract(plan, info);
  describeWork(plan, info);
  for (const Sink &sink : plan.sinks) {
    auto write = dyn_cast<WriteOp>(sink.op);
    if (!write)
      continue;
    unsigned out = func.getBufIndex(cast<BlockArgument>(write.getBuffer()).getArgNumber());
    info.outputs.push_back(out);
    for (BlockArgument arg : func.getBody().getArguments().drop_back())
      if (isa<MemRefType>(arg.getType()) && !llvm::is_contained(func.getOuts(), arg.getArgNumber()) &&
          mayShare(plan, arg, write))
        info.mayShare.emplace_back(func.getBufIndex(arg.getArgNumber()), out);
  }
  return info;
}

} // namespace dlc::compiler
