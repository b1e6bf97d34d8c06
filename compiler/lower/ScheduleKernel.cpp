// Phase `scheduled`: completes schedules by a static rule. The vectorised dim is the one along which most accesses are
// neighbours in memory, as far inside as the reductions allow; everything follows from it.
#include "compiler/lower/ContractPlan.h"
#include "runtime/core/Knobs.h"
#include "compiler/lower/KernelPlan.h"
#include "compiler/lower/Passes.h"
#include "compiler/lower/Schedule.h"

#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

namespace {

/// Whether a primitive on this type is a call of the C library for each element.
bool callsLibrary(PrimOp op) {
  StringRef name = op.getName();
  if (llvm::StringSwitch<bool>(name)
          .Cases("pow", "fmod", "remainder", "floor_div", "lgamma", "tgamma", "cbrt", "hypot", true)
          .Cases("nextafter", "atan2", "asinh", "acosh", "atanh", "erfc", true)
          .Default(false))
    return op.getNumOperands() && isa<FloatType>(op.getOperand(0).getType());
  bool isF64 = op.getNumOperands() && op.getOperand(0).getType().isF64();
  return isF64 && llvm::StringSwitch<bool>(name)
                      .Cases("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", true)
                      .Cases("asin", "acos", "atan", "sinh", "cosh", "tanh", "erf", "sigmoid", "silu", true)
                      .Cases("gelu_erf", "gelu_tanh", "elu", "selu", "celu", "softplus", "mish", "log_sigmoid", true)
                      .Case("tanhshrink", true)
                      .Default(false);
}

constexpr int kFullWeight = 16;

class Scheduler {
public:
  Scheduler(FuncOp func, unsigned vectorBits) : func_(func), vectorBits_(vectorBits), deps_(computeDeps(func)) {}
  ScheduleAttr run();

private:
  int chooseVecDim();
  int scoreAccess(AffineMap map, MemRefType type, ArrayRef<Attribute> over, unsigned dim);
  int scoreDim(unsigned dim);
  int findTransposed(unsigned vecDim);
  unsigned chooseWidth(unsigned dim);
  unsigned chooseUnroll(unsigned dim, ArrayRef<unsigned> order);
  SmallVector<unsigned> choosePar(ArrayRef<unsigned> order, int vecDim);
  ArrayAttr names(ArrayRef<unsigned> dims);

  FuncOp func_;
  unsigned vectorBits_;
  llvm::DenseMap<Value, DimSet> deps_;
};

} // namespace

ArrayAttr Scheduler::names(ArrayRef<unsigned> dims) {
  SmallVector<Attribute> list;
  for (unsigned dim : dims)
    list.push_back(func_.getDimName(dim));
  return ArrayAttr::get(func_.getContext(), list);
}

// +2 for neighbours, -2 for lanes apart, 0 if the access does not go along `dim`.
int Scheduler::scoreAccess(AffineMap map, MemRefType type, ArrayRef<Attribute> over, unsigned dim) {
  int position = -1;
  for (auto [i, name] : llvm::enumerate(over))
    if (name == func_.getDimName(dim))
      position = static_cast<int>(i);
  if (position < 0 || !map.isFunctionOfDim(position))
    return 0;
  SmallVector<int64_t> strides = getStrides(type);
  AffineExpr alone = getAffineDimExpr(position, func_.getContext());
  bool neighbours = false;
  for (auto [expr, stride] : llvm::zip(map.getResults(), strides)) {
    if (!expr.isFunctionOfDim(position))
      continue;
    auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
    bool plain = expr == alone ||
                 (sum && sum.getKind() == AffineExprKind::Add && (sum.getLHS() == alone) != (sum.getRHS() == alone));
    neighbours = plain && stride == 1;
    if (!neighbours)
      return -2;
  }
  return neighbours ? 2 : 0;
}

// An access at every point of the domain outweighs those along some of its dims only: the statistics of a batch norm
// have many values a channel, but they are few.
int Scheduler::scoreDim(unsigned dim) {
  size_t widest = 0;
  for (Operation &op : func_.getBlock())
    if (isStage(&op))
      widest = std::max(widest, getOver(&op).size());
  auto weight = [&](size_t dims) { return dims >= widest ? kFullWeight : 1; };
  int score = 0;
  bool cannot = false;
  func_.walk([&](Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      ArrayRef<Attribute> over = getOver(op->getParentOp()).getValue();
      int own = scoreAccess(read.getMap(), cast<MemRefType>(read.getBuffer().getType()), over, dim);
      for (Value sym : read.getSyms())
        own -= deps_.lookup(sym) >> dim & 1 ? 2 : 0;
      score += weight(over.size()) * own;
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      ArrayRef<StringAttr> dims = write.getValue().getType().getDims();
      SmallVector<Attribute> over(dims.begin(), dims.end());
      // Scattering lanes costs more than gathering them.
      int own = 2 * scoreAccess(write.getMap(), cast<MemRefType>(write.getBuffer().getType()), over, dim);
      score += weight(over.size()) * own;
      bool goesAlong = llvm::is_contained(dims, func_.getDimName(dim));
      cannot |= goesAlong && !isParallelDim(func_, op, dim);
    }
  });
  if (func_.isStaticDim(dim) && func_.getDimSizes()[dim] < 4)
    score -= 100 * kFullWeight;
  return cannot ? -1000 * kFullWeight : score;
}

// A map that reads across: lanes apart along the vectorised dim, neighbours along another one. That one goes inside the
// vectorised loop, so that the cache lines of a gather serve the next ones (a transposition: 0.3 instead of 4 ns an
// element).
int Scheduler::findTransposed(unsigned vecDim) {
  if (!func_.getOps<ReduceOp>().empty())
    return -1;
  int found = -1;
  func_.walk([&](ReadOp read) {
    auto type = cast<MemRefType>(read.getBuffer().getType());
    ArrayRef<Attribute> over = getOver(read->getParentOp()).getValue();
    if (scoreAccess(read.getMap(), type, over, vecDim) >= 0)
      return;
    for (unsigned dim = 0; dim < func_.getNumDims(); ++dim)
      if (dim != vecDim && scoreAccess(read.getMap(), type, over, dim) > 0)
        found = static_cast<int>(dim);
  });
  return found;
}

int Scheduler::chooseVecDim() {
  int best = -1, bestScore = -50 * kFullWeight;
  for (unsigned dim = 0; dim < func_.getNumDims(); ++dim) {
    SmallVector<unsigned> order = findOrder(func_, dim);
    if (order.empty())
      continue;
    int score = 2 * scoreDim(dim) + (order.back() == dim); // as far inside as possible among equals
    if (score >= bestScore) {
      best = static_cast<int>(dim);
      bestScore = score;
    }
  }
  return best;
}

unsigned Scheduler::chooseWidth(unsigned dim) {
  unsigned bits = 8;
  bool callsPerLane = false;
  func_.walk([&](Operation *op) {
    if (auto prim = dyn_cast<PrimOp>(op))
      callsPerLane |= callsLibrary(prim);
    auto consider = [&](Type type) {
      if (isa<FloatType>(type))
        bits = std::max(bits, std::max(32u, type.getIntOrFloatBitWidth())); // f16 and bf16 compute in f32
      else if (!type.isIndex() && (isa<ReadOp, WriteOp>(op) || !type.isInteger(64)))
        bits = std::max(bits, type.getIntOrFloatBitWidth()); // i64 that is not in memory is index arithmetic: no matter
    };
    if (isa<ReadOp, PrimOp>(op) || (op->getDialect() && op->getDialect()->getNamespace() == "arith")) {
      for (Value result : op->getResults())
        if (deps_.lookup(result) >> dim & 1)
          consider(result.getType());
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      consider(write.getValue().getType().getElementType());
    }
  });
  return callsPerLane ? 1 : std::max(4u, vectorBits_ / bits);
}

unsigned Scheduler::chooseUnroll(unsigned dim, ArrayRef<unsigned> order) {
  bool reducesBy = false, keeps = false;
  for (auto reduce : func_.getOps<ReduceOp>()) {
    DimSet by = toSet(func_, reduce.getBy()), over = toSet(func_, reduce.getOver());
    reducesBy |= by >> dim & 1;
    keeps |= (over & ~by) >> dim & 1;
  }
  if (reducesBy)
    return 4;
  return keeps && order.back() != dim ? 8 : 2;
}

SmallVector<unsigned> Scheduler::choosePar(ArrayRef<unsigned> order, int vecDim) {
  SmallVector<unsigned> par;
  for (unsigned dim : order) {
    for (Operation &op : func_.getBlock())
      if (isa<ReduceOp, WriteOp>(op) && !isParallelDim(func_, &op, dim))
        return par;
    // A vectorised dim with loops inside is split only if nothing else can be.
    bool insideLoops = order.back() != dim && static_cast<int>(dim) == vecDim;
    if (insideLoops && !par.empty())
      return par;
    par.push_back(dim);
    if (static_cast<int>(dim) == vecDim)
      return par;
  }
  return par;
}

ScheduleAttr Scheduler::run() {
  ScheduleAttr given = func_.getScheduleAttr();
  Builder b(func_.getContext());
  NamedAttrList fields(given ? given.getFields() : b.getDictionaryAttr({}));
  int vecDim = given && !given.getVecDim().empty() ? func_.getDimIndex(given.getVecDim()) : chooseVecDim();
  SmallVector<unsigned> order;
  if (fields.get("order"))
    for (StringRef name : given.getOrder())
      order.push_back(func_.getDimIndex(name));
  else
    order = findOrder(func_, vecDim);
  int across = vecDim >= 0 && !fields.get("order") ? findTransposed(vecDim) : -1;
  if (across >= 0) {
    llvm::erase(order, static_cast<unsigned>(across));
    order.push_back(across);
  }
  if (order.size() != func_.getNumDims()) {
    func_.emitOpError("needs a loop order in which the dims that a reduction keeps come before those it reduces");
    return {};
  }
  if (!fields.get("order"))
    fields.append("order", names(order));
  if (!fields.get("vec") && vecDim >= 0)
    fields.append(
        "vec", b.getDictionaryAttr(b.getNamedAttr(func_.getDimName(vecDim), b.getI64IntegerAttr(chooseWidth(vecDim)))));
  if (!fields.get("unroll") && vecDim >= 0)
    fields.append("unroll", b.getI64IntegerAttr(across < 0 ? chooseUnroll(vecDim, order) : 1));
  if (!fields.get("tail"))
    fields.append("tail", b.getStringAttr("auto"));
  if (!fields.get("par"))
    fields.append("par", names(choosePar(order, vecDim)));
  return ScheduleAttr::get(func_.getContext(), fields.getDictionary(func_.getContext()));
}

static bool isNarrow() { return knobs().gemmIsa == "avx2"; }

unsigned hostVectorBits() {
  static const unsigned bits = llvm::sys::getHostCPUFeatures().lookup("avx512bf16") && !isNarrow() ? 512 : 256;
  return bits;
}

bool hostScales() {
  static const bool has = llvm::sys::getHostCPUFeatures().lookup("avx512f") && !isNarrow();
  return has;
}

ScheduleAttr completeSchedule(FuncOp func, unsigned vectorBits) {
  if (!func.getOps<ContractOp>().empty())
    return completeContractSchedule(func, vectorBits);
  return Scheduler(func, vectorBits).run();
}

namespace {

struct KernelSchedulePass : PassWrapper<KernelSchedulePass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KernelSchedulePass)
  KernelSchedulePass() = default;
  KernelSchedulePass(const KernelSchedulePass &other) : PassWrapper(other) {}
  Option<unsigned> vectorBits{*this, "vector-bits", llvm::cl::desc("Register width to plan for; 0: this machine's"),
                              llvm::cl::init(0)};
  StringRef getArgument() const override { return "kernel-schedule"; }
  StringRef getDescription() const override { return "Complete the schedules of kernels by a static cost rule"; }
  void runOnOperation() override {
    getOperation()->walk([&](FuncOp func) {
      if (ScheduleAttr schedule = completeSchedule(func, vectorBits ? vectorBits : hostVectorBits()))
        func.setScheduleAttr(schedule);
      else
        signalPassFailure();
    });
  }
};

} // namespace

std::unique_ptr<Pass> createKernelSchedulePass() { return std::make_unique<KernelSchedulePass>(); }

} // namespace dlc::compiler
