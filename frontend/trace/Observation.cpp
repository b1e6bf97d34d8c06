// The recorder under observation: where operands come from, symbolic sizes, what a session is told.
#include "frontend/trace/Recorder.h"
#include "runtime/core/Session.h"
#include "runtime/op/Ops.h"
#include <atomic>

namespace dlc::trace {
namespace {
std::atomic<uint64_t> nextSession{1};

Sizes values(const Dims &dims) {
  Sizes s;
  for (const Dim &d : dims)
    s.push_back(d.value());
  return s;
}

bool isConst(const Dims &dims) {
  for (const Dim &d : dims)
    if (!d.isConst())
      return false;
  return true;
}
} // namespace

NumberSource sourceOf(const Number &n) {
  NumberSource s;
  s.value = n.hint();
  if (isSessionRef(n.ref())) {
    s.kind = NumberSource::Kind::Session;
    s.ref = n.ref();
  } else if (const DimExpr *e = exprOfRef(n.ref())) {
    s.kind = NumberSource::Kind::Size;
    s.size = Dim(n.hint().toInt(), e);
  }
  return s;
}

std::optional<TensorMeta> tracedMeta(const Tensor &t) {
  return symbolicHost() ? std::optional<TensorMeta>(t.meta()) : std::nullopt;
}

void Recorder::setObserver(Observer *observer) {
  DLC_CHECK(!numStates_, "an observer is changed while a piece is recorded");
  for (const Tensor &t : described_)
    t.impl()->symbolic.reset();
  described_.clear();
  observer_ = observer;
  symbolic_ = observer && observer->symbolic();
  session_ = symbolic_ ? nextSession++ : 0;
  setCurrentSession(session_);
}

Number Recorder::operand(const Number &n, NumberSource source) {
  if (observer_)
    sources_.push_back(std::move(source));
  return graph_.addNumber(n.hint());
}

/// The operands of a random op: where its generator stands, which moves on by the op's blocks.
void Recorder::takeRng(Arg<GVal> &to, Generator &g, Span<const Arg<Tensor>> args, const OpInfo &op) {
  MetaArgs metas(args);
  MetaResult r;
  op.meta(metas.args, r);
  NumberSource seed, offset;
  seed.kind = NumberSource::Kind::Seed;
  offset.kind = NumberSource::Kind::Offset;
  seed.generator = offset.generator = &g;
  seed.value = Number(static_cast<int64_t>(g.seed()));
  if (symbolic_) {
    Dim n = r.outs.empty() ? Dim(0) : r.outs[0].numel();
    for (const Arg<TensorMeta> &a : metas.args)
      if (a.tag == ArgTag::Value) {
        n = maxDim(n, a.value->numel());
        break;
      }
    offset.blocks = floorDiv(n + Dim(3), Dim(4));
  } else {
    offset.blocks = Dim(static_cast<int64_t>(rngBlocks(metas.args, r)));
  }
  offset.value = Number(static_cast<int64_t>(g.take(rngBlocks(metas.args, r))));
  to.num = operand(seed.value, seed);
  to.dim = Dim(numberIndex(operand(offset.value, offset)));
}

/// The op's rule refused the call: says it with the sizes of this call in the place of expressions.
void Recorder::raisePlainly(const OpInfo &op, Span<const Arg<Tensor>> args) {
  OwnedArgs<Tensor> plain(args);
  for (const Arg<Tensor> &a : plain.args()) {
    const_cast<Dim &>(a.dim) = Dim(a.dim.value());
    if (a.tag == ArgTag::DimList)
      for (const Dim &d : a.dimList())
        const_cast<Dim &>(d) = Dim(d.value());
  }
  SymbolicScope values(nullptr);
  MetaArgs metas(plain.args());
  MetaResult r;
  op.meta(metas.args, r);
}

void Recorder::attach(const Tensor &t, const TensorMeta &m) {
  auto layout = std::make_shared<SymbolicLayout>();
  layout->session = session_;
  layout->sizes = m.sizes;
  layout->strides = m.strides;
  layout->offset = m.offset;
  t.impl()->symbolic = std::move(layout);
}

/// Results of an op that ran eagerly get the sizes that its meta function gives.
void Recorder::symbolicResults(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs) {
  MetaArgs metas(args);
  MetaResult r;
  {
    HintScope rule(false);
    op.meta(metas.args, r);
  }
  for (size_t i = 0; i < outs.size() && i < r.outs.size(); ++i)
    if (outs[i].defined() && r.outs[i].defined && values(r.outs[i].sizes) == outs[i].impl()->sizes)
      attach(outs[i], r.outs[i]);
}

void Recorder::describe(const Tensor &t, TensorMeta &meta) {
  if (!symbolic_)
    return;
  const SymbolicLayout *layout = t.impl()->symbolic.get();
  if (t.isWrapped() || (layout && layout->number))
    return;
  if (!layout || layout->session != session_) {
    if (!t.storageRef()) // stands for a shape only
      return;
    TensorMeta m = meta;
    observer_->inputMeta(t, m);
    for (Dim &d : m.sizes) // rules and layouts treat 0 and 1 apart
      if (d.value() <= 1)
        d = Dim(d.concretize());
      else if (!d.isConst())
        (void)(d >= Dim(2));
    attach(t, m);
    described_.push_back(t);
    layout = t.impl()->symbolic.get();
  }
  meta.sizes = layout->sizes;
  meta.strides = layout->strides;
  meta.offset = layout->offset;
}

void Recorder::sizesRead(const Tensor &t) {
  const SymbolicLayout *layout = t.impl()->symbolic.get();
  if (!layout || layout->session != session_)
    return;
  if (isConst(layout->sizes) && isConst(layout->strides) && layout->offset.isConst())
    return;
  for (const Dim &d : layout->sizes)
    (void)d.concretize();
  for (const Dim &d : layout->strides)
    (void)d.concretize();
  (void)layout->offset.concretize();
}

void Recorder::numberRead(const Number &n) {
  if (!symbolic_)
    return;
  if (isSessionRef(n.ref()))
    return observer_->numberRead(n.ref());
  if (const DimExpr *e = exprOfRef(n.ref())) {
    (void)Dim(n.hint().toInt(), e).concretize();
    return;
  }
  size_t index = static_cast<size_t>(numberIndex(n)); // an operand of the graph: whoever gave it
  if (index >= sources_.size())
    return;
  const NumberSource &s = sources_[index];
  if (s.kind == NumberSource::Kind::Session)
    observer_->numberRead(s.ref);
  else if (s.kind == NumberSource::Kind::Size)
    (void)s.size.concretize();
}

/// The graph with the sizes of this recording in the place of expressions.
void Recorder::makeConcrete() {
  auto concrete = [](Dims &dims) {
    for (Dim &d : dims)
      d = Dim(d.value());
  };
  for (TensorMeta &m : graph_.values) {
    concrete(m.sizes);
    concrete(m.strides);
    m.offset = Dim(m.offset.value());
  }
  for (GraphNode &n : graph_.nodes)
    forEachDim(n.args, [](Dim &d) { d = Dim(d.value()); });
  for (GraphOutput &o : graph_.outputs)
    concrete(o.strides);
}

void Recorder::preparePiece(PieceRecord &record) {
  record.inputs = std::move(originals_);
  record.wholeStorage = std::move(wholeStorage_);
  record.numbers = std::move(sources_);
  piece_.record = &record;
  if (symbolic_) {
    piece_.symbolic = graph_;
    makeConcrete();
  }
}

} // namespace dlc::trace
