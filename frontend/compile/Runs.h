// Repetition in a recorded graph: stretches of nodes that are one step of a loop again and again. Finding them is
// linear in the number of nodes and knows nothing of compiling.
#pragma once
#include "runtime/graph/Graph.h"
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dlc {

/// Where the values of a graph come from, and what its nodes read: the arguments themselves lie all over the memory.
struct Producers {
  explicit Producers(const Graph &g);
  std::vector<int32_t> node;   ///< per value: its node, -1 for an input
  std::vector<uint8_t> result; ///< per value: which result
  std::vector<int32_t> type;   ///< per value: a value of the same dtype and sizes, the same for all of them
  std::vector<uint64_t> typeHash;
  std::vector<GVal> operands;
  std::vector<uint32_t> first; ///< per node: its first operand; one more at the end
  std::vector<OpKind> kind;    ///< per node
  Span<const GVal> of(size_t n) const { return {operands.data() + first[n], first[n + 1] - first[n]}; }
};

/// Asks for the arguments of a node some nodes ahead of `n`, where a pass over all nodes will be soon.
inline void prefetchArgs(const Graph &g, size_t n) {
  constexpr size_t kAhead = 6;
  if (n + kAhead >= g.nodes.size())
    return;
  const char *block = reinterpret_cast<const char *>(g.nodes[n + kAhead].args.args().data());
  for (size_t line = 0; line < 5; ++line)
    __builtin_prefetch(block + 64 * line);
}

/// What happens to a node of a loop body outside of the compiled step.
enum class Hoisted : uint8_t {
  No,
  View,   ///< a view, whose index may differ in each step, of something from outside of the step
  Scatter ///< a write to a place that differs in each step of something from outside of the step
};

/// `steps` times `period` nodes from `start` on. A step's operands are values of the same step, at the same places in
/// each, or values from outside of the step: earlier steps, the program before the loop.
struct Run {
  size_t start = 0, period = 0, steps = 0;
  std::vector<Hoisted> hoisted; ///< per position in the step
  bool pointwise = false;       ///< nothing but elementwise ops and views
  bool dimsVary = false;        ///< some index or size argument of the other nodes differs between steps
  uint64_t hash = 0;            ///< of the body, as in KnownBodies
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
  /// By the hash of a body: what hoistProducts() made of its nodes when it last had more than one step.
  std::unordered_map<uint64_t, std::vector<uint8_t>> moves;
};

/// The loops worth rolling, in order. Adds them to `known`. Run::dimsVary only if `mayLift`.
std::vector<Run> findRuns(const Graph &g, const Producers &producers, KnownBodies &known, bool mayLift);

} // namespace dlc
