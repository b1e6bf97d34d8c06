// The tape's node of a whole compiled forward.
#include "frontend/autograd/GradPlan.h"
#include "runtime/op/Functional.h"

namespace dlc {

class ReplayGradNode final : public GradNode {
public:
  ReplayGradNode(std::shared_ptr<GradPlan> plan, const GradRun &run)
      : plan_(std::move(plan)), numbers_(run.numbers.vec()), symbols_(run.symbols.vec()) {
    const Partition &p = plan_->partition_;
    setInputs();
    for (int32_t i : plan_->differentiable_)
      edges.push_back(gradEdgeOf(run.inputs[i]));
    for (int32_t i : p.inputs)
      kept_.push_back(held(run.inputs[i]));
    for (int32_t i : p.outputs)
      kept_.push_back(alias(run.outputs[i]));
    for (size_t k = plan_->numOutputs_; k < run.outputs.size(); ++k)
      kept_.push_back({run.outputs[k], run.outputs[k].storage().version(), false});
    for (const SavedCheck &c : p.checks)
      watch(c.ofInput ? held(run.inputs[c.index]) : alias(run.outputs[c.index]));
    numberForms_ = run.numberForms.vec();
    symbolForms_ = run.symbolForms.vec();
    copyable_ = run.copyable;
  }

  std::string name() const override { return plan_->name(); }

  std::vector<Tensor> apply(std::vector<Tensor> grads, bool keep) override {
    DLC_REQUIRE(!released_, Runtime, "backward: the graph of ", name(),
                " was already walked and its saved tensors freed\npass retain_graph=True to the first backward()");
    check();
    std::vector<bool> given, wanted;
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
    for (const GradEdge &e : edges)
      wanted.push_back(static_cast<bool>(e));
    std::vector<Tensor> out(edges.size());
    if (!any)
      return out;
    const GradPlan::Variant &v = plan_->variant(given, wanted, gradEnabled(), Ints(symbols_));
    std::vector<Number> numbers = numbers_;
    for (const Dim &d : v.sizeNumbers)
      numbers.push_back(Number(static_cast<double>(evaluate(d, Ints(symbols_)))));
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
    watched_.clear();
    checks_.clear();
  }

  bool parts(NodeParts &out) const override {
    if (!copyable_ || released_)
      return false;
    out.tensors.insert(out.tensors.end(), kept_.begin(), kept_.end());
    out.tensors.insert(out.tensors.end(), watched_.begin(), watched_.end());
    for (const GradRun::NumberForm &f : numberForms_)
      if (f.number.ref())
        out.numbers.push_back(f.number);
      else if (!f.size.isConst())
        out.dims.push_back(f.size);
    for (const Dim &d : symbolForms_)
      if (!d.isConst())
        out.dims.push_back(d);
    return true;
  }

  Ref<GradNode> copyWith(const NodeValues &v) const override {
    auto *raw = new ReplayGradNode(plan_);
    Ref<GradNode> copy(raw);
    DLC_CHECK(v.tensors.size() == kept_.size() + watched_.size(), "another node's parts");
    raw->edges.assign(v.edges.begin(), v.edges.end());
    raw->numbers_ = numbers_;
    raw->symbols_ = symbols_;
    raw->checks_ = checks_;
    raw->numberForms_ = numberForms_;
    raw->symbolForms_ = symbolForms_;
    raw->copyable_ = copyable_;
    size_t at = 0, number = 0, dim = 0;
    for (const NodeParts::Saved &s : kept_) {
      raw->kept_.push_back({v.tensors[at], v.versions[at], s.leaf});
      ++at;
    }
    for (size_t i = 0; i < watched_.size(); ++i, ++at)
      raw->watched_.push_back({v.tensors[at], v.versions[at], watched_[i].leaf});
    if (v.numbers.empty() && v.dims.empty())
      return copy;
    for (size_t i = 0; i < numberForms_.size(); ++i) {
      const GradRun::NumberForm &f = numberForms_[i];
      if (f.number.ref())
        raw->numbers_[i] = v.numbers[number++];
      else if (!f.size.isConst())
        raw->numbers_[i] = sizeNumber(v.dims[dim++], f.number.category());
    }
    for (size_t i = 0; i < symbolForms_.size(); ++i)
      if (!symbolForms_[i].isConst())
        raw->symbols_[i] = v.dims[dim++];
    return copy;
  }

private:
  explicit ReplayGradNode(std::shared_ptr<GradPlan> plan) : plan_(std::move(plan)) { setInputs(); }
  void setInputs() { numInputs = static_cast<uint32_t>(plan_->roots_.size() + plan_->numKept()); }
  static Number sizeNumber(int64_t n, Category c) {
    return c == Category::Float ? Number(static_cast<double>(n)) : Number(n);
  }

  static NodeParts::Saved alias(const Tensor &t) { return {detach(t), t.storage().version(), false}; }
  static NodeParts::Saved held(const Tensor &t) {
    return isLeaf(t) ? NodeParts::Saved{t, t.storage().version(), true} : alias(t);
  }

  /// One entry a storage.
  void watch(NodeParts::Saved s) {
    for (size_t i = 0; i < watched_.size(); ++i)
      if (watched_[i].tensor.storageRef() == s.tensor.storageRef()) {
        checks_.push_back(static_cast<uint32_t>(i));
        return;
      }
    checks_.push_back(static_cast<uint32_t>(watched_.size()));
    watched_.push_back(std::move(s));
  }

  /// Raises what the tape would: its saved tensors, last call first.
  void check() const {
    for (size_t k = checks_.size(); k-- > 0;) {
      const NodeParts::Saved &s = watched_[checks_[k]];
      uint32_t now = s.tensor.storage().version();
      if (now == s.version)
        continue;
      const SavedCheck &c = plan_->partition_.checks[k];
      TensorMeta m = c.meta;
      for (Dim &d : m.sizes)
        d = Dim(evaluate(d, Ints(symbols_)));
      fail(ErrorKind::Runtime, "backward: a tensor ", describe(m), " needed for the gradient of ", c.op->name,
           " was changed by an in-place op: it is at version ", now, ", expected ", s.version,
           "\nuse the out-of-place form, or clone() the tensor before changing it");
    }
  }

  /// A kept tensor as part of the graph again, for gradients of gradients: a saved value is a result of this node.
  Tensor withHistory(size_t k) {
    const NodeParts::Saved &kept = kept_[k];
    if (kept.leaf || !isFloat(kept.tensor.dtype()))
      return kept.tensor;
    const std::vector<int32_t> &inputs = plan_->partition_.inputs;
    GradEdge e;
    if (k >= inputs.size()) {
      if (plan_->active_[plan_->keptValue(k - inputs.size())])
        e = {Ref<GradNode>(this), static_cast<uint32_t>(plan_->roots_.size() + k - inputs.size())};
    } else {
      const std::vector<int32_t> &d = plan_->differentiable_;
      if (auto it = std::find(d.begin(), d.end(), inputs[k]); it != d.end())
        e = edges[it - d.begin()];
    }
    Tensor t = detach(kept.tensor);
    if (e) {
      gradMetaOf(t).setHistory(e.node, e.index);
      t.impl()->requiresGrad = true;
    }
    return t;
  }

  std::vector<Tensor> run(const GradPlan::Variant &v, Span<const Tensor> in, Span<const Number> numbers) const {
    if (gradEnabled() || currentInterceptor())
      return dispatchGraph(v.graph, in, numbers, Ints(symbols_));
    std::vector<Tensor> outs;
    if (v.compiled)
      v.compiled->run(in, numbers, Ints(symbols_), outs);
    else
      interpret(v.graph, in, numbers, Ints(symbols_), outs);
    return outs;
  }

  std::shared_ptr<GradPlan> plan_;
  std::vector<Number> numbers_;
  std::vector<int64_t> symbols_;
  std::vector<NodeParts::Saved> kept_;           // inputs, outputs, saved values
  std::vector<NodeParts::Saved> watched_;        // one of each storage that the tape and the user share
  std::vector<uint32_t> checks_;                 // per check of the plan: which of them
  std::vector<GradRun::NumberForm> numberForms_; // observed: what the numbers and symbols are in a session
  std::vector<Dim> symbolForms_;
  bool copyable_ = false;
  bool released_ = false;
};

void attachGradient(const std::shared_ptr<GradPlan> &plan, const GradRun &run, Span<const Tensor> roots) {
  Ref<GradNode> node(new ReplayGradNode(plan, run));
  for (size_t i = 0; i < roots.size(); ++i) {
    gradMetaOf(roots[i]).setHistory(node, static_cast<uint32_t>(i));
    roots[i].impl()->requiresGrad = true;
  }
}

} // namespace dlc
