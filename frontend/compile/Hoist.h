// Products moved out of loops: many small ones become one large one before or after the loop.
#pragma once
#include "frontend/compile/Runs.h"
#include <optional>

namespace dlc {

/// A recording with some products of its loops moved. Values keep their numbers; new ones follow.
struct Hoisting {
  Graph graph;
  std::vector<Run> runs;
  std::vector<size_t> lists; ///< nodes that join values of many steps
  std::vector<size_t> alone; ///< the products: their sizes depend on the number of steps, those of others do not
};

/// Moves, out of the loops in `runs`:
/// - the product of something that the loop walks along (`x[t]`) with a matrix that no step changes: the rows of all
///   steps are joined and multiplied before the loop, and a step reads its rows of the result;
/// - the same where the steps make the rows and none of them reads the product: after the loop;
/// - a sum over the steps of products (the gradient of a weight): after the loop, as one product with the steps along
///   its inner dimension.
/// A row of a product follows from a row of its left operand alone, and a sum of products is the product of what is
/// joined, so the results are the same up to the order in which a product adds.
/// Nothing if there is no such product worth moving. A single step of a body in `known` is treated as more were.
std::optional<Hoisting> hoistProducts(const Graph &g, const Producers &producers, const std::vector<Run> &runs,
                                      KnownBodies &known);

} // namespace dlc
