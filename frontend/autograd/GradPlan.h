// Gradients of a compiled forward that runs without the tape: one node for the whole graph, whose backward is a graph
// compiled at its first use.
#pragma once
#include "frontend/autograd/Partition.h"
#include "frontend/compile/Backend.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/core/ForkSafe.h"
#include <list>
#include <mutex>

namespace dlc {

/// How a forward graph is to be run and differentiated. Shared by all calls; threads may use it at the same time.
class GradPlan {
public:
  /// What to run: the graph it was made of, with the saved values as further outputs.
  const Graph &forward() const { return forward_; }
  size_t numOutputs() const { return numOutputs_; } ///< without the saved ones
  /// Indices of the graph inputs that have a gradient edge.
  Span<const int32_t> differentiable() const { return differentiable_; }
  size_t numRoots() const { return roots_.size(); }
  /// What building the backward took for granted about the symbols: guards of the forward.
  Span<const Fact> facts() const { return facts_; }
  const Partition &decisions() const { return partition_; }
  const std::string &name() const { return name_; }
  /// Backward programs built so far, one per line: what they read and compute.
  std::string describe() const;

private:
  friend std::shared_ptr<GradPlan> planGradient(const Graph &, const trace::GradLog &, const PartitionContext &);
  friend class ReplayGradNode;

  /// One backward program.
  struct Variant {
    std::vector<bool> given;  ///< cotangents that are there: of the roots, then of what the backward reads again
    std::vector<bool> wanted; ///< per differentiable input
    bool higherOrder = false;
    std::vector<int64_t> symbols; ///< not empty: for these sizes only
    Graph graph;
    std::vector<Dim> sizeNumbers;
    std::vector<int32_t> outputs; ///< per differentiable input: output of `graph`, or -1
    std::vector<Fact> facts;
    std::shared_ptr<CompiledGraph> compiled;
    bool tried = false; ///< compiling it
  };
  const Variant &variant(const std::vector<bool> &given, const std::vector<bool> &wanted, bool higherOrder,
                         Ints symbols);
  const Variant *find(const std::vector<bool> &given, const std::vector<bool> &wanted, bool higherOrder, Ints symbols,
                      bool &general) const;
  /// Values of this graph that a second differentiation goes through: outputs that the backward reads, saved values.
  int32_t keptValue(size_t k) const {
    const Partition &p = partition_;
    return k < p.outputs.size() ? graph_.outputs[p.outputs[k]].value : p.saved[k - p.outputs.size()];
  }
  size_t numKept() const { return partition_.outputs.size() + partition_.saved.size(); }
  void build(Variant &v, const Graph &forward) const;
  void compile(Variant &v) const;

  Graph graph_;   ///< as it was recorded
  Graph forward_; ///< with saved values
  size_t numOutputs_ = 0;
  trace::GradLog log_;
  std::vector<int32_t> roots_; ///< values
  std::vector<int32_t> differentiable_;
  Partition partition_;
  std::vector<bool> active_; ///< values that gradients flow through
  std::vector<Fact> facts_;
  std::string name_;
  mutable ForkMutex mutex_;
  std::list<Variant> variants_;
};

/// Plans the gradient of a recorded graph whose log says what leaves it with a history (addRoot). Throws
/// NotImplemented, saying why, if the graph can't stand for the tape: then the call stays in the trace tier.
std::shared_ptr<GradPlan> planGradient(const Graph &forward, const trace::GradLog &log,
                                       const PartitionContext &context = {});

/// Why the graph can't stand for the tape; "" if planGradient() will do. Of the outputs only write-backs matter.
std::string whyNoPlan(const Graph &forward, const trace::GradLog &log);

/// One run of a plan's forward.
struct GradRun {
  Span<const Tensor> inputs; ///< as the program has them, with their own histories
  Span<const Number> numbers;
  Ints symbols;
  Span<const Tensor> outputs; ///< all that the run made (write-backs: the inputs)
  /// In a capture session, for copies of the node over other values: per number operand the number that the session
  /// gave out, or the size that it is; per symbol its expression.
  struct NumberForm {
    Number number; ///< with ref(), or of the category of `size`
    Dim size = 0;
  };
  Span<const NumberForm> numberForms;
  Span<const Dim> symbolForms;
  bool copyable = false;
};

/// Gives the results of a run their histories: `roots` are the tensors that leave with one, in the order of addRoot().
void attachGradient(const std::shared_ptr<GradPlan> &plan, const GradRun &run, Span<const Tensor> roots);

/// Runs a graph through the dispatcher: what it does is recorded by the tape and by an interceptor.
std::vector<Tensor> dispatchGraph(const Graph &g, Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols);

/// The graph for one choice of its symbols.
Graph specialize(const Graph &g, Ints symbols);

} // namespace dlc
