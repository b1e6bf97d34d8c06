// Storages while recording: which graph value is whose memory, reads and writes of views through it.
#include "frontend/trace/Recorder.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/op/Ops.h"

namespace dlc::trace {
namespace {

bool sameView(const Tensor &t, const Sizes &sizes, const Sizes &strides, int64_t offset, DType dtype) {
  return t.offset() == offset && t.dtype() == dtype && t.sizes() == sizes && t.strides() == strides;
}

/// Dimensions in order of decreasing stride: the permutation that makes a dense view row-major.
SmallVec<int64_t> denseOrder(const Sizes &sizes, const Sizes &strides) {
  SmallVec<int64_t> order;
  for (size_t i = 0; i < sizes.size(); ++i)
    order.push_back(static_cast<int64_t>(i));
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return std::make_pair(-strides[a], a) < std::make_pair(-strides[b], b); });
  return order;
}

/// The view has all of the bytes of its storage and no two elements share one.
bool coversStorage(const Tensor &t) {
  return t.isNonOverlapping() && t.offset() == 0 &&
         static_cast<size_t>(t.numel()) * itemSize(t.dtype()) == t.storage().bytes();
}

} // namespace

int32_t Recorder::addInput(State &s, const Tensor &view, const Tensor &original, bool whole) {
  for (int32_t i : s.inputsOf)
    if (sameView(inputTensors_[i], view.sizes(), view.strides(), view.offset(), view.dtype())) {
      if (symbolic_)
        (void)(graph_.values[graph_.inputs[i]].sizes == view.meta().sizes);
      return graph_.inputs[i];
    }
  TensorMeta m = view.meta();
  Tensor kept = detach(view);
  if (s.storage->foreign()) { // others may write to it while we are lazy: take the values now
    SymbolicScope values(nullptr);
    SmallVec<Tensor, 3> copy;
    Arg<Tensor> arg[2] = {Arg<Tensor>::of(kept), Arg<Tensor>::ofStr(Str("preserve_format"))};
    runEager(opInfo(OpId::Clone), arg, copy, CallForm::Functional);
    kept = copy[0];
    m.strides.clear();
    m.strides.append(kept.strides().begin(), kept.strides().end());
  }
  m.offset = 0;
  int32_t value = graph_.addValue(m);
  int32_t index = static_cast<int32_t>(graph_.inputs.size());
  graph_.inputs.push_back(value);
  inputTensors_.push_back(kept);
  inputState_.push_back(!s.storage->foreign() && !(view.impl()->requiresGrad && isTaping()) && belongsToModule &&
                        belongsToModule(view));
  if (keepMarks_ || readMarks) {
    inputMarks_.resize(inputTensors_.size());
    inputMarks_.back().parameter = view.impl()->requiresGrad;
    if (readMarks)
      readMarks(view, inputMarks_.back());
  }
  if (observer_) {
    originals_.push_back(original);
    wholeStorage_.push_back(whole);
  }
  if (!s.storage->foreign())
    s.inputsOf.push_back(index);
  return value;
}

/// Facts that make a layout row-major in this order of dimensions, whatever the symbols are.
void Recorder::factsOfLayout(const Dims &strides, const Dims &sizes, Span<const int64_t> order) {
  Dim step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (sizes[order[i]].isConst() && sizes[order[i]].value() <= 1)
      continue;
    (void)(strides[order[i]] == step);
    step *= sizes[order[i]];
  }
}

/// The base in row-major order of its memory, which is what as_strided indexes.
int32_t Recorder::toBaseOrder(const State &s, int32_t value) {
  SmallVec<int64_t> order = denseOrder(s.sizes, s.strides);
  if (symbolic_)
    factsOfLayout(s.strideDims(), s.sizeDims(), Span<const int64_t>(order.data(), order.size()));
  bool identity = true;
  for (size_t i = 0; i < order.size(); ++i)
    identity &= order[i] == static_cast<int64_t>(i);
  if (identity)
    return value;
  GVal v{value};
  Arg<GVal> args[2] = {Arg<GVal>::of(v), Arg<GVal>::ofInts(Ints(order.data(), order.size()))};
  SmallVec<TensorMeta, 3> metas;
  return node(opInfo(OpId::Permute), args, metas);
}

int32_t Recorder::stridedRead(State &s, const Tensor &t) {
  DLC_REQUIRE(t.dtype() == s.dtype, NotImplemented, "a view of another dtype of a tensor changed in place");
  GVal base{toBaseOrder(s, s.base)};
  TensorMeta m = t.meta();
  Arg<GVal> args[4] = {Arg<GVal>::of(base), Arg<GVal>::ofDims(m.sizes), Arg<GVal>::ofDims(m.strides),
                       Arg<GVal>::ofDim(m.offset - Dim(s.offset))};
  SmallVec<TensorMeta, 3> metas;
  return node(opInfo(OpId::AsStrided), args, metas);
}

/// Whether the view is the base view; the same one for all values of the symbols, or facts say so.
bool Recorder::isBase(const State &s, const Tensor &t) const {
  if (!sameView(t, s.sizes, s.strides, s.offset, s.dtype))
    return false;
  if (symbolic_) {
    TensorMeta m = t.meta();
    return m.sizes == s.sizeDims() && m.strides == s.strideDims() && m.offset == Dim(s.offset);
  }
  return true;
}

int32_t Recorder::valueOf(const Tensor &t) {
  const TensorImpl *impl = t.impl();
  if (impl->traceEpoch == epoch_ && impl->traceVersion == impl->storage->version() && impl->traceValue >= 0 &&
      !impl->storage->foreign())
    return impl->traceValue;
  State &s = track(t);
  int32_t value;
  if (s.base < 0)
    value = addInput(s, t, t);
  else if (isBase(s, t))
    value = s.base;
  else
    value = stridedRead(s, t);
  remember(t, value);
  return value;
}

/// Before the first write to an input: a base that covers all of its storage.
void Recorder::establishBase(State &s, const Tensor &t) {
  if (s.base >= 0)
    return;
  bool flat = true;
  Tensor original = coveringView(s, t, flat), whole = original;
  if (flat) {
    int64_t n = static_cast<int64_t>(s.storage->bytes() / itemSize(t.dtype()));
    whole = Tensor::viewOf(t.storageRef(), {n}, {int64_t(1)}, 0, t.dtype());
    if (symbolic_)
      attach(whole, whole.meta());
  }
  setBase(s, whole);
  s.dtype = t.dtype();
  s.base = addInput(s, whole, original, flat);
  for (size_t i = 0; i < graph_.inputs.size(); ++i)
    if (graph_.inputs[i] == s.base)
      s.writeTo = static_cast<int32_t>(i);
}

void Recorder::setBase(State &s, const Tensor &base) {
  s.sizes = base.sizes();
  s.strides = base.strides();
  s.offset = 0;
  if (symbolic_) {
    TensorMeta m = base.meta();
    s.symSizes = m.sizes;
    s.symStrides = m.strides;
  }
}

/// A view that covers the storage of `t`: the written tensor or an input. With symbols it must cover it for all of
/// their values, which a row-major one does; or else the sizes are those of this recording.
Tensor Recorder::coveringView(State &s, const Tensor &t, bool &flat) {
  flat = false;
  if (coversStorage(t) && (!symbolic_ || coversAlways(t)))
    return t;
  for (int32_t i : s.inputsOf) {
    const Tensor &c = observer_ ? originals_[static_cast<size_t>(i)] : inputTensors_[static_cast<size_t>(i)];
    if (c.dtype() == t.dtype() && c.isContiguous() && coversStorage(c) && (!symbolic_ || coversAlways(c)))
      return c;
  }
  if (symbolic_)
    sizesRead(t);
  flat = !coversStorage(t);
  return t;
}

bool Recorder::coversAlways(const Tensor &t) {
  TensorMeta m = t.meta(); // asks for its layout
  if (!t.isContiguous())
    return false;
  HintScope decide(false);
  return t.isContiguous() && m.offset == Dim(0);
}

void Recorder::write(const Tensor &t, int32_t value) {
  State &s = track(t);
  if (s.saved && gradLogger_)
    gradLogger_->overwritten();
  establishBase(s, t);
  if (isBase(s, t)) {
    s.base = value;
  } else {
    GVal base{toBaseOrder(s, s.base)}, src{value};
    TensorMeta m = t.meta();
    Arg<GVal> args[5] = {Arg<GVal>::of(base), Arg<GVal>::of(src), Arg<GVal>::ofDims(m.sizes),
                         Arg<GVal>::ofDims(m.strides), Arg<GVal>::ofDim(m.offset - Dim(s.offset))};
    SmallVec<TensorMeta, 3> metas;
    s.base = node(opInfo(OpId::AsStridedScatter), args, metas);
    // The scatter's result is row-major over the memory order; read it back in the base view's order.
    SmallVec<int64_t> order = denseOrder(s.sizes, s.strides), inverse(order.size());
    bool identity = true;
    for (size_t i = 0; i < order.size(); ++i) {
      inverse[order[i]] = static_cast<int64_t>(i);
      identity &= order[i] == static_cast<int64_t>(i);
    }
    if (!identity) {
      GVal v{s.base};
      Arg<GVal> perm[2] = {Arg<GVal>::of(v), Arg<GVal>::ofInts(Ints(inverse.data(), inverse.size()))};
      s.base = node(opInfo(OpId::Permute), perm, metas);
    }
  }
  s.dirty = s.input;
  t.storage().bumpVersion();
  ++s.bumps;
  if (s.input)
    s.storage->setLazy(this); // whoever reads the memory now must run the piece first
  remember(t, value);
}

} // namespace dlc::trace
