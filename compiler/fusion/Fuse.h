// Grouping: which ops become one kernel.
#pragma once
#include "compiler/fusion/Group.h"
#include "dialects/kernel/KernelDialect.h"

namespace dlc::compiler {

struct FusionOptions {
  bool fuse = true;  ///< false: one kernel an op
  int64_t fuel = -1; ///< merges allowed; -1: any number
  /// Products as kernels: -1 where that is expected to be faster than the library, 0 never, 1 wherever possible.
  int64_t contract = 0;
  unsigned vectorBits = 256; ///< of the processor: packed operands are made for it
  /// Whether the target has code for a kernel; null: for all.
  bool (*lowers)(ir::kernel::FuncOp) = nullptr;
};

/// An operand of a contraction that was packed before: panels of `columns` columns, [panels][k][columns], zeros at the
/// end.
struct PackedOperand {
  mlir::Value value; ///< null: the operand is read as it is
  unsigned use = 1;
  int64_t columns = 0;
};

struct FusedGroup {
  std::vector<uint32_t> members; ///< ascending
  GroupShape shape;
  PackedOperand packed;
};

/// Groups of all point, reduce and contract nodes.
std::vector<FusedGroup> findGroups(const Graph &graph, const FusionOptions &options);

} // namespace dlc::compiler
