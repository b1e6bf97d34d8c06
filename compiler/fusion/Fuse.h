// Grouping: which ops become one kernel.
#pragma once
#include "compiler/fusion/Group.h"

namespace dlc::compiler {

struct FusionOptions {
  bool fuse = true;  ///< false: one kernel an op
  int64_t fuel = -1; ///< merges allowed; -1: any number
};

struct FusedGroup {
  std::vector<uint32_t> members; ///< ascending
  GroupShape shape;
};

/// Groups of all point and reduce nodes.
std::vector<FusedGroup> findGroups(const Graph &graph, const FusionOptions &options);

} // namespace dlc::compiler
