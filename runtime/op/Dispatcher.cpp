// The way of one call: rule of a pure composite, tape, interceptor, kernel.
#include "runtime/op/Dispatcher.h"
#include "runtime/op/Ops.h"

namespace dlc {
namespace {

thread_local Interceptor *interceptor = nullptr;
thread_local bool gradMode = true;
AutogradHook autogradHook = nullptr;

bool anyRequiresGrad(Span<const Arg<Tensor>> args) {
  for (const Arg<Tensor> &a : args)
    for (const Tensor &t : a.values())
      if (t.defined() && (t.impl()->requiresGrad || t.impl()->autograd))
        return true;
  return false;
}

/// A composite that the tape and the recorder never see: its rule's ops are dispatched instead.
bool isTransparent(const OpInfo &op) { return op.has(kHasRule) && !op.has(kDifferentiable) && !op.has(kHasKernel); }

const OpInfo &copyOp() { return opInfo(OpId::Copy); }

/// dst[...] = src with broadcasting and dtype conversion.
void copyInto(const Tensor &dst, const Tensor &src) {
  Arg<Tensor> args[3] = {Arg<Tensor>::of(dst), Arg<Tensor>::of(src), Arg<Tensor>::ofBool(false)};
  Tensor out[1] = {dst};
  copyOp().kernel(args, out);
}

} // namespace

bool writesOperands(const OpInfo &op, Span<const Arg<Tensor>> args) {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].tag == ArgTag::Bool && std::strcmp(op.params[i].name, "training") == 0)
      return args[i].i != 0;
  return true;
}

namespace {

void bumpMutated(const OpInfo &op, Span<const Arg<Tensor>> args) {
  if (!op.has(kMutates) || !writesOperands(op, args))
    return;
  for (size_t i = 0; i < args.size(); ++i)
    if (isMutatedKind(op.params[i].kind))
      for (const Tensor &t : args[i].values())
        if (t.defined())
          t.storage().bumpVersion();
}

/// Calls the kernel, or the rule of a composite that has none.
void callKernel(const OpInfo &op, Span<const Arg<Tensor>> args, Span<Tensor> outs) {
  if (op.kernel)
    return op.kernel(args, outs);
  DLC_CHECK(op.rule, op.name, " has neither kernel nor rule");
  InterceptorScope eager(nullptr);
  bool before = gradMode;
  gradMode = false;
  SmallVec<Tensor, 4> fresh(outs.size());
  try {
    op.rule(args, fresh);
  } catch (...) {
    gradMode = before;
    throw;
  }
  gradMode = before;
  for (size_t i = 0; i < outs.size(); ++i)
    if (!outs[i].defined() || !outs[i].storage().rawData())
      outs[i] = fresh[i];
    else if (!outs[i].is(fresh[i]))
      copyInto(outs[i], fresh[i]);
}

/// Positions a private generator for this call and advances the user's.
struct PositionedRng {
  PositionedRng(const OpInfo &op, Span<const Arg<Tensor>> in, Span<const Arg<TensorMeta>> metas, const MetaResult &r)
      : args(in.begin(), in.end()) {
    for (Arg<Tensor> &a : args)
      if (a.tag == ArgTag::Rng) {
        Generator &g = a.rng ? *a.rng : defaultGenerator();
        local.manualSeed(g.seed());
        local.setOffset(g.take(rngBlocks(metas, r)));
        a.rng = &local;
      }
  }
  Generator local;
  SmallVec<Arg<Tensor>, 12> args;
};

/// An argument other than `self` that may share memory with it without being the same view.
bool overlapsOther(const Tensor &self, Span<const Arg<Tensor>> args) {
  for (const Arg<Tensor> &a : args)
    for (const Tensor &t : a.values())
      if (t.defined() && !t.is(self) && mayOverlap(t, self) &&
          !(t.sizes() == self.sizes() && t.strides() == self.strides() && t.offset() == self.offset() &&
            t.dtype() == self.dtype()))
        return true;
  return false;
}

/// A size of -1: this call's result has one that depends on data, though most calls of the op have not.
bool isKnown(const TensorMeta &m) {
  for (const Dim &d : m.sizes)
    if (d.value() < 0)
      return false;
  return true;
}

/// Computes into fresh tensors.
void runFunctional(const OpInfo &op, Span<const Arg<Tensor>> args, const MetaResult &r, SmallVec<Tensor, 3> &outs) {
  outs.resize(r.outs.size());
  if (op.kind == OpKind::View) {
    for (size_t i = 0; i < r.outs.size(); ++i)
      outs[i] = checkedView(op, args[0].value[0], r.outs[i]);
    return;
  }
  if (!op.has(kDataDependent) && op.kernel)
    for (size_t i = 0; i < r.outs.size(); ++i)
      outs[i] = r.outs[i].defined && isKnown(r.outs[i]) ? Tensor::emptyLike(r.outs[i]) : Tensor();
  callKernel(op, args, Span<Tensor>(outs.data(), outs.size()));
}

/// A `resize_` for out=: only an empty tensor changes its shape.
void resizeOut(const OpInfo &op, Tensor &out, const TensorMeta &m) {
  Sizes sizes;
  for (const Dim &d : m.sizes)
    sizes.push_back(d.value());
  if (out.sizes() == sizes)
    return;
  DLC_REQUIRE(out.numel() == 0, Runtime, op.name, ": `out` has sizes ", listStr(out.sizes()),
              " but the result has sizes ", listStr(sizes), "\npass an `out` of that shape, or an empty one");
  Tensor fresh = Tensor::empty(sizes, out.dtype());
  out.impl()->storage = fresh.storageRef();
  out.impl()->sizes = fresh.sizes();
  out.impl()->strides = fresh.strides();
  out.impl()->offset = 0;
  out.impl()->symbolic.reset();
}

} // namespace

Tensor checkedView(const OpInfo &op, const Tensor &self, const TensorMeta &m) {
  Sizes sizes, strides;
  int64_t first = m.offset.value(), last = first, count = 1;
  bool overflow = false, empty = false;
  for (size_t i = 0; i < m.sizes.size(); ++i) {
    int64_t size = m.sizes[i].value(), stride = m.strides[i].value(), reach;
    sizes.push_back(size);
    strides.push_back(stride);
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(count, size, &count);
    overflow |= __builtin_mul_overflow(size - 1, stride, &reach);
    overflow |= __builtin_add_overflow(stride < 0 ? first : last, reach, stride < 0 ? &first : &last);
  }
  DLC_REQUIRE(!overflow || empty, Runtime, op.name, ": a view of sizes ", listStr(sizes), " and strides ",
              listStr(strides), " has more elements than 64 bits count\nuse smaller sizes");
  int64_t held = static_cast<int64_t>(self.storage().bytes() / itemSize(m.dtype));
  DLC_REQUIRE(empty || (first >= 0 && last < held), Runtime, op.name, ": sizes ", listStr(sizes), ", strides ",
              listStr(strides), " and offset ", m.offset, " reach outside of the storage of `self`, which holds ", held,
              " elements\nuse sizes and strides that stay inside");
  return Tensor::viewOf(self.storageRef(), sizes, strides, m.offset.value(), m.dtype);
}

void checkWritable(const OpInfo &op, const Tensor &self, const TensorMeta &result) {
  bool sameSizes = self.sizes().size() == result.sizes.size();
  for (size_t i = 0; sameSizes && i < result.sizes.size(); ++i)
    sameSizes = self.sizes()[i] == result.sizes[i].value();
  DLC_REQUIRE(sameSizes, Runtime, op.name, "_: `self` has sizes ", listStr(self.sizes()), " but the result has sizes ",
              listStr(result.sizes), "\nuse the out-of-place form, or make `self` large enough first");
  DLC_REQUIRE(categoryOf(self.dtype()) >= categoryOf(result.dtype), Runtime, op.name, "_: the result is ", result.dtype,
              " and can't be stored in `self`, which is ", self.dtype(),
              "\nuse the out-of-place form, or convert `self` first");
  DLC_REQUIRE(self.isNonOverlapping(), Runtime, op.name, "_: `self` of sizes ", listStr(self.sizes()), " and strides ",
              listStr(self.strides()), " has elements that share memory\nwrite to a clone() of it instead");
}

Interceptor *currentInterceptor() { return interceptor; }
InterceptorScope::InterceptorScope(Interceptor *i) : previous_(interceptor) { interceptor = i; }
InterceptorScope::~InterceptorScope() { interceptor = previous_; }
void setAutogradHook(AutogradHook hook) { autogradHook = hook; }
bool gradEnabled() { return gradMode; }
void setGradEnabled(bool on) { gradMode = on; }

MetaArgs::MetaArgs(Span<const Arg<Tensor>> from) {
  size_t n = 0;
  for (const Arg<Tensor> &a : from)
    n += a.values().size();
  metas.reserve(n);
  args.reserve(from.size());
  for (const Arg<Tensor> &a : from) {
    Arg<TensorMeta> m;
    m.tag = a.tag;
    m.dtype = a.dtype;
    m.size = a.size;
    m.i = a.i; // the widest member: pointers and doubles come along
    m.num = a.num;
    m.dim = a.dim;
    if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
      m.value = metas.data() + metas.size();
      for (const Tensor &t : a.values())
        metas.push_back(t.defined() ? t.meta() : TensorMeta());
    }
    args.push_back(m);
  }
}

uint64_t rngBlocks(Span<const Arg<TensorMeta>> args, const MetaResult &result) {
  int64_t n = result.outs.empty() ? 0 : result.outs[0].numel().value();
  for (const Arg<TensorMeta> &a : args)
    if (a.tag == ArgTag::Value) {
      n = std::max(n, a.value->numel().value());
      break;
    }
  return static_cast<uint64_t>((n + 3) / 4);
}

void runEager(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  MetaArgs metas(args);
  MetaResult r;
  op.meta(metas.args, r);
  std::optional<PositionedRng> rng;
  if (op.has(kRandom)) {
    rng.emplace(op, args, metas.args, r);
    args = rng->args;
  }
  if (form == CallForm::Functional) {
    runFunctional(op, args, r, outs);
  } else {
    if (form == CallForm::InPlace) {
      outs.resize(1);
      outs[0] = args[0].value[0];
      checkWritable(op, outs[0], r.outs[0]);
    } else {
      for (size_t i = 0; i < outs.size(); ++i)
        resizeOut(op, outs[i], r.outs[i]);
    }
    bool direct = op.kernel && !op.has(kDataDependent) && outs.size() == r.outs.size();
    for (size_t i = 0; direct && i < outs.size(); ++i)
      direct = outs[i].dtype() == r.outs[i].dtype && !overlapsOther(outs[i], args) &&
               (op.kind == OpKind::Elementwise || op.kind == OpKind::Creation || op.kind == OpKind::Random);
    if (direct) {
      callKernel(op, args, Span<Tensor>(outs.data(), outs.size()));
    } else {
      SmallVec<Tensor, 3> fresh;
      runFunctional(op, args, r, fresh);
      for (size_t i = 0; i < outs.size(); ++i)
        copyInto(outs[i], fresh[i]);
    }
    for (Tensor &t : outs)
      t.storage().bumpVersion();
  }
  bumpMutated(op, args);
}

void dispatchBelowAutograd(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  if (interceptor)
    return interceptor->intercept(op, args, outs, form);
  runEager(op, args, outs, form);
}

namespace {
/// The in-place and out= forms of a transparent composite: compute, then copy.
void copyResults(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  SmallVec<Tensor, 3> fresh;
  dispatch(op, args, fresh, CallForm::Functional);
  if (form == CallForm::InPlace) {
    outs.resize(1);
    outs[0] = args[0].value[0];
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    Arg<Tensor> copyArgs[3] = {Arg<Tensor>::of(outs[i]), Arg<Tensor>::of(fresh[i]), Arg<Tensor>::ofBool(false)};
    SmallVec<Tensor, 3> ignored;
    dispatch(copyOp(), copyArgs, ignored, CallForm::InPlace);
  }
}
} // namespace

void dispatch(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) {
  if (isTransparent(op)) {
    if (form != CallForm::Functional)
      return copyResults(op, args, outs, form);
    outs.resize(op.results.size());
    if (op.listResult || op.publicResults != op.results.size()) {
      MetaArgs metas(args);
      MetaResult r;
      op.meta(metas.args, r);
      outs.resize(r.outs.size());
    }
    return op.rule(args, Span<Tensor>(outs.data(), outs.size()));
  }
  if (gradMode && autogradHook && (op.kind == OpKind::View || anyRequiresGrad(args)))
    return autogradHook(op, args, outs, form);
  dispatchBelowAutograd(op, args, outs, form);
}

} // namespace dlc
