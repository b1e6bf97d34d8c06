// A graph as bytes: all that its compiled form depends on, and nothing else.
#pragma once
#include "runtime/graph/Graph.h"

namespace dlc {

/// Equal bytes: the same program with the same sizes, expressions and hints of symbols. The values of number operands
/// and the user's lines are not part of it.
std::string graphBytes(const Graph &g);

} // namespace dlc
