// Recording: one op at a time into the graph, storages by version.
#include "frontend/trace/Recorder.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/op/NumberType.h"
#include "runtime/op/Ops.h"
#include <atomic>

namespace dlc::trace {
namespace {

std::atomic<uint64_t> nextEpoch{1};
/// A piece longer than this is cut: the graph of an endless loop must not eat the memory.
constexpr size_t kMaxNodes = 200000;

/// Stands in for the memory of tensors whose piece failed.
class FailedSource final : public LazySource {
public:
  explicit FailedSource(std::string message) : message_(std::move(message)) {}
  void force(Storage &) override { fail(ErrorKind::Runtime, message_); }
  void released(Storage &) override {
    if (--users == 0)
      delete this;
  }
  size_t users = 0;

private:
  std::string message_;
};

size_t spanOf(const TensorMeta &m) {
  int64_t last = 0;
  for (size_t i = 0; i < m.sizes.size(); ++i) {
    if (m.sizes[i].value() == 0)
      return 0;
    last += (m.sizes[i].value() - 1) * m.strides[i].value();
  }
  return static_cast<size_t>(last + 1) * itemSize(m.dtype);
}

Sizes values(const Dims &d) {
  Sizes s;
  for (const Dim &x : d)
    s.push_back(x.value());
  return s;
}

} // namespace

Recorder::Recorder(PieceRunner runner) : runner_(std::move(runner)), epoch_(nextEpoch++) {}

Recorder::~Recorder() {
  logGradients(false);
  if (numStates_)
    abandon("this tensor was recorded by a compiled call that did not finish\nuse the results of a call that returned");
}

Recorder::State &Recorder::track(const Tensor &t) {
  Storage *storage = t.storageRef().get();
  if (storage->noteEpoch == epoch_)
    return *static_cast<State *>(storage->note);
  if (storage->lazy() && storage->lazy() != this)
    storage->data(); // pending elsewhere
  State &s = newState(storage);
  s.keep = t.storageRef();
  s.input = true;
  s.dtype = t.dtype();
  return s;
}

Recorder::State &Recorder::newState(Storage *storage) {
  if (numStates_ == states_.size())
    states_.push_back(std::make_unique<State>());
  State &s = *states_[numStates_++];
  s.storage = storage;
  s.base = s.writeTo = -1;
  s.offset = 0;
  s.input = s.dirty = s.saved = false;
  s.inputsOf.clear();
  s.bumps = 0;
  s.symSizes.clear();
  s.symStrides.clear();
  storage->note = &s;
  storage->noteEpoch = epoch_;
  return s;
}

void Recorder::remember(const Tensor &t, int32_t value) {
  TensorImpl *impl = t.impl();
  impl->traceValue = value;
  impl->traceEpoch = epoch_;
  impl->traceVersion = impl->storage->version();
}

namespace {
/// Whether the op may raise on what its operands hold: an index out of range, an integer division by zero.
bool mayRaise(const OpInfo &op, const SmallVec<TensorMeta, 3> &results) {
  switch (static_cast<OpId>(op.id)) {
#define DLC_FALLIBLE(cls) case OpId::cls:
#include "runtime/op/Fallible.inc"
#undef DLC_FALLIBLE
    return op.kind != OpKind::Elementwise || !isFloat(results[0].dtype);
  default:
    return false;
  }
}
} // namespace

/// Makes the results of ops that may raise outputs if nothing else needs them: the program would have raised.
void Recorder::keepFallible() {
  std::vector<bool> live(graph_.values.size());
  for (const GraphOutput &o : graph_.outputs)
    live[o.value] = true;
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const GraphNode &n = graph_.nodes[i];
    bool needed = false;
    for (int32_t v : n.results)
      needed |= live[v];
    if (!needed && !n.results.empty()) {
      SmallVec<TensorMeta, 3> first{graph_.values[n.results[0]]};
      if (!mayRaise(*n.op, first))
        continue;
      GraphOutput o;
      o.value = n.results[0];
      o.strides = contiguousStrides(graph_.values[o.value].sizes);
      graph_.outputs.push_back(std::move(o));
    }
    for (const GVal &v : n.args.values())
      if (v.id >= 0)
        live[v.id] = true;
  }
}

int32_t Recorder::node(const OpInfo &op, Span<const Arg<GVal>> args, SmallVec<TensorMeta, 3> &metas) {
  {
    HintScope rule(false); // what the op's rule decides by a number's value is a decision
    inferNode(graph_, op, args, metas);
  }
  GraphNode n;
  n.op = &op;
  n.args = OwnedArgs<GVal>(args);
  n.loc = markLoc();
  for (const TensorMeta &m : metas)
    n.results.push_back(graph_.addValue(m));
  sawFallible_ |= mayRaise(op, metas);
  int32_t first = n.results.empty() ? -1 : n.results[0];
  graph_.nodes.push_back(std::move(n));
  return first;
}

Tensor Recorder::deferred(const TensorMeta &m, int32_t value) {
  Sizes sizes = values(m.sizes), strides = values(m.strides);
  Ref<Storage> storage = Storage::deferred(spanOf(m), this);
  State &s = newState(storage.get());
  s.base = value;
  s.sizes = sizes;
  s.strides = strides;
  s.dtype = m.dtype;
  Tensor t = Tensor::viewOf(std::move(storage), sizes, strides, 0, m.dtype);
  if (symbolic_) {
    s.symSizes = m.sizes;
    s.symStrides = m.strides;
    attach(t, m);
  }
  remember(t, value);
  return t;
}

void Recorder::released(Storage &storage) {
  if (storage.noteEpoch == epoch_)
    static_cast<State *>(storage.note)->storage = nullptr; // nobody can ask for it any more
}

namespace {
bool isNumber(const Tensor &t) { return t.isWrapped() && !t.storage().lazy(); }

} // namespace

/// A number in the place of a tensor (`1 - x`), as a 0-d tensor made from a number operand.
int32_t Recorder::numberTensor(const Tensor &t, Span<const Arg<Tensor>> among) {
  Number n = t.item();
  NumberType type(n.category());
  for (const Arg<Tensor> &a : among)
    for (const Tensor &other : a.values())
      if (other.defined() && !other.isWrapped())
        type.beside(other.dtype(), other.dim() > 0);
  Arg<GVal> args[4] = {Arg<GVal>::ofDims(Span<const Dim>()), Arg<GVal>::number(operand(n)),
                       Arg<GVal>::ofDType(type.get()), Arg<GVal>()};
  SmallVec<TensorMeta, 3> metas;
  return node(opInfo(OpId::Full), args, metas);
}

Arg<GVal> Recorder::convert(const Arg<Tensor> &a, ParamKind kind, Span<const Arg<Tensor>> among,
                            std::vector<GVal> &held) {
  Arg<GVal> g;
  g.tag = a.tag;
  g.dtype = a.dtype;
  g.size = a.size;
  g.i = a.i;
  g.num = a.num;
  g.dim = a.dim;
  if (a.tag == ArgTag::Value && a.value->defined() && isNumber(*a.value) &&
      (kind == ParamKind::TN || kind == ParamKind::TNOpt)) {
    g.tag = ArgTag::Num;
    g.num = operand(a.value->item());
  } else if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
    size_t at = held.size();
    for (const Tensor &t : a.values())
      held.push_back(!t.defined() ? GVal{} : GVal{isNumber(t) ? numberTensor(t, among) : valueOf(t)});
    g.value = held.data() + at;
  } else if (a.tag == ArgTag::Num) {
    // 0 and 1 are nearly always a default (alpha, beta, weight_decay): a constant lets the compiler drop what they
    // scale.
    bool structural = a.num.isConst(0) || a.num.isConst(1);
    g.num = structural ? a.num : operand(a.num);
  } else if (a.tag == ArgTag::Rng) {
    g.rng = nullptr;
  }
  return g;
}

/// A composite without an IR form: its rule's ops are recorded. Autograd has seen the call already.
void Recorder::runRule(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  GradModeScope off(false);
  SmallVec<Tensor, 3> fresh(op.results.size());
  {
    HintScope rule(false);
    op.rule(args, Span<Tensor>(fresh.data(), fresh.size()));
  }
  if (form == CallForm::Functional) {
    outs = fresh;
    return;
  }
  if (form == CallForm::InPlace) {
    outs.resize(1);
    outs[0] = args[0].value[0];
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    Arg<Tensor> copy[3] = {Arg<Tensor>::of(outs[i]), Arg<Tensor>::of(fresh[i]), Arg<Tensor>::ofBool(false)};
    SmallVec<Tensor, 3> ignored;
    intercept(opInfo(OpId::Copy), copy, ignored, CallForm::InPlace);
  }
}

/// Ops that the graph can't hold (data-dependent sizes, memory that others write): run the piece, then the op.
void Recorder::runNow(FlushReason reason, const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs,
                      CallForm form) {
  flush(reason, op.name);
  InterceptorScope eager(nullptr);
  {
    SymbolicScope values(nullptr);
    runEager(op, args, outs, form);
  }
  if (!observer_)
    return;
  if (op.has(kRandom))
    observer_->notReplayable(str("`", op.name, "` takes numbers from a generator outside of a graph"));
  if (symbolic_ && form == CallForm::Functional && !op.has(kDataDependent))
    symbolicResults(op, args, outs);
  observer_->opRan(op, args, Span<const Tensor>(outs.data(), outs.size()), form);
}

void Recorder::recordView(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs) {
  const Tensor &self = args[0].value[0];
  MetaArgs metas(args);
  MetaResult r;
  {
    HintScope rule(false);
    op.meta(metas.args, r);
  }
  const TensorMeta &m = r.outs[0];
  Tensor view = checkedView(op, self, m);
  // as_strided means memory, not the operand's value: it is read through the base when somebody reads it.
  bool strided = &op == &opInfo(OpId::AsStrided);
  if (symbolic_)
    attach(view, m);
  if (!strided && !(self.storage().foreign())) {
    int32_t from = valueOf(self);
    std::vector<GVal> held;
    held.reserve(args[0].values().size());
    SmallVec<Arg<GVal>, 12> gargs;
    for (size_t i = 0; i < args.size(); ++i)
      gargs.push_back(i == 0 ? Arg<GVal>() : convert(args[i], op.params[i].kind, args, held));
    GVal v{from};
    gargs[0] = Arg<GVal>::of(v);
    SmallVec<TensorMeta, 3> nodeMetas;
    remember(view, node(op, Span<const Arg<GVal>>(gargs.data(), gargs.size()), nodeMetas));
  }
  outs.resize(1);
  outs[0] = view;
}

/// Makes `value` have `dtype`, as storing into a tensor of that dtype does.
void Recorder::castTo(SmallVec<TensorMeta, 3> &metas, int32_t &value, DType dtype) {
  if (graph_.values[value].dtype == dtype)
    return;
  GVal v{value};
  Arg<GVal> args[2] = {Arg<GVal>::of(v), Arg<GVal>::ofDType(dtype)};
  SmallVec<TensorMeta, 3> ignored;
  value = node(opInfo(OpId::Cast), args, ignored);
  metas[0] = ignored[0];
}

/// Whether the tensors have the strides of the graph values they stand for. A tensor written in place keeps its own,
/// whatever the op that made its new value would give.
bool Recorder::layoutsAgree(Span<const Arg<Tensor>> args, Span<const Arg<GVal>> gargs) const {
  for (size_t i = 0; i < args.size(); ++i) {
    if (gargs[i].tag != ArgTag::Value && gargs[i].tag != ArgTag::ValueList)
      continue;
    for (size_t j = 0; j < args[i].values().size(); ++j) {
      const Tensor &t = args[i].values()[j];
      int32_t id = gargs[i].values()[j].id;
      if (!t.defined() || id < 0)
        continue;
      const Dims &have = graph_.values[id].strides;
      if (symbolic_ && have != t.meta().strides)
        return false;
      for (size_t k = 0; k < have.size(); ++k)
        if (have[k].value() != t.strides()[k])
          return false;
    }
  }
  return true;
}

void Recorder::record(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  std::vector<GVal> held;
  size_t count = 0;
  for (const Arg<Tensor> &a : args)
    count += a.values().size();
  held.reserve(count);
  SmallVec<Arg<GVal>, 12> gargs;
  for (size_t i = 0; i < args.size(); ++i)
    gargs.push_back(convert(args[i], op.params[i].kind, args, held));
  if (op.has(kRandom))
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i].tag == ArgTag::Rng)
        takeRng(gargs[i], args[i].rng ? *args[i].rng : defaultGenerator(), args, op);
  SmallVec<TensorMeta, 3> metas;
  node(op, Span<const Arg<GVal>>(gargs.data(), gargs.size()), metas);
  SmallVec<int32_t, 3> results = graph_.nodes.back().results;
  for (const TensorMeta &m : metas)
    for (const Dim &d : m.sizes)
      if (d.value() < 0) { // this call's result has a size that depends on data
        graph_.nodes.pop_back();
        graph_.values.resize(graph_.values.size() - results.size());
        return runNow(FlushReason::DataDependent, op, args, outs, form);
      }
  size_t own = results.size() - countMutated(op, Span<const Arg<GVal>>(gargs.data(), gargs.size()));
  if (form == CallForm::Functional) {
    if (!layoutsAgree(args, Span<const Arg<GVal>>(gargs.data(), gargs.size()))) {
      MetaArgs real(args);
      MetaResult r;
      op.meta(real.args, r);
      for (size_t i = 0; i < own; ++i)
        metas[i].strides = r.outs[i].strides;
    }
    outs.resize(own);
    for (size_t i = 0; i < own; ++i)
      outs[i] = metas[i].defined ? deferred(metas[i], results[i]) : Tensor();
  } else {
    if (form == CallForm::InPlace) {
      outs.resize(1);
      outs[0] = args[0].value[0];
    }
    for (size_t i = 0; i < outs.size() && i < own; ++i) {
      checkWritable(op, outs[i], metas[i]);
      if (symbolic_)
        (void)(outs[i].meta().sizes == metas[i].sizes); // for all sizes, not only these
      castTo(metas, results[i], outs[i].dtype());
      write(outs[i], results[i]);
    }
  }
  size_t at = own;
  if (!writesOperands(op, args))
    return;
  for (size_t i = 0; i < args.size(); ++i)
    if (isMutatedKind(op.params[i].kind))
      for (const Tensor &t : args[i].values())
        if (t.defined())
          write(t, results[at++]);
}

void Recorder::intercept(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  if (!symbolic_)
    return take(op, args, outs, form);
  try {
    take(op, args, outs, form);
  } catch (const Error &) {
    raisePlainly(op, args);
    throw;
  }
}

void Recorder::take(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  HintScope own; // plain sizes are read here to carry them along; rules that decide by them undo this
  bool touchesForeign = false;
  if (form != CallForm::Functional || op.has(kMutates))
    for (size_t i = 0; i < args.size(); ++i)
      for (const Tensor &t : args[i].values())
        touchesForeign |= t.defined() && t.storage().foreign() && (i == 0 || isMutatedKind(op.params[i].kind));
  if (!op.has(kInIr) && op.rule)
    return runRule(op, args, outs, form);
  if (op.has(kDataDependent))
    return runNow(FlushReason::DataDependent, op, args, outs, form);
  if (!op.has(kInIr) || touchesForeign)
    return runNow(FlushReason::Unsupported, op, args, outs, form);
  if (op.kind == OpKind::View && form == CallForm::Functional)
    return recordView(op, args, outs);
  if (form == CallForm::Out) // may resize
    return runNow(FlushReason::Unsupported, op, args, outs, form);
  if (form == CallForm::InPlace) {
    const Tensor &self = args[0].value[0];
    if (!self.isNonOverlapping()) // raises what eager raises
      return runNow(FlushReason::Unsupported, op, args, outs, form);
  }
  record(op, args, outs, form);
  if (graph_.nodes.size() > kMaxNodes)
    flush(FlushReason::Limit, "a piece of over 200,000 ops");
}

void Recorder::exporting(Storage &storage) {
  if (observer_)
    observer_->notReplayable("the memory of a tensor is given to others");
  if (storage.noteEpoch == epoch_)
    flush(FlushReason::Value, "the memory of a tensor");
}

void Recorder::force(Storage &storage) { flush(FlushReason::Value, "the values of a tensor"); }

void Recorder::reset() {
  for (auto &s : states()) {
    if (s->storage && s->storage->lazy() == this)
      s->storage->setLazy(nullptr);
    s->keep = {};
  }
  numStates_ = 0;
  if (gradLogger_)
    gradLogger_->take();
  sawFallible_ = false;
  inputTensors_.clear();
  inputMarks_.clear();
  inputState_.clear();
  piece_.inputs.clear();
  originals_.clear();
  wholeStorage_.clear();
  sources_.clear();
  piece_.symbolic.clear();
  piece_.record = nullptr;
  graph_.clear();
  epoch_ = nextEpoch++;
}

void Recorder::abandon(const std::string &message) {
  if (observer_)
    observer_->notReplayable(message);
  auto *failed = new FailedSource(message);
  for (auto &s : states())
    if (s->storage && s->storage->lazy() == this) {
      s->storage->setLazy(s->input ? nullptr : failed);
      failed->users += !s->input;
    }
  if (!failed->users)
    delete failed;
  reset();
}

void Recorder::flush(FlushReason reason, const std::string &what) {
  if (flushing_ || !numStates_)
    return;
  std::vector<Tensor> roots;
  if (gradLogger_ && reason == FlushReason::Exit)
    roots = leaveTape();
  else if (gradLogger_)
    gradLogger_->cut();
  std::vector<State *> targets;
  for (auto &s : states()) {
    if (!s->storage || !(s->dirty || !s->input))
      continue;
    GraphOutput o;
    o.value = s->base;
    o.strides = s->strideDims();
    o.writeBack = s->input ? s->writeTo : -1;
    graph_.outputs.push_back(o);
    targets.push_back(s.get());
  }
  if (sawFallible_)
    keepFallible();
  if (graph_.outputs.empty())
    return reset();
  if (reason != FlushReason::Exit && onBreak)
    onBreak({reason, what, locText(markLoc()), graph_.nodes.size()});
  PieceRecord record;
  if (observer_)
    preparePiece(record);
  std::swap(piece_.graph, graph_);
  std::swap(piece_.inputs, inputTensors_);
  if (roots.empty()) // otherwise it is there already
    piece_.gradients = gradLogger_ ? gradLogger_->take() : GradLog();
  std::swap(piece_.marks, inputMarks_);
  piece_.numbers = piece_.graph.numbers;
  piece_.marks.resize(piece_.marks.empty() ? 0 : piece_.inputs.size());
  piece_.sharedInput.assign(piece_.inputs.size(), false);
  std::swap(piece_.stateInput, inputState_);
  for (auto &s : states())
    for (int32_t i : s->inputsOf) {
      piece_.sharedInput[i] = s->inputsOf.size() > 1;
      piece_.stateInput[i] = piece_.stateInput[i] && !s->dirty;
    }
  // The runner reads and writes inputs' memory: they are real from here on.
  for (auto &s : states())
    if (s->input && s->storage->lazy() == this)
      s->storage->setLazy(nullptr);
  std::vector<Tensor> outs;
  flushing_ = true;
  try {
    InterceptorScope eager(nullptr);
    SymbolicScope values(nullptr);
    runner_(piece_, outs);
  } catch (const Error &e) {
    flushing_ = false;
    abandon(str("this tensor's computation failed: ", e.what()));
    throw;
  } catch (...) {
    flushing_ = false;
    abandon("this tensor's computation was interrupted\nrun it again");
    throw;
  }
  flushing_ = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    State *s = targets[i];
    if (observer_)
      record.outputs.push_back({Ref<Storage>(s->storage), piece_.graph.outputs[i].writeBack, s->bumps});
    if (s->input || !s->storage)
      continue;
    s->storage->setLazy(nullptr);
    if (s->storage->bytes())
      s->storage->swapData(outs[i].storage());
    if (!roots.empty())
      outs[i] = Tensor::viewOf(Ref<Storage>(s->storage), outs[i].sizes(), outs[i].strides(), 0, outs[i].dtype());
  }
  if (observer_)
    record.outputs.resize(piece_.graph.outputs.size());
  if (!roots.empty())
    attachPlan(roots, outs, record);
  reset();
  if (!observer_)
    return;
  if (record.code)
    observer_->pieceRan(std::move(record));
  else
    observer_->notReplayable("its code is being compiled in the background");
}

} // namespace dlc::trace
