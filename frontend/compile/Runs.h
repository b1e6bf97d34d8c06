// Repetition in a recorded graph: stretches of nodes that are one step of a loop again and again. Finding them is
// linear in the number of nodes and knows nothing of compiling.
#pragma once
#include "runtime/graph/Graph.h"
#include <cstdint>
#include <vector>

namespace dlc {

/// Where the values of a graph come from.
struct Producers {
  explicit Producers(const Graph &g);
  std::vector<int32_t> node;   ///< per value: its node, -1 for an input
  std::vector<uint8_t> result; ///< per value: which result
};

/// What happens to a node of a loop body outside of the compiled step.
enum class Hoisted : uint8_t {
  No,
  View,   ///< a view, whose index may differ in each step, of something from outside of the step
  Scatter ///< a write to a place that differs in each step of something from outside of the step
};

/// `steps` times `period` nodes from `start` on. A step's operands are values of the same step, at the same places in
/// each, or values from outside of the step: earlier steps, the program before the loop.
struct Run {
  size_t start, period, steps;
  std::vector<Hoisted> hoisted; ///< per position in the step
  bool dimsVary = false;        ///< some index or size argument of the other nodes differs between steps
  size_t end() const { return start + period * steps; }
};

/// Bodies that were rolled before: one step of them is enough to know them again.
struct KnownBodies {
  struct Body {
    size_t period;
    uint64_t hash;
    std::vector<Hoisted> hoisted;
  };
  std::vector<Body> bodies;
};

/// The loops worth rolling, in order. Adds them to `known`. Run::dimsVary only if `mayLift`.
std::vector<Run> findRuns(const Graph &g, const Producers &producers, KnownBodies &known, bool mayLift);

} // namespace dlc
