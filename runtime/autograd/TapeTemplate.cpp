// Making the nodes of a captured call again. Nodes are made in the order of the recorded ones, so that the engine's
// rule (consumers after producers) holds; each has the edges, saved tensors and numbers of its model with stand-ins for
// what differs between calls.
#include "runtime/autograd/TapeTemplate.h"
#include <algorithm>
#include <set>

namespace dlc {
namespace {

bool isConst(const Dims &dims) {
  for (const Dim &d : dims)
    if (!d.isConst())
      return false;
  return true;
}

/// A copy that keeps nothing alive.
Ref<GradNode> blankCopy(const GradNode &node, const NodeParts &parts) {
  std::vector<Tensor> tensors(parts.tensors.size());
  std::vector<uint32_t> versions(parts.tensors.size());
  std::vector<GradEdge> edges(node.edges.size());
  return node.copyWith({tensors, versions, edges, {}, {}});
}

Sizes evaluated(const Dims &dims, Ints symbols) {
  Sizes s;
  for (const Dim &d : dims)
    s.push_back(evaluate(d, symbols));
  return s;
}

} // namespace

void TapeTemplate::Layout::set(const TensorMeta &m) {
  dtype = m.dtype;
  sizeDims = m.sizes;
  strideDims = m.strides;
  symbolic = !isConst(m.sizes) || !isConst(m.strides);
  for (const Dim &d : m.sizes)
    sizes.push_back(d.value());
  for (const Dim &d : m.strides)
    strides.push_back(d.value());
}

Tensor TapeTemplate::Layout::view(const Ref<Storage> &storage, int64_t from, Ints symbols) const {
  int64_t at = from + evaluate(offset, symbols);
  if (!symbolic)
    return Tensor::viewOf(storage, sizes, strides, at, dtype);
  return Tensor::viewOf(storage, evaluated(sizeDims, symbols), evaluated(strideDims, symbols), at, dtype);
}

Number TapeTemplate::numberOf(const NumberPart &p, const TapeValues &v) {
  if (p.at >= 0)
    return v.numbers[static_cast<size_t>(p.at)];
  int64_t n = evaluate(p.dim, v.symbols);
  return p.like.isFloat() ? Number(static_cast<double>(n)) : Number(n);
}

/// One instantiation.
class TapeTemplate::Run {
public:
  Run(const TapeTemplate &t, const TapeValues &values) : t_(t), v_(values) {
    for (int32_t i : t.used_)
      entryEdges_.push_back(gradEdgeOf(values.tensors[static_cast<size_t>(i)]));
    made_.reserve(t.nodes_.size());
    for (const Node &n : t.nodes_)
      made_.push_back(make(n));
  }
  GradEdge edge(const Edge &e) const {
    if (e.entry >= 0)
      return entryEdges_[static_cast<size_t>(e.entry)];
    return e.node >= 0 ? GradEdge{made_[static_cast<size_t>(e.node)], e.index} : GradEdge();
  }
  void attach(const Tensor &t, const Edge &e) const {
    GradEdge to = edge(e);
    if (!to)
      return;
    gradMetaOf(t).setHistory(to.node, to.index);
    t.impl()->requiresGrad = true;
  }
  Tensor tensor(const Saved &s, uint32_t &version) const {
    switch (s.kind) {
    case Saved::Kind::Same:
      version = s.same.defined() && s.same.storageRef() ? s.same.storage().version() : 0;
      return s.same;
    case Saved::Kind::Entry: {
      const Tensor &t = v_.tensors[static_cast<size_t>(s.at)];
      version = t.storage().version() - s.behind;
      return t;
    }
    case Saved::Kind::View: {
      const TensorImpl *of = v_.tensors[static_cast<size_t>(s.at)].impl();
      version = of->storage->version() - s.behind;
      return s.layout.view(of->storage, of->offset, v_.symbols);
    }
    case Saved::Kind::Shape: {
      Tensor t = s.layout.view(Ref<Storage>(), 0, v_.symbols);
      t.impl()->wrapped = s.wrapped;
      return t;
    }
    case Saved::Kind::Number:
      version = 0;
      return Tensor(v_.numbers[static_cast<size_t>(s.at)]);
    case Saved::Kind::Size: {
      version = 0;
      return Tensor(numberOf({-1, s.dim, s.number}, v_));
    }
    }
    __builtin_unreachable();
  }
  /// What only views know of: their base.
  void setBase(const Tensor &view, const Base &b, Span<const Tensor> results) const {
    if (b.kind == Base::Kind::None)
      return;
    GradMeta &m = gradMetaOf(view);
    if (b.kind == Base::Kind::Own) {
      uint32_t version;
      m.base = tensor(b.own, version);
      attach(m.base, b.history);
    } else {
      m.base = b.kind == Base::Kind::Entry ? v_.tensors[static_cast<size_t>(b.at)] : results[static_cast<size_t>(b.at)];
    }
    m.viewVersion = view.storage().version() - b.behind;
  }

private:
  Ref<GradNode> make(const Node &n) const {
    SmallVec<Tensor, 8> tensors;
    SmallVec<uint32_t, 8> versions;
    SmallVec<GradEdge, 8> edges;
    SmallVec<Number, 4> numbers;
    SmallVec<int64_t, 8> dims;
    for (const Saved &s : n.saved) {
      uint32_t version = 0;
      tensors.push_back(tensor(s, version));
      versions.push_back(version);
    }
    for (const Edge &e : n.edges)
      edges.push_back(edge(e));
    for (const NumberPart &p : n.numbers)
      numbers.push_back(numberOf(p, v_));
    for (const Dim &d : n.dims)
      dims.push_back(evaluate(d, v_.symbols));
    NodeValues values;
    values.tensors = Span<const Tensor>(tensors.data(), tensors.size());
    values.versions = Span<const uint32_t>(versions.data(), versions.size());
    values.edges = Span<const GradEdge>(edges.data(), edges.size());
    values.numbers = Span<const Number>(numbers.data(), numbers.size());
    values.dims = Ints(dims.data(), dims.size());
    Ref<GradNode> made = n.model->copyWith(values);
    made->recorded = true;
    return made;
  }

  const TapeTemplate &t_;
  const TapeValues &v_;
  SmallVec<GradEdge, 8> entryEdges_;
  std::vector<Ref<GradNode>> made_;
};

void TapeTemplate::instantiate(const TapeValues &values, Span<const Tensor> results) const {
  Run run(*this, values);
  for (const Result &r : results_) {
    const Tensor &t = results[r.result];
    run.attach(t, r.history);
    if (r.requiresGrad)
      t.impl()->requiresGrad = true;
  }
  for (const Result &r : entries_)
    run.attach(values.tensors[r.result], r.history);
  for (const Result &r : results_)
    run.setBase(results[r.result], r.base, results);
}

std::vector<int32_t> TapeTemplate::tensorsRead() const {
  std::set<int32_t> read(used_.begin(), used_.end());
  auto add = [&](const Saved &s) {
    if (s.kind == Saved::Kind::Entry || s.kind == Saved::Kind::View)
      read.insert(s.at);
  };
  for (const Node &n : nodes_)
    std::for_each(n.saved.begin(), n.saved.end(), add);
  for (const Result &r : results_) {
    add(r.base.own);
    if (r.base.kind == Base::Kind::Entry)
      read.insert(r.base.at);
  }
  for (const Result &r : entries_)
    read.insert(static_cast<int32_t>(r.result));
  return {read.begin(), read.end()};
}

void TapeTemplate::numbersRead(std::vector<int32_t> &numbers, std::vector<Dim> &dims) const {
  auto add = [&](const Dims &d) { dims.insert(dims.end(), d.begin(), d.end()); };
  auto saved = [&](const Saved &s) {
    if (s.kind == Saved::Kind::Number)
      numbers.push_back(s.at);
    dims.push_back(s.dim);
    dims.push_back(s.layout.offset);
    add(s.layout.sizeDims);
    add(s.layout.strideDims);
  };
  for (const Node &n : nodes_) {
    std::for_each(n.saved.begin(), n.saved.end(), saved);
    for (const NumberPart &p : n.numbers) {
      if (p.at >= 0)
        numbers.push_back(p.at);
      dims.push_back(p.dim);
    }
    dims.insert(dims.end(), n.dims.begin(), n.dims.end());
  }
  for (const Result &r : results_)
    saved(r.base.own);
}

TapeCapture::TapeCapture() : first_(gradSequence()) {}

void TapeCapture::addEntry(const Tensor &t, int32_t index) {
  if (!byTensor_.try_emplace(t.impl(), entries_.size()).second)
    return;
  Entry e{t, index, requiresGrad(t) ? gradEdgeOf(t) : GradEdge()};
  if (e.edge)
    byEdge_.try_emplace({e.edge.node.get(), e.edge.index}, entries_.size());
  entries_.push_back(std::move(e));
}

bool TapeCapture::fail(const std::string &why) {
  if (why_.empty())
    why_ = why;
  return false;
}

/// All nodes of the call below `root`, by their order.
bool TapeCapture::collect(const GradEdge &root) {
  std::vector<GradEdge> pending{root};
  while (!pending.empty()) {
    GradEdge e = std::move(pending.back());
    pending.pop_back();
    if (!e || byEdge_.count({e.node.get(), e.index}) || found_.count(e.node->sequence))
      continue;
    if (e.node->sequence < first_)
      return fail(e.node->name() == "AccumulateGrad" ? "a leaf that wants a gradient was made inside of it"
                                                     : "a gradient flows to a tensor that it was not given");
    if (!e.node->hooks.empty() || !e.node->retained.empty())
      return fail("a hook or retain_grad() on a tensor made inside of it");
    found_.emplace(e.node->sequence, e.node);
    for (const GradEdge &next : e.node->edges)
      pending.push_back(next);
  }
  return true;
}

bool TapeCapture::edgeOf(const GradEdge &e, Edge &out) {
  out = Edge();
  if (!e)
    return true;
  if (auto it = byEdge_.find({e.node.get(), e.index}); it != byEdge_.end()) {
    std::vector<int32_t> &used = out_->used_;
    int32_t index = entries_[it->second].index;
    auto at = std::find(used.begin(), used.end(), index);
    out.entry = static_cast<int32_t>(at - used.begin());
    if (at == used.end())
      used.push_back(index);
    return true;
  }
  auto it = made_.find(e.node.get());
  if (it == made_.end())
    return fail("a history that does not belong to it");
  out.node = it->second;
  out.index = e.index;
  return true;
}

bool TapeCapture::describeSaved(const NodeParts::Saved &from, Saved &to) {
  const Tensor &t = from.tensor;
  if (!t.defined())
    return true;
  const SymbolicLayout *symbolic = t.impl()->symbolic.get();
  to.wrapped = t.isWrapped();
  if (t.isWrapped() && t.storageRef()) {
    const void *ref = symbolic ? symbolic->number : nullptr;
    to.same = t;
    if (const DimExpr *e = exprOfRef(ref)) {
      to.kind = Saved::Kind::Size;
      to.number = t.item().hint();
      to.dim = Dim(to.number.toInt(), e);
    } else if (ref) {
      to.kind = Saved::Kind::Number;
      to.at = sources_->numberOf(ref);
      return to.at >= 0 || fail("a number of unknown origin");
    }
    return true;
  }
  TensorMeta m = t.meta();
  if (!t.storageRef()) {
    to.layout.set(m);
    to.kind = to.layout.symbolic ? Saved::Kind::Shape : Saved::Kind::Same;
    to.same = t;
    return true;
  }
  to.behind = t.storage().version() - from.version;
  if (from.leaf) {
    if (auto it = byTensor_.find(t.impl()); it != byTensor_.end()) {
      to.kind = Saved::Kind::Entry;
      to.at = entries_[it->second].index;
      return true;
    }
    if (requiresGrad(t))
      return fail("a leaf that wants a gradient was made inside of it");
  }
  to.kind = Saved::Kind::View;
  to.layout.set(m);
  return sources_->storageOf(t, to.at, to.layout.offset) || fail("a tensor of unknown origin is saved for backward");
}

bool TapeCapture::addNode(const Ref<GradNode> &node) {
  TapeTemplate::Node n;
  NodeParts parts;
  if (!node->parts(parts))
    return fail("its gradient needs " + node->name());
  n.model = blankCopy(*node, parts);
  for (const NodeParts::Saved &s : parts.tensors)
    if (n.saved.emplace_back(); !describeSaved(s, n.saved.back()))
      return false;
  for (const Number &number : parts.numbers) {
    TapeTemplate::NumberPart p{-1, Dim(), number.hint()};
    if (const DimExpr *e = exprOfRef(number.ref()))
      p.dim = Dim(p.like.toInt(), e);
    else if ((p.at = sources_->numberOf(number.ref())) < 0)
      return fail("a number of unknown origin");
    n.numbers.push_back(p);
  }
  n.dims = parts.dims;
  for (const GradEdge &e : node->edges)
    if (n.edges.emplace_back(); !edgeOf(e, n.edges.back()))
      return false;
  made_[node.get()] = static_cast<int32_t>(out_->nodes_.size());
  out_->nodes_.push_back(std::move(n));
  return true;
}

bool TapeCapture::describeBase(const Tensor &t, Span<const Tensor> results, TapeTemplate::Base &to) {
  using Kind = TapeTemplate::Base::Kind;
  GradMeta *m = gradMetaOrNull(t);
  if (!m || !m->base.defined())
    return true;
  const Tensor base = m->base;
  to.behind = t.storage().version() - m->viewVersion;
  if (auto it = byTensor_.find(base.impl()); it != byTensor_.end()) {
    to.kind = Kind::Entry;
    to.at = entries_[it->second].index;
    return true;
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].is(base)) {
      to.kind = Kind::Result;
      to.at = static_cast<int32_t>(i);
      return true;
    }
  to.kind = Kind::Own;
  if (requiresGrad(base) && isLeaf(base))
    return fail("a leaf that wants a gradient was made inside of it");
  return describeSaved({base, base.storage().version(), false}, to.own) && edgeOf(gradEdgeOf(base), to.history);
}

bool TapeCapture::addResult(const Tensor &t, uint32_t index, Span<const Tensor> results, bool entry) {
  TapeTemplate::Result r;
  r.result = index;
  if (Ref<GradNode> node = gradFunction(t)) {
    if (!edgeOf(gradEdgeOf(t), r.history))
      return false;
  } else {
    r.requiresGrad = t.impl()->requiresGrad;
  }
  if (!entry && !describeBase(t, results, r.base))
    return false;
  if (r.history.node >= 0 || r.history.entry >= 0 || r.requiresGrad || r.base.kind != TapeTemplate::Base::Kind::None)
    (entry ? out_->entries_ : out_->results_).push_back(std::move(r));
  return true;
}

std::shared_ptr<TapeTemplate> TapeCapture::finish(Span<const Tensor> results, TapeSources &sources, std::string &why) {
  out_ = std::make_shared<TapeTemplate>();
  sources_ = &sources;
  std::vector<const Entry *> changed;
  bool ok = true;
  for (const Entry &e : entries_) {
    GradEdge now = requiresGrad(e.tensor) ? gradEdgeOf(e.tensor) : GradEdge();
    if (now.node == e.edge.node && now.index == e.edge.index)
      continue;
    changed.push_back(&e);
    ok = ok && collect(now);
  }
  for (size_t i = 0; ok && i < results.size(); ++i) {
    if (gradFunction(results[i]))
      ok = collect(gradEdgeOf(results[i]));
    GradMeta *m = gradMetaOrNull(results[i]);
    if (ok && m && m->base.defined() && !byTensor_.count(m->base.impl()) && gradFunction(m->base))
      ok = collect(gradEdgeOf(m->base));
  }
  for (auto it = found_.begin(); ok && it != found_.end(); ++it)
    ok = addNode(it->second);
  for (size_t i = 0; ok && i < results.size(); ++i)
    ok = addResult(results[i], static_cast<uint32_t>(i), results, false);
  for (size_t i = 0; ok && i < changed.size(); ++i) {
    if (gradMetaOrNull(changed[i]->tensor) && gradMetaOrNull(changed[i]->tensor)->base.defined())
      ok = fail("an in-place op gives a view that it was given a gradient");
    else if (!gradFunction(changed[i]->tensor))
      ok = fail("requires_grad of a tensor that it was given is changed");
    else
      ok = addResult(changed[i]->tensor, static_cast<uint32_t>(changed[i]->index), results, true);
  }
  why = why_;
  return ok ? std::move(out_) : nullptr;
}

} // namespace dlc
