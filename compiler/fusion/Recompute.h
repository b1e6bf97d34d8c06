// Values that are cheaper to compute again than to write and read back.
#pragma once
#include "compiler/fusion/Fuse.h"

namespace dlc::compiler {

/// The unit attribute of ops that were copied to their users: they join those, not the group of their operands.
constexpr llvm::StringLiteral kRecomputeAttr = "dlc.recompute";

/// Copies cheap point ops whose value one group would write only for other groups to read. True if anything changed:
/// then the graph and the groups are stale.
bool recomputeCheapValues(const Graph &graph, llvm::ArrayRef<FusedGroup> groups);

} // namespace dlc::compiler
