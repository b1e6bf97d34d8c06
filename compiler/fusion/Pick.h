// Sums over one-hot masks: sum over r of (index == r ? f(r) : 0) is f at the index, one element instead of a row.
#pragma once
#include "compiler/fusion/Group.h"

namespace dlc::compiler {

struct FusedGroup;

struct Pick {
  const Node *choice;      ///< the op that chooses between f and 0
  mlir::Value value;       ///< f, its operand
  const Node *comparison;  ///< of the index with the position
  const OperandUse *index; ///< the operand of `comparison` that does not vary along the summed dims
};

/// The pick that the reduction `n` of the group amounts to.
std::optional<Pick> findPick(const Graph &graph, const FusedGroup &group, const Node &n);

} // namespace dlc::compiler
