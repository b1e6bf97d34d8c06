// Values that wait long for their last users, and are cheap to compute again there: the memory they would hold through
// the peak is freed. In a training step these are activations that only the backward reads again.
#pragma once
#include "compiler/fusion/Fuse.h"

namespace dlc::compiler {

/// The unit attribute of ops that were copied to late users: they are not joined with others that read the same.
constexpr llvm::StringLiteral kLateAttr = "dlc.late";

/// Copies point ops to their late users where that lowers the peak of temporary memory by a tenth or more. True if
/// anything changed: then the graph and the groups are stale.
bool rematerialize(const Graph &graph, llvm::ArrayRef<FusedGroup> groups);

} // namespace dlc::compiler
