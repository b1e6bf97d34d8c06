// A recorded forward graph together with its backward program, built by the gradient rules from the log of the tape.
#pragma once
#include "frontend/trace/GradLog.h"
#include "runtime/graph/Graph.h"

namespace dlc {

/// Forward and backward in one graph: the backward's nodes follow the forward's and use its values.
struct Joint {
  Graph graph;                     ///< inputs and outputs are the forward's; number operands: `sizeNumbers` come last
  size_t forwardNodes = 0;         ///< nodes[0, forwardNodes) are the forward
  std::vector<int32_t> cotangents; ///< value of the cotangent of each root (not a graph input)
  std::vector<int32_t> gradients;  ///< per target: the value of its gradient, -1: none flows there
  std::vector<Dim> sizeNumbers;    ///< sizes that the backward uses as numbers
  std::string name;                ///< of the tape's node of the first root, as eager shows it
};

/// What a gradient is taken of, and for what.
struct JointRequest {
  std::vector<int32_t> roots;   ///< values with a cotangent
  std::vector<int32_t> targets; ///< values whose gradient is wanted (graph inputs)
  bool higherOrder = false;     ///< the backward shall be differentiable itself
};

/// Throws NotImplemented where an op on the way has no gradient.
Joint differentiate(const Graph &forward, const trace::GradLog &log, const JointRequest &request);

/// Per value of the graph: whether a gradient flows through it to an input with an edge.
std::vector<bool> activeValues(const Graph &forward, const trace::GradLog &log, Span<const int32_t> targets);

/// For a graph without a log: everything with a gradient is differentiable, and `inputs` have an edge.
trace::GradLog wholeLog(const Graph &graph, Span<const int32_t> inputs);

/// The name eager gives to the node of `op`.
std::string gradNodeName(const OpInfo &op);

} // namespace dlc
