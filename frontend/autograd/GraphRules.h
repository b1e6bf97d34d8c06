// Gradient rules over the values of a recorded graph: the same templates that serve eager tensors append nodes here.
// Sizes are those of the graph's values, so the rules are right for lifted graphs too.
#pragma once
#include "runtime/graph/Graph.h"

namespace dlc {

/// A value of the graph being extended, a number, or absent.
struct GradVal {
  GradVal() = default;
  explicit GradVal(GVal v) : id(v.id) {}
  GradVal(const Number &n) : number(n) {}
  int32_t id = -1;
  std::optional<Number> number;
};
bool isDefined(const GradVal &v);
TensorMeta metaOf(const GradVal &v);

/// Where rules of this thread append while in scope.
class GraphRuleScope {
public:
  /// A size that a rule uses as a number becomes a number operand of `graph`; its expression is appended to
  /// `sizeNumbers`. `higherOrder`: what is built shall be differentiable itself.
  GraphRuleScope(Graph &graph, std::vector<Dim> &sizeNumbers, bool higherOrder);
  ~GraphRuleScope();
  GraphRuleScope(const GraphRuleScope &) = delete;

  Graph &graph;
  std::vector<Dim> &sizeNumbers;
  bool higherOrder;
  uint32_t loc = 0; ///< the user's statement that new nodes belong to

private:
  GraphRuleScope *previous_;
};

/// Appends the gradient of a call. `args` and `results` are its values, `grads` the cotangents of the results (absent:
/// none), `wanted` says which flattened tensor operands want one; `out` has an entry for each.
void appendGradient(const OpInfo &op, Span<const Arg<GVal>> args, Span<const int32_t> results,
                    Span<const GradVal> grads, Span<const bool> wanted, std::vector<GradVal> &out);
/// Appends a call of `op`.
GradVal appendCall(const OpInfo &op, Span<const Arg<GradVal>> args);

} // namespace dlc
