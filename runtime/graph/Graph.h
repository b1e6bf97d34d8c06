// The recorded program: values, nodes, numbers. Functional and free of MLIR; what capture makes, the cache compares,
// the interpreter runs and the importer translates.
#pragma once
#include "runtime/op/OpInfo.h"
#include <string>
#include <vector>

namespace dlc {

/// A value of a graph, as an argument of a node; -1 is an absent entry of a list.
struct GVal {
  int32_t id = -1;
};

/// One op. `results` are the op's results followed by one new value per mutated tensor argument (in argument order).
/// In the graph `as_strided` and `as_strided_scatter` index the row-major flattening of their first operand, a
/// number given where a tensor is expected (kind TN) is an argument of tag Num, and a random op's generator is an
/// argument of tag Rng whose `num` is the number operand of the seed, `dim` that of the offset (see rngOperand).
struct GraphNode {
  const OpInfo *op = nullptr;
  OwnedArgs<GVal> args;
  SmallVec<int32_t, 3> results;
  uint32_t loc = 0; ///< the user's statement, see locText()
};

struct GraphOutput {
  int32_t value = -1;
  Dims strides;           ///< the layout the result must have (dense)
  int32_t writeBack = -1; ///< index of the input whose memory receives the value, or -1 for a fresh tensor
};

/// Numbers come in two kinds. *Number operands* (`numbers`) are passed at every run: a Number argument of a node with
/// ref() != null stands for operand numberIndex(n). *Symbols* are lifted sizes: Dims of arguments and of values are
/// expressions over them. In a recording as it was made everything is concrete except the number operands.
struct Graph {
  std::vector<TensorMeta> values;
  std::vector<int32_t> inputs; ///< value of each input
  std::vector<GraphNode> nodes;
  std::vector<GraphOutput> outputs;
  std::vector<Number> numbers;  ///< category and hint of each number operand
  std::vector<int64_t> symbols; ///< hint of each symbol

  /// Empties the graph and keeps its memory.
  void clear() {
    values.clear();
    inputs.clear();
    nodes.clear();
    outputs.clear();
    numbers.clear();
    symbols.clear();
  }
  int32_t addValue(TensorMeta meta) {
    values.push_back(std::move(meta));
    return static_cast<int32_t>(values.size()) - 1;
  }
  /// A Number argument that stands for a new operand with this hint.
  Number addNumber(Number hint) {
    numbers.push_back(hint);
    return Number::symbolic(hint, reinterpret_cast<const void *>(numbers.size()));
  }
};

/// The operand that a Number argument stands for; -1 for a constant.
inline int64_t numberIndex(const Number &n) {
  return n.ref() ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(n.ref())) - 1 : -1;
}

/// Where the user's code stands: `mark` gives a number for the current statement (cheap; 0: unknown), `describe` its
/// "file:line". Set by the Python binding.
struct Locator {
  uint32_t (*mark)() = nullptr;
  std::string (*describe)(uint32_t) = nullptr;
};
void setLocator(Locator l);
inline Locator currentLocator;
inline uint32_t markLoc() { return currentLocator.mark ? currentLocator.mark() : 0; }
/// "file:line", or "" if unknown.
std::string locText(uint32_t loc);

/// Prints the graph, one node a line.
std::string print(const Graph &g);

/// The number of arguments of mutated kinds that are present, i.e. results beyond op.results.
size_t countMutated(const OpInfo &op, Span<const Arg<GVal>> args);

/// Metas of a node's results (mutated values included) from those of its operands; throws what the op's meta throws.
void inferNode(const Graph &g, const OpInfo &op, Span<const Arg<GVal>> args, SmallVec<TensorMeta, 3> &results);

/// The same program with sizes lifted: input i has sizes `inputMetas[i]`, the k-th Dim of the nodes' arguments (in
/// order of occurrence) is `dims[k]`, then come the strides of outputs that are not row-major; all values are inferred
/// anew. Facts go to the installed FactSink.
Graph retype(const Graph &g, Span<const TensorMeta> inputMetas, Span<const Dim> dims, Span<const int64_t> symbolHints);

/// Calls `f(Dim &)` for every Dim in `args` in order, the Dim and DimList arguments alike.
template <class F> void forEachDim(OwnedArgs<GVal> &args, F &&f) {
  for (const Arg<GVal> &a : args.args()) {
    if (a.tag == ArgTag::Dim)
      f(const_cast<Dim &>(a.dim));
    else if (a.tag == ArgTag::DimList)
      for (const Dim &d : a.dimList())
        f(const_cast<Dim &>(d));
  }
}

/// Runs the graph node by node with the eager kernels: the slow and obvious executor. Declared here, defined in
/// runtime/exec. outs[i] has the strides of outputs[i] and is fresh unless it is an input's write-back, which is
/// performed after everything ran.
void interpret(const Graph &g, Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols,
               std::vector<Tensor> &outs);

} // namespace dlc
