// The gradient record of tensors: leaves, accumulators, views, in-place history.
#include "runtime/autograd/Autograd.h"
#include "runtime/core/Session.h"
#include "runtime/op/Functional.h"
#include <atomic>

namespace dlc {
namespace {

/// The expressions among some sizes of a node, in order.
template <class F> void forEachExpr(std::initializer_list<Dims *> lists, Dim &single, F &&f) {
  for (Dims *list : lists)
    for (Dim &d : *list)
      if (!d.isConst())
        f(d);
  if (!single.isConst())
    f(single);
}

/// Adds incoming gradients to the .grad of a leaf.
class AccumulateNode final : public GradNode {
public:
  explicit AccumulateNode(TensorImpl *leaf) : leaf(leaf) { sequence -= int64_t(1) << 40; }
  std::string name() const override { return "AccumulateGrad"; }
  std::vector<Tensor> apply(std::vector<Tensor> grads, bool) override {
    if (!leaf || !grads[0].defined())
      return {};
    Tensor self{Ref<TensorImpl>(leaf)};
    Tensor &slot = gradMetaOf(self).grad;
    const Tensor &g = grads[0];
    if (slot.defined()) {
      bool inPlace = !gradEnabled();
      if (inPlace)
        ops::add_(slot, g);
      else
        slot = ops::add(slot, g);
      stored(self, slot, inPlace);
      return {};
    }
    // Owned by nobody else and laid out densely: take it. Anything else may alias another gradient.
    bool steal = g.impl()->refCount() == 1 && g.storage().refCount() == 1 && g.isContiguous();
    slot = steal || gradEnabled() ? g : ops::clone(detach(g));
    stored(self, slot, false);
    return {};
  }
  static void stored(const Tensor &leaf, const Tensor &grad, bool inPlace) {
    if (gradEvents.stored)
      gradEvents.stored(leaf, grad, inPlace);
  }
  TensorImpl *leaf; // cleared when the leaf dies
};

/// The new history of a base one of whose views was written: the old gradient outside of the view, `inner`'s inside.
class CopySlicesNode final : public GradNode {
public:
  CopySlicesNode(const Tensor &base, const Tensor &view, Ref<GradNode> inner) : inner_(std::move(inner)) {
    TensorMeta v = view.meta();
    sizes_ = v.sizes;
    strides_ = v.strides;
    offset_ = v.offset - base.meta().offset;
    edges.push_back(gradEdgeOf(base));
    viewWanted_ = static_cast<bool>(inner_->edges[0]);
    // inner's first edge was the view's old history: the base's edge carries that part.
    for (size_t i = 1; i < inner_->edges.size(); ++i)
      edges.push_back(inner_->edges[i]);
  }
  std::string name() const override { return "CopySlices"; }
  std::vector<Tensor> apply(std::vector<Tensor> grads, bool keep) override {
    std::vector<Tensor> out(edges.size());
    if (!grads[0].defined())
      return out;
    if (session_ && session_ != currentSession())
      forEachExpr({&sizes_, &strides_}, offset_, [](Dim &d) { d = Dim(d.value()); });
    Tensor g = ops::contiguous(grads[0]);
    Tensor part = ops::clone(ops::as_strided(g, sizes_, strides_, offset_));
    std::vector<Tensor> inner = inner_->apply({part}, keep);
    Tensor inside = inner[0].defined() ? inner[0] : ops::zeros_like(part);
    if (edges[0])
      out[0] = ops::as_strided_scatter(g, inside, sizes_, strides_, offset_);
    for (size_t i = 1; i < edges.size(); ++i)
      out[i] = inner[i];
    return out;
  }
  void release() override { inner_->release(); }

  bool parts(NodeParts &out) const override {
    // A rule that reads the view would want the view's old history, which the base's has taken in.
    if (!inner_->parts(out) || out.tensors.empty() ||
        (viewWanted_ && out.tensors[0].tensor.defined() && out.tensors[0].tensor.storageRef()))
      return false;
    CopySlicesNode own(*this, inner_);
    forEachExpr({&own.sizes_, &own.strides_}, own.offset_, [&](Dim &d) { out.dims.push_back(d); });
    return true;
  }
  Ref<GradNode> copyWith(const NodeValues &values) const override {
    std::vector<GradEdge> edges(values.edges.begin(), values.edges.end());
    GradEdge base = edges[0];
    if (!viewWanted_)
      edges[0] = GradEdge(); // whether a gradient of the view is wanted, not where it goes
    CopySlicesNode own(*this, inner_);
    size_t mine = 0;
    forEachExpr({&own.sizes_, &own.strides_}, own.offset_, [&](Dim &) { ++mine; });
    size_t at = values.dims.empty() ? 0 : values.dims.size() - mine;
    NodeValues inside = values;
    inside.edges = Span<const GradEdge>(edges.data(), edges.size());
    inside.dims = values.dims.slice(0, at);
    Ref<CopySlicesNode> copy(new CopySlicesNode(*this, inner_->copyWith(inside)));
    if (!values.dims.empty())
      forEachExpr({&copy->sizes_, &copy->strides_}, copy->offset_, [&](Dim &d) { d = Dim(values.dims[at++]); });
    edges[0] = base;
    copy->edges = std::move(edges);
    return copy;
  }

private:
  CopySlicesNode(const CopySlicesNode &like, Ref<GradNode> inner)
      : inner_(std::move(inner)), viewWanted_(like.viewWanted_), sizes_(like.sizes_), strides_(like.strides_),
        offset_(like.offset_) {}
  Ref<GradNode> inner_;
  bool viewWanted_ = false; // inner_ is to compute the gradient of the view's old value (a copy's edges may be null)
  Dims sizes_, strides_;
  Dim offset_;
  uint64_t session_ = currentSession(); // whose expressions these are
};

/// The renewed history of a view after its base was written in place.
class ViewOfBaseNode final : public GradNode {
public:
  ViewOfBaseNode(const Tensor &base, const Tensor &view) {
    TensorMeta b = base.meta(), v = view.meta();
    baseSizes_ = b.sizes;
    sizes_ = v.sizes;
    strides_ = v.strides;
    offset_ = v.offset - b.offset;
    edges.push_back(gradEdgeOf(base));
    renewsView = true;
  }
  std::string name() const override { return "AsStridedBackward0"; }
  std::vector<Tensor> apply(std::vector<Tensor> grads, bool) override {
    if (!grads[0].defined())
      return {Tensor()};
    if (session_ && session_ != currentSession())
      forEachExpr({&baseSizes_, &sizes_, &strides_}, offset_, [](Dim &d) { d = Dim(d.value()); });
    Tensor zeros = ops::zeros<Tensor>(baseSizes_, grads[0].dtype());
    return {ops::as_strided_scatter(zeros, grads[0], sizes_, strides_, offset_)};
  }

  bool parts(NodeParts &out) const override {
    ViewOfBaseNode own(*this);
    forEachExpr({&own.baseSizes_, &own.sizes_, &own.strides_}, own.offset_, [&](Dim &d) { out.dims.push_back(d); });
    return true;
  }
  Ref<GradNode> copyWith(const NodeValues &values) const override {
    Ref<ViewOfBaseNode> copy(new ViewOfBaseNode(*this));
    size_t at = 0;
    if (!values.dims.empty())
      forEachExpr({&copy->baseSizes_, &copy->sizes_, &copy->strides_}, copy->offset_,
                  [&](Dim &d) { d = Dim(values.dims[at++]); });
    copy->edges.assign(values.edges.begin(), values.edges.end());
    return copy;
  }

private:
  ViewOfBaseNode(const ViewOfBaseNode &like)
      : GradNode(), baseSizes_(like.baseSizes_), sizes_(like.sizes_), strides_(like.strides_), offset_(like.offset_) {
    renewsView = true;
  }
  Dims baseSizes_, sizes_, strides_;
  Dim offset_;
  uint64_t session_ = currentSession(); // whose expressions these are
};

} // namespace

void GradMeta::setHistory(Ref<GradNode> newNode, uint32_t newIndex) {
  if (retainsGrad && node)
    for (auto &r : node->retained)
      if (r.second == this)
        r.second = nullptr;
  node = std::move(newNode);
  index = newIndex;
  if (retainsGrad && node)
    node->retained.push_back({index, this});
}

GradMeta::~GradMeta() {
  setHistory({}, 0);
  if (accumulator)
    static_cast<AccumulateNode *>(accumulator.get())->leaf = nullptr;
}

GradMeta *gradMetaOrNull(const Tensor &t) { return static_cast<GradMeta *>(t.impl()->autograd.get()); }

GradMeta &gradMetaOf(const Tensor &t) {
  if (!t.impl()->autograd)
    t.impl()->autograd = std::make_unique<GradMeta>();
  return *gradMetaOrNull(t);
}

Ref<GradNode> gradFunction(const Tensor &t) {
  GradMeta *m = gradMetaOrNull(t);
  if (!m)
    return {};
  if (m->base.defined() && m->viewVersion != t.storage().version() && requiresGrad(m->base)) {
    if (gradEdgeOf(m->base)) {
      m->setHistory(makeRef<ViewOfBaseNode>(m->base, t), 0);
    }
    m->viewVersion = t.storage().version();
  }
  return m->node;
}

bool requiresGrad(const Tensor &t) { return t.impl()->requiresGrad || static_cast<bool>(gradFunction(t)); }
bool isLeaf(const Tensor &t) { return !gradFunction(t); }

GradEdge gradEdgeOf(const Tensor &t) {
  if (Ref<GradNode> node = gradFunction(t))
    return {node, gradMetaOrNull(t)->index};
  if (!t.impl()->requiresGrad)
    return {};
  GradMeta &m = gradMetaOf(t);
  if (!m.accumulator)
    m.accumulator = makeRef<AccumulateNode>(t.impl());
  return {m.accumulator, 0};
}

void setRequiresGrad(const Tensor &t, bool on) {
  DLC_REQUIRE(!on || isFloat(t.dtype()), Runtime,
              "requires_grad_: only floating tensors can require gradients, this one is ", t.dtype(),
              "\nconvert it with float() first");
  DLC_REQUIRE(on || isLeaf(t), Runtime,
              "requires_grad_: a result of recorded ops can't stop requiring gradients"
              "\nuse detach() to get a tensor that does not");
  t.impl()->requiresGrad = on;
}

Tensor detach(const Tensor &t) {
  const TensorImpl &from = *t.impl();
  Tensor a = Tensor::viewOf(from.storage, from.sizes, from.strides, from.offset, from.dtype);
  a.copyTrace(t);
  return a;
}

void detachInPlace(const Tensor &t) {
  if (GradMeta *m = gradMetaOrNull(t)) {
    DLC_REQUIRE(!m->base.defined(), Runtime, "detach_: `self` is a view and can't be detached in place\nuse detach()");
    m->setHistory({}, 0);
  }
  t.impl()->requiresGrad = false;
}

int64_t addHook(const Tensor &t, std::function<Tensor(const Tensor &)> hook) {
  GradEdge e = gradEdgeOf(t);
  DLC_REQUIRE(e, Runtime, "register_hook: `self` does not require grad\ncall requires_grad_() on it first");
  if (GradObserver *observer = gradObserver(); observer && !isLeaf(t))
    observer->hooked(t);
  e.node->hooks.push_back({e.index, std::move(hook)});
  return static_cast<int64_t>(e.node->hooks.size()) - 1;
}

bool hasGradHooks(const Tensor &t) {
  const GradMeta *m = gradMetaOrNull(t);
  if (!m)
    return false;
  const GradNode *node = m->node ? m->node.get() : m->accumulator.get();
  uint32_t index = m->node ? m->index : 0;
  auto ofThis = [&](const auto &entry) { return entry.first == index; };
  return node && (std::any_of(node->hooks.begin(), node->hooks.end(), ofThis) ||
                  std::any_of(node->retained.begin(), node->retained.end(), ofThis));
}

void retainGrad(const Tensor &t) {
  GradEdge e = gradEdgeOf(t);
  DLC_REQUIRE(e, Runtime, "retain_grad: `self` does not require grad\ncall requires_grad_() on it first");
  GradMeta &m = gradMetaOf(t);
  if (isLeaf(t) || m.retainsGrad)
    return;
  if (GradObserver *observer = gradObserver())
    observer->hooked(t);
  m.retainsGrad = true;
  e.node->retained.push_back({e.index, &m});
}

void rebaseHistory(const Tensor &self, Ref<GradNode> node) {
  GradMeta &m = gradMetaOf(self);
  if (!m.base.defined()) {
    m.setHistory(std::move(node), 0);
    self.impl()->requiresGrad = true;
    return;
  }
  const Tensor &base = m.base;
  DLC_REQUIRE(base.isContiguous(), NotImplemented, "an in-place op on a view of a non-contiguous tensor of sizes ",
              listStr(base.sizes()), " can't be differentiated\ncall contiguous() on the base first");
  GradMeta &b = gradMetaOf(base);
  b.setHistory(makeRef<CopySlicesNode>(base, self, std::move(node)), 0);
  base.impl()->requiresGrad = true;
  m.setHistory(makeRef<ViewOfBaseNode>(base, self), 0);
  m.viewVersion = self.storage().version();
  self.impl()->requiresGrad = true;
}

} // namespace dlc
