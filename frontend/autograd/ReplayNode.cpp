// The tape's node of a whole compiled forward.
#include "frontend/autograd/GradPlan.h"
#include "runtime/op/Functional.h"

namespace dlc {

class ReplayGradNode final : public GradNode {
public:
  ReplayGradNode(std::shared_ptr<GradPlan> plan, Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols,
                 Span<const Tensor> outputs)
      : plan_(std::move(plan)), numbers_(numbers.vec()), symbols_(symbols.vec()) {
    const Partition &p = plan_->partition_;
    numInputs = static_cast<uint32_t>(plan_->roots_.size() + plan_->numKept());
    for (int32_t i : plan_->differentiable_) {
      edges.push_back(gradEdgeOf(inputs[i]));
      wanted_.push_back(static_cast<bool>(edges.back()));
    }
    for (int32_t i : p.inputs) {
      const Tensor &t = inputs[i];
      bool leaf = t.impl()->requiresGrad && isLeaf(t);
      kept_.push_back({leaf ? t : detach(t), leaf ? GradEdge() : gradEdgeOf(t)});
    }
    for (int32_t i : p.outputs)
      kept_.push_back({detach(outputs[i]), {}});
    for (size_t k = 0; k < p.saved.size(); ++k)
      kept_.push_back({outputs[plan_->numOutputs_ + k], {}});
    for (const SavedCheck &c : p.checks) {
      const Tensor &t = c.ofInput ? inputs[c.index] : outputs[c.index];
      checks_.push_back({t.storageRef(), t.storage().version()});
    }
  }

  std::string name() const override { return plan_->name(); }

  std::vector<Tensor> apply(std::vector<Tensor> grads, bool keep) override {
    DLC_REQUIRE(!released_, Runtime, "backward: the graph of ", name(),
                " was already walked and its saved tensors freed\npass retain_graph=True to the first backward()");
    check();
    std::vector<bool> given;
    std::vector<Tensor> in;
    for (size_t k = 0; k < kept_.size(); ++k)
      in.push_back(gradEnabled() ? withHistory(k) : kept_[k].tensor);
    bool any = false;
    for (Tensor &g : grads) {
      given.push_back(g.defined());
      any |= g.defined();
      if (g.defined())
        in.push_back(ops::contiguous(g));
    }
    std::vector<Tensor> out(edges.size());
    if (!any)
      return out;
    const GradPlan::Variant &v = plan_->variant(given, wanted_, gradEnabled(), Ints(symbols_));
    std::vector<Number> numbers = numbers_;
    for (const Dim &d : v.sizeNumbers)
      numbers.push_back(Number(static_cast<double>(evaluate(d, symbols_))));
    std::vector<Tensor> results = run(v, in, numbers);
    for (size_t i = 0; i < out.size(); ++i)
      if (v.outputs[i] >= 0)
        out[i] = results[v.outputs[i]];
    if (!keep)
      release();
    return out;
  }

  void release() override {
    released_ = true;
    kept_.clear();
    checks_.clear();
  }

private:
  struct Kept {
    Tensor tensor; ///< outside of the graph, unless a leaf
    GradEdge edge;
  };
  struct Version {
    Ref<Storage> storage;
    uint32_t version;
  };
  /// Raises what the tape would: its saved tensors, last call first.
  void check() const {
    for (size_t k = checks_.size(); k-- > 0;) {
      const SavedCheck &c = plan_->partition_.checks[k];
      uint32_t now = checks_[k].storage->version();
      if (now == checks_[k].version)
        continue;
      TensorMeta m = c.meta;
      for (Dim &d : m.sizes)
        d = Dim(evaluate(d, symbols_));
      fail(ErrorKind::Runtime, "backward: a tensor ", describe(m), " needed for the gradient of ", c.op->name,
           " was changed by an in-place op: it is at version ", now, ", expected ", checks_[k].version,
           "\nuse the out-of-place form, or clone() the tensor before changing it");
    }
  }

  /// A kept tensor as part of the graph again, for gradients of gradients: a saved value is a result of this node.
  Tensor withHistory(size_t k) {
    const Kept &kept = kept_[k];
    size_t inputs = plan_->partition_.inputs.size();
    if (kept.tensor.impl()->requiresGrad || !isFloat(kept.tensor.dtype()))
      return kept.tensor;
    GradEdge e = kept.edge;
    if (k >= inputs && plan_->active_[plan_->keptValue(k - inputs)])
      e = {Ref<GradNode>(this), static_cast<uint32_t>(plan_->roots_.size() + k - inputs)};
    Tensor t = detach(kept.tensor);
    if (e) {
      gradMetaOf(t).setHistory(e.node, e.index);
      t.impl()->requiresGrad = true;
    }
    return t;
  }

  std::vector<Tensor> run(const GradPlan::Variant &v, Span<const Tensor> in, Span<const Number> numbers) const {
    if (gradEnabled() || currentInterceptor())
      return dispatchGraph(v.graph, in, numbers, symbols_);
    std::vector<Tensor> outs;
    if (v.compiled)
      v.compiled->run(in, numbers, symbols_, outs);
    else
      interpret(v.graph, in, numbers, symbols_, outs);
    return outs;
  }

  std::shared_ptr<GradPlan> plan_;
  std::vector<Number> numbers_;
  std::vector<int64_t> symbols_;
  std::vector<bool> wanted_;
  std::vector<Kept> kept_; // inputs, outputs, saved values
  std::vector<Version> checks_;
  bool released_ = false;
};

void attachGradient(const std::shared_ptr<GradPlan> &plan, Span<const Tensor> inputs, Span<const Number> numbers,
                    Ints symbols, Span<const Tensor> outputs, Span<const Tensor> roots) {
  auto *raw = new ReplayGradNode(plan, inputs, numbers, symbols, outputs);
  Ref<GradNode> node(raw);
  for (size_t i = 0; i < roots.size(); ++i) {
    gradMetaOf(roots[i]).setHistory(node, static_cast<uint32_t>(i));
    roots[i].impl()->requiresGrad = true;
  }
}

} // namespace dlc
