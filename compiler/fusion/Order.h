// The order in which groups and single ops run: that of the program, except that what frees memory goes first.
#pragma once
#include "compiler/fusion/Fuse.h"

namespace dlc::compiler {

/// A group or a single op in the order of running.
struct OrderedUnit {
  int64_t group = -1; ///< index of the group, or -1
  uint32_t node = 0;  ///< the op, if it has no group
};

/// A topological order of all groups and of all ops outside of groups. Throws if the groups form a cycle.
std::vector<OrderedUnit> orderOf(const Graph &graph, llvm::ArrayRef<FusedGroup> groups);

} // namespace dlc::compiler
