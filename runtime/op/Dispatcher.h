// One call of an op: autograd above, capture in the middle, eager kernels below.
#pragma once
#include "runtime/op/OpInfo.h"

namespace dlc {

/// How the results are delivered.
enum class CallForm : uint8_t {
  Functional, ///< results are new tensors
  InPlace,    ///< result 0 is written to argument 0
  Out         ///< results are written to the given `outs` (resized if empty)
};

/// Runs `op`: records it on the tape where a gradient is needed, hands it to the interceptor if one is installed on
/// this thread, else runs the meta function, allocates and calls the kernel (or the rule of a composite).
/// Functional: `outs` (op.results.size() of them, or the length of a list result known from the meta) are filled.
void dispatch(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs,
              CallForm form = CallForm::Functional);

/// The same without autograd.
void dispatchBelowAutograd(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form);
/// Meta, allocation, kernel; no autograd, no capture.
void runEager(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form);

/// The view of `self`'s storage that a view op's meta describes. Throws RuntimeError if it reaches outside of the
/// storage or has more elements than 64 bits count.
Tensor checkedView(const OpInfo &op, const Tensor &self, const TensorMeta &meta);

/// Throws RuntimeError unless `self` can receive a result of this shape and dtype in place.
void checkWritable(const OpInfo &op, const Tensor &self, const TensorMeta &result);

/// Sees every op of its thread instead of the kernels: a recorder.
class Interceptor {
public:
  virtual ~Interceptor() = default;
  /// Delivers the results of the call. Errors of shape and dtype are thrown here, at the user's line.
  virtual void intercept(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form) = 0;
};
Interceptor *currentInterceptor();
/// Installs `i` (may be null) on this thread for the scope.
class InterceptorScope {
public:
  explicit InterceptorScope(Interceptor *i);
  ~InterceptorScope();

private:
  Interceptor *previous_;
};

/// The autograd layer registers itself here, so that the dispatcher needs no include of it.
/// Whether this call of an op with mutated operands writes to them: with a parameter `training`, only in training.
bool writesOperands(const OpInfo &op, Span<const Arg<Tensor>> args);

using AutogradHook = void (*)(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs, CallForm form);
void setAutogradHook(AutogradHook hook);
bool gradEnabled();
void setGradEnabled(bool on);

} // namespace dlc
