// What the lowering decides about a kernel with a contraction: the roles of its dims, how the tile reads each operand,
// and the sizes of tile and blocks. See kernel.contract in dialects/kernel/KernelOps.td and EmitContract.cpp.
#ifndef DLC_COMPILER_LOWER_CONTRACTPLAN_H
#define DLC_COMPILER_LOWER_CONTRACTPLAN_H

#include "compiler/lower/KernelPlan.h"

namespace dlc::compiler {

/// One operand of the products.
struct ContractOperand {
  mlir::Value yield;        ///< the scalar that is multiplied
  ir::kernel::ReadOp read;  ///< set if the tile may read it in place: `yield` is this read, perhaps converted
  bool comesPacked = false; ///< rhs: its map has the columns in panels
  bool byColumns = false;   ///< lhs: neighbours in memory along the rows, not along k
  bool transposes = false;  ///< neighbours in memory along k, and copied with the columns (rows) side by side
  bool block = false;       ///< copied block by block before the tile reads it
};

/// How one contraction is run. A tile is `rows` x `vectors * width` sums; rows count the points of `m`, flattened.
/// The sum of every point is made with k ascending (as nested loops over kOuter, kInner), in `sets` interleaved partial
/// sums that are added at the end of each slice of k; so it does not depend on threads or on the tile's place.
struct ContractPlan {
  ir::kernel::ContractOp op;
  ContractOperand lhs, rhs; ///< perhaps the op's, exchanged
  mlir::SmallVector<unsigned> outer, m, kOuter;
  unsigned n = 0, kInner = 0; ///< the vectorised dim; the dim of the innermost loop
  unsigned width = 1;         ///< lanes of a vector
  int64_t rows = 1, vectors = 1, unroll = 4, sets = 1;
  int64_t blockRows = 0;    ///< rows of a task
  int64_t blockPanels = 1;  ///< panels that share a packed block of rows
  int64_t blockK = 0;       ///< of kInner; 0: all of it
  int64_t packK = 1;        ///< rows of a packed block of rhs
  bool slicesOuter = false; ///< the loops over kOuter are slices around the rows, not inside of the tile
  bool shiftsRows = false;  ///< the last rows' tile begins early instead of going past the end (rows in place)
  enum Prefetch { None, Stream, Panel, Rows, Lines } prefetch = None; ///< see choosePrefetch
  int64_t prefetches = 0; ///< lines, or rows of k, of the next panel that a trip of the loop over k asks for
  bool direct = false;    ///< whole tiles go from registers into the epilogue, not through memory
  static constexpr int64_t kAllRows = int64_t(1) << 30; ///< blockRows where nothing depends on it
  int64_t columns() const { return vectors * width; }
  /// Whether partial sums are kept in memory between slices of k.
  bool sliced() const { return blockK != 0 || slicesOuter; }
};

/// What is known of a contraction before a schedule is chosen.
struct ContractRoles {
  ir::kernel::ContractOp op;
  ContractOperand lhs, rhs;
  mlir::SmallVector<unsigned> outer, m, kOuter;
  unsigned n = 0, kInner = 0;
  int64_t packedColumns = 0;    ///< columns of a panel if rhs comes packed
  bool rhsIsContiguous = false; ///< rows of rhs are neighbours along n
  int64_t lhsStep = 0;          ///< elements from one k to the next; ShapedType::kDynamic
};

/// Finds the roles; fails with `why` set if the CPU lowering has no code for this kernel.
mlir::FailureOr<ContractRoles> findRoles(ir::kernel::FuncOp func, std::string &why);

/// Returns whether a kernel with a contraction can be lowered.
bool canContract(ir::kernel::FuncOp func);

/// Fills `plan` from a complete schedule; reports an error on the kernel if it can't be lowered.
mlir::LogicalResult planContract(KernelPlan &plan);

/// Decides, once the plan has its sinks, how the tiles get into the epilogue.
void chooseEpilogue(KernelPlan &plan);

/// Returns `func`'s schedule completed (see completeSchedule).
ir::kernel::ScheduleAttr completeContractSchedule(ir::kernel::FuncOp func, unsigned vectorBits);

/// Returns the columns of a tile for `func`, whose rhs is not packed yet: the panels to pack a constant rhs in. 0 if
/// the kernel can't be lowered.
int64_t chooseColumns(ir::kernel::FuncOp func, unsigned vectorBits);

/// Returns the product of the sizes of `dims`, or -1 if one is not a constant.
int64_t staticProduct(ir::kernel::FuncOp func, mlir::ArrayRef<unsigned> dims);

/// Elements of memory from one index of domain dim `dim` to the next in a linear read; ShapedType::kDynamic if unknown.
int64_t staticStep(ir::kernel::FuncOp func, ir::kernel::ReadOp read, unsigned dim);

} // namespace dlc::compiler

#endif
