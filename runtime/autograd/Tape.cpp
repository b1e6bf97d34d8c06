// The dispatcher's autograd layer: makes a node per differentiable call, saves what its gradient rule reads.
#include "runtime/autograd/Autograd.h"
#include "runtime/core/Session.h"
#include "runtime/op/Functional.h"
#include <atomic>

namespace dlc {
namespace {

std::atomic<int64_t> nextSequence{int64_t(1) << 40};
thread_local GradObserver *observer = nullptr;
std::atomic<int64_t> recordedNodes{0};

/// A tensor kept for the backward pass: an alias outside the graph, its edge, and the version it must still have.
struct SavedTensor {
  Tensor tensor;
  GradEdge edge;
  uint32_t version = 0;
  bool leaf = false;
};

/// Shares storage and trace value, but no history.
Tensor aliasOf(const Tensor &t) {
  const TensorImpl &from = *t.impl();
  Tensor a = Tensor::viewOf(from.storage, from.sizes, from.strides, from.offset, from.dtype);
  a.impl()->wrapped = t.isWrapped();
  a.copyTrace(t);
  return a;
}

/// Sizes and dtype of an operand whose values the rule does not read.
Tensor shapeOnly(const Tensor &t) {
  Tensor a = Tensor::viewOf(Ref<Storage>(), t.impl()->sizes, t.impl()->strides, 0, t.dtype());
  a.impl()->wrapped = t.isWrapped();
  a.impl()->symbolic = t.impl()->symbolic;
  return a;
}

/// Calls `number(Number &)` for number arguments with a ref and `dim(Dim &)` for size arguments that are expressions.
template <class N, class D> void forEachSymbolic(const OwnedArgs<Tensor> &args, N &&number, D &&dim) {
  for (const Arg<Tensor> &a : args.args()) {
    if (a.tag == ArgTag::Num && a.num.ref())
      number(const_cast<Number &>(a.num));
    else if (a.tag == ArgTag::Dim && !a.dim.isConst())
      dim(const_cast<Dim &>(a.dim));
    else if (a.tag == ArgTag::DimList)
      for (const Dim &d : a.dimList())
        if (!d.isConst())
          dim(const_cast<Dim &>(d));
  }
}

class OpNode final : public GradNode {
public:
  OpNode(const OpInfo &op, Span<const Arg<Tensor>> args, bool copySelf)
      : op_(op), args_(args), session_(currentSession()) {
    numInputs = static_cast<uint32_t>(op.results.size());
    size_t v = 0;
    for (size_t i = 0; i < args.size(); ++i)
      for (const Tensor &t : args[i].values()) {
        edges.push_back(t.defined() ? gradEdgeOf(t) : GradEdge());
        bool saved = op.vjp.savedParams >> std::min<size_t>(i, 63) & 1;
        SavedTensor s;
        if (t.defined() && session_)
          (void)t.meta(); // from here on its aliases know its sizes as expressions
        if (t.defined() && saved) {
          bool copy = copySelf && i == 0;
          s.edge = edges.back();
          s.leaf = !copy && isLeaf(t);
          s.tensor = copy ? ops::clone(aliasOf(t)) : s.leaf ? t : aliasOf(t);
          s.version = s.tensor.storage().version();
        } else if (t.defined()) {
          s.tensor = shapeOnly(t);
        }
        args_.values()[v++] = Tensor();
        savedArgs_.push_back(std::move(s));
      }
  }

  void saveResults(Span<const Tensor> outs) {
    numInputs = static_cast<uint32_t>(outs.size());
    savedResults_.resize(outs.size());
    for (size_t i = 0; i < outs.size(); ++i)
      if (outs[i].defined() && (op_.vjp.savedResults >> std::min<size_t>(i, 63) & 1)) {
        savedResults_[i].tensor = aliasOf(outs[i]);
        savedResults_[i].version = outs[i].storage().version();
      }
  }

  std::string name() const override {
    std::string n;
    bool up = true;
    for (const char *c = op_.name; *c; ++c) {
      if (*c == '_') {
        up = true;
        continue;
      }
      n += up ? static_cast<char>(std::toupper(*c)) : *c;
      up = false;
    }
    return n + "Backward0";
  }

  std::vector<Tensor> apply(std::vector<Tensor> grads, bool keep) override {
    DLC_REQUIRE(!released_, Runtime, "backward: the graph of ", name(),
                " was already walked and its saved tensors freed\npass retain_graph=True to the first backward()");
    OwnedArgs<Tensor> args = args_;
    if (session_ && session_ != currentSession()) // expressions mean nothing outside of their session
      forEachSymbolic(args, [](Number &n) { n = n.hint(); }, [](Dim &d) { d = Dim(d.value()); });
    for (size_t i = 0; i < savedArgs_.size(); ++i)
      args.values()[i] = unpack(savedArgs_[i], nullptr, 0);
    std::vector<Tensor> results;
    for (size_t i = 0; i < savedResults_.size(); ++i)
      results.push_back(unpack(savedResults_[i], this, static_cast<uint32_t>(i)));
    std::vector<Tensor> out(edges.size());
    SmallVec<bool, 8> needs;
    for (const GradEdge &e : edges)
      needs.push_back(static_cast<bool>(e));
    op_.vjp.run(args.args(), results, grads, Span<const bool>(needs.data(), needs.size()), out);
    if (!keep)
      release();
    return out;
  }

  void release() override {
    released_ = true;
    savedArgs_.clear();
    savedResults_.clear();
  }

  bool parts(NodeParts &out) const override {
    for (const SavedTensor &s : savedArgs_)
      out.tensors.push_back({s.tensor, s.version, s.leaf});
    for (const SavedTensor &s : savedResults_)
      out.tensors.push_back({s.tensor, s.version, false});
    forEachSymbolic(args_, [&](Number &n) { out.numbers.push_back(n); }, [&](Dim &d) { out.dims.push_back(d); });
    return true;
  }
  Ref<GradNode> copyWith(const NodeValues &values) const override { return Ref<GradNode>(new OpNode(*this, values)); }

private:
  OpNode(const OpNode &like, const NodeValues &v)
      : op_(like.op_), args_(like.args_), savedArgs_(like.savedArgs_.size()), savedResults_(like.savedResults_.size()),
        released_(like.released_) {
    numInputs = like.numInputs;
    edges.assign(v.edges.begin(), v.edges.end());
    for (size_t i = 0; i < savedArgs_.size(); ++i)
      savedArgs_[i] = {v.tensors[i], edges[i], v.versions[i], like.savedArgs_[i].leaf};
    for (size_t i = 0, at = savedArgs_.size(); i < savedResults_.size(); ++i, ++at)
      savedResults_[i] = {v.tensors[at], GradEdge(), v.versions[at], false};
    size_t number = 0, dim = 0;
    if (!v.numbers.empty() || !v.dims.empty())
      forEachSymbolic(args_, [&](Number &n) { n = v.numbers[number++]; }, [&](Dim &d) { d = Dim(v.dims[dim++]); });
  }

  Tensor unpack(const SavedTensor &s, OpNode *self, uint32_t index) const {
    if (!s.tensor.defined() || !s.tensor.storageRef())
      return s.tensor;
    uint32_t now = s.tensor.storage().version();
    DLC_REQUIRE(now == s.version, Runtime, "backward: a tensor ", describe(s.tensor), " needed for the gradient of ",
                op_.name, " was changed by an in-place op: it is at version ", now, ", expected ", s.version,
                "\nuse the out-of-place form, or clone() the tensor before changing it");
    if (s.leaf || !gradEnabled())
      return s.tensor;
    Tensor t = aliasOf(s.tensor);
    if (self || s.edge) {
      gradMetaOf(t).setHistory(self ? Ref<GradNode>(self) : s.edge.node, self ? index : s.edge.index);
      t.impl()->requiresGrad = true;
    }
    return t;
  }

  const OpInfo &op_;
  OwnedArgs<Tensor> args_; // values are put in from savedArgs_ when applied
  std::vector<SavedTensor> savedArgs_, savedResults_;
  bool released_ = false;
  uint64_t session_ = 0; // whose expressions the arguments have
};

void attach(const Tensor &t, const Ref<GradNode> &node, uint32_t index) {
  gradMetaOf(t).setHistory(node, index);
  t.impl()->requiresGrad = true;
}

void checkInPlaceLeaf(const OpInfo &op, const Tensor &self) {
  bool viewOfLeaf = false;
  if (GradMeta *m = gradMetaOrNull(self); m && m->base.defined())
    viewOfLeaf = m->base.impl()->requiresGrad && isLeaf(m->base);
  DLC_REQUIRE(!(requiresGrad(self) && isLeaf(self)) && !viewOfLeaf, Runtime, op.name, "_: `self` is ",
              viewOfLeaf ? "a view of " : "",
              "a leaf that requires grad and can't be changed in place"
              "\nuse the out-of-place form, or wrap the call in no_grad()");
}

thread_local bool taping = false;

void differentiable(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  if (form == CallForm::InPlace)
    checkInPlaceLeaf(op, args[0].value[0]);
  DLC_REQUIRE(
      form != CallForm::Out, Runtime, op.name,
      ": out= can't be differentiated, and an argument requires grad\ncall it without out=, or under no_grad()");
  if (!op.has(kDifferentiable)) {
    dispatchBelowAutograd(op, args, outs, form);
    return;
  }
  bool copySelf = form == CallForm::InPlace && op.vjp.inplaceCopiesSelf;
  GradModeScope off(false);
  auto *raw = new OpNode(op, args, copySelf);
  Ref<GradNode> node(raw);
  GradObserver *o = currentInterceptor() ? observer : nullptr;
  if (o)
    o->before(op, args, *raw, form, copySelf);
  {
    struct Taping {
      bool before = std::exchange(taping, true);
      ~Taping() { taping = before; }
    } scope;
    dispatchBelowAutograd(op, args, outs, form);
  }
  raw->saveResults(Span<const Tensor>(outs.data(), outs.size()));
  if (form == CallForm::InPlace)
    rebaseHistory(outs[0], node);
  else
    for (size_t i = 0; i < outs.size(); ++i)
      if (outs[i].defined() && isFloat(outs[i].dtype()))
        attach(outs[i], node, static_cast<uint32_t>(i));
  if (o)
    o->after(op, outs, *raw, form);
}

bool anyRequiresGrad(Span<const Arg<Tensor>> args) {
  for (const Arg<Tensor> &a : args)
    for (const Tensor &t : a.values())
      if (t.defined() && requiresGrad(t))
        return true;
  return false;
}

/// Views remember their base even where nothing wants a gradient yet: a later write through them may bring one in.
void autogradDispatch(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  if (anyRequiresGrad(args))
    differentiable(op, args, outs, form);
  else
    dispatchBelowAutograd(op, args, outs, form);
  if (op.kind == OpKind::View && form == CallForm::Functional && op.has(kDifferentiable)) {
    const Tensor &self = args[0].value[0];
    GradMeta *m = gradMetaOrNull(self);
    for (Tensor &t : outs)
      if (isFloat(t.dtype())) {
        GradMeta &v = gradMetaOf(t);
        v.base = m && m->base.defined() ? m->base : self;
        v.viewVersion = t.storage().version();
      }
  }
}

} // namespace

GradObserver *gradObserver() { return observer; }
void setGradObserver(GradObserver *o) { observer = o; }

int64_t gradSequence() { return nextSequence; }
int64_t recordedNodesAlive() { return recordedNodes.load(std::memory_order_relaxed); }

GradNode::GradNode() : recorded(currentInterceptor() != nullptr), sequence(nextSequence++) {
  if (recorded)
    recordedNodes.fetch_add(1, std::memory_order_relaxed);
}

/// Long chains are freed in a loop: a recursive release of a deep graph would overflow the stack.
GradNode::~GradNode() {
  if (recorded)
    recordedNodes.fetch_sub(1, std::memory_order_relaxed);
  std::vector<GradEdge> pending = std::move(edges);
  while (!pending.empty()) {
    GradEdge e = std::move(pending.back());
    pending.pop_back();
    if (e.node && e.node->refCount() == 1) {
      e.node->release();
      for (GradEdge &next : e.node->edges)
        pending.push_back(std::move(next));
      e.node->edges.clear();
    }
  }
}

bool isTaping() { return taping; }

void installAutograd() { setAutogradHook(autogradDispatch); }

} // namespace dlc
