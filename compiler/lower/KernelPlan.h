// What the lowering decides about one kernel.func before it emits code: which stages drive loops, the loop tree, and
// where values live that several loops need. Read by the CPU emitter and by the kernel's metadata; assumes a verified
// kernel with a complete schedule (kernel-schedule).
#ifndef DLC_COMPILER_LOWER_KERNELPLAN_H
#define DLC_COMPILER_LOWER_KERNELPLAN_H

#include "dialects/kernel/KernelDialect.h"

#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace dlc::compiler {

/// A set of dims of the domain, one bit each.
using DimSet = uint64_t;

/// An op that drives loops: a reduce or a write. Maps are evaluated where they are used.
struct Sink {
  mlir::Operation *op = nullptr;
  DimSet dims = 0;                  ///< what it iterates over
  DimSet by = 0;                    ///< reduced dims (reduce only)
  llvm::SmallVector<unsigned> deps; ///< reduces whose result it needs, directly or not (sink numbers)
};

struct ContractPlan;
struct LoopNode;

/// Either a sink at the current point, or a loop.
struct LoopItem {
  int sink = -1;
  std::unique_ptr<LoopNode> loop;
};

/// Scalars of regions that are the same computation; the first stands for all.
using Cut = llvm::SmallVector<mlir::Value, 2>;

/// One loop over a dim. `carried` are the reduces whose accumulators pass through it.
struct LoopNode {
  unsigned dim = 0;
  unsigned id = 0;
  unsigned copies = 1; ///< vectors a trip, if it is the vectorised loop
  bool single = false; ///< one body for full and partial vectors
  unsigned tile = 0;   ///< points of a tile over which each of `cuts` is computed in a loop of its own; 0: none
  std::vector<Cut> cuts;
  llvm::SmallVector<LoopItem, 2> items;
  llvm::SmallVector<unsigned> sinks; ///< all sinks inside
  llvm::SmallVector<unsigned> carried;
};

/// A map stage's value kept in memory between loops.
struct Stash {
  mlir::Value stage;       ///< the value
  unsigned storeLoop = 0;  ///< innermost loop that computes and stores it
  ir::kernel::WriteOp out; ///< kept at the place of this write
};

/// The complete plan of one kernel.
struct KernelPlan {
  ir::kernel::FuncOp func;
  llvm::SmallVector<unsigned> order;
  llvm::SmallVector<unsigned> par; ///< leading dims of `order` that are split over threads
  int vecDim = -1;
  unsigned width = 1;
  llvm::SmallVector<unsigned> copiesOf; ///< for each sink, the copies of its vectorised loop
  llvm::SmallVector<Sink> sinks;
  llvm::SmallVector<LoopItem, 2> top;
  llvm::SmallVector<Stash> stashes;
  unsigned numLoops = 0;
  std::shared_ptr<ContractPlan> contract;   ///< of a kernel that contracts; it has no loop tree
  llvm::DenseMap<mlir::Value, DimSet> deps; ///< dims that a stage's value or a scalar of a region varies with

  /// Returns the number of `reduce` among the sinks.
  unsigned sinkOf(mlir::Operation *op) const;
  /// Returns whether `value` differs along the vectorised dim.
  /// Returns whether loop `loop` finds a stage's value in memory.
  bool isLoaded(mlir::Value stage, unsigned loop) const;
  bool variesByLane(mlir::Value value) const { return vecDim >= 0 && (deps.lookup(value) >> vecDim & 1); }
};

/// Returns the dims named by `names` as a set.
DimSet toSet(ir::kernel::FuncOp func, mlir::ArrayAttr names);

/// Computes for each value of the kernel which dims it varies with.
llvm::DenseMap<mlir::Value, DimSet> computeDeps(ir::kernel::FuncOp func);

/// Returns whether the points of `dim` may be computed in any order by several threads as far as `op` (a reduce or a
/// write) is concerned.
bool isParallelDim(ir::kernel::FuncOp func, mlir::Operation *op, unsigned dim);

/// Returns a loop order in which every reduce has its kept dims before its `by` dims, as near as possible to the
/// domain's order with `last` at the end; empty if there is none.
llvm::SmallVector<unsigned> findOrder(ir::kernel::FuncOp func, int last);

/// Estimated operations of a stage's region for one point: an arith op counts 1, a transcendental about 20.
unsigned estimateCost(mlir::Operation *stage);

/// Floating-point operations of a stage at one point of its dims: an addition counts 1, a transcendental about 20, what
/// joins the points of a reduction too.
unsigned countFlops(mlir::Operation *stage);

/// The same for a sink with all maps that it evaluates, without what is computed outside its innermost loop. Values
/// that loop `loop` finds in memory cost a load.
unsigned estimateSinkCost(const KernelPlan &plan, const Sink &sink, unsigned loop = ~0u);

/// The long scalar functions that the sinks of `node` evaluate along its lanes, in the order of evaluation.
std::vector<Cut> findCuts(const KernelPlan &plan, const LoopNode &node);

/// Calls `visit` for every read that computing `value` evaluates, through maps but not through sums.
void forEachRead(mlir::Value value, llvm::function_ref<void(ir::kernel::ReadOp)> visit);

/// Makes the plan; on failure emits an error on the kernel that says what can't be lowered.
mlir::FailureOr<KernelPlan> planKernel(ir::kernel::FuncOp func);

/// The same without diagnostics: whether a kernel can be lowered. Producers ask before they merge.
bool isLowerable(ir::kernel::FuncOp func);

} // namespace dlc::compiler

#endif
