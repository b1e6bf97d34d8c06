// Activation functions of neural networks as compositions of the other primitives; float kinds
// unless said.
#ifndef DLC_RUNTIME_SCALAR_ACTIVATIONS_H
#define DLC_RUNTIME_SCALAR_ACTIVATIONS_H

#include "runtime/scalar/Erf.h"
#include "runtime/scalar/Log.h"

namespace dlc::scalar {

/// max(x, 0) of any kind; NaN stays.
template <class B, class V> inline V relu_(B &b, V x) { return max_(b, x, constant(b, x, 0)); }
/// x clamped to [0, 6].
template <class B, class V> inline V relu6_(B &b, V x) { return clamp_(b, x, constant(b, x, 0), constant(b, x, 6)); }
/// x, or slope * x where x is not positive.
template <class B, class V> inline V leaky_relu_(B &b, V x, V slope) {
  return b.select(b.cmp(Cmp::Gt, x, b.like(x, 0)), x, b.mul(x, slope));
}
/// x, or alpha * (e^x - 1) where x is not positive.
template <class B, class V> inline V elu_(B &b, V x, V alpha) {
  return b.select(b.cmp(Cmp::Gt, x, b.like(x, 0)), x, b.mul(alpha, expm1_(b, x)));
}
/// Scaled elu with the constants of self-normalising networks.
template <class B, class V> inline V selu_(B &b, V x) {
  return b.mul(b.like(x, 1.0507009873554804934193349852946), elu_(b, x, b.like(x, 1.6732632423543772848170429916717)));
}
/// max(x, 0) + min(0, alpha * (e^(x / alpha) - 1)).
template <class B, class V> inline V celu_(B &b, V x, V alpha) {
  V low = b.mul(alpha, expm1_(b, b.div(x, alpha)));
  return b.select(b.cmp(Cmp::Gt, x, b.like(x, 0)), x, low);
}
/// x * Phi(x), Phi by erf.
template <class B, class V> inline V gelu_erf_(B &b, V x) {
  V e = erf_(b, b.mul(x, b.like(x, 0.70710678118654752440)));
  return b.mul(b.mul(x, b.like(x, 0.5)), b.add(b.like(x, 1), e));
}
/// The tanh approximation of gelu.
template <class B, class V> inline V gelu_tanh_(B &b, V x) {
  V cube = b.mul(b.mul(x, x), x);
  V inner = b.mul(b.like(x, 0.79788456080286535588), b.add(x, b.mul(b.like(x, 0.044715), cube)));
  return b.mul(b.mul(b.like(x, 0.5), x), b.add(b.like(x, 1), tanh_(b, inner)));
}
/// x * sigmoid(x).
template <class B, class V> inline V silu_(B &b, V x) { return b.mul(x, sigmoid_(b, x)); }
/// log(1 + e^(beta x)) / beta; x itself where beta * x > threshold.
template <class B, class V> inline V softplus_(B &b, V x, V beta, V threshold) {
  V scaled = b.mul(x, beta);
  V soft = b.div(log1p_(b, exp_(b, scaled)), beta);
  return b.select(b.cmp(Cmp::Gt, scaled, threshold), x, soft);
}
/// x * tanh(log(1 + e^x)), as x * n / (n + 2) with n = e^x * (e^x + 2); from 20 on the quotient
/// is 1.
template <class B, class V> inline V mish_(B &b, V x) {
  V e = exp_(b, capAt(b, x, 20.0));
  V n = b.mul(e, b.add(e, b.like(x, 2)));
  return b.mul(x, b.div(n, b.add(n, b.like(x, 2))));
}
/// log(sigmoid(x)), stable for both signs.
template <class B, class V> inline V log_sigmoid_(B &b, V x) {
  V low = min_(b, x, b.like(x, 0));
  return b.sub(low, log1p_(b, exp_(b, b.neg(b.absf(x)))));
}
/// x clamped to [low, high].
template <class B, class V> inline V hardtanh_(B &b, V x, V low, V high) { return clamp_(b, x, low, high); }
/// relu6(x + 3) / 6.
template <class B, class V> inline V hardsigmoid_(B &b, V x) {
  return b.div(relu6_(b, b.add(x, b.like(x, 3))), b.like(x, 6));
}
/// x * hardsigmoid(x).
template <class B, class V> inline V hardswish_(B &b, V x) {
  return b.div(b.mul(x, relu6_(b, b.add(x, b.like(x, 3)))), b.like(x, 6));
}
/// x where |x| > lambda, else 0.
template <class B, class V> inline V hardshrink_(B &b, V x, V lambda) {
  auto inside = b.cmp(Cmp::Le, b.absf(x), lambda);
  return b.select(inside, b.like(x, 0), x);
}
/// x moved towards 0 by lambda.
template <class B, class V> inline V softshrink_(B &b, V x, V lambda) {
  V shrunk = b.select(b.cmp(Cmp::Lt, x, b.neg(lambda)), b.add(x, lambda), b.mul(x, b.like(x, 0)));
  return b.select(b.cmp(Cmp::Gt, x, lambda), b.sub(x, lambda), shrunk);
}
/// x / (1 + |x|).
template <class B, class V> inline V softsign_(B &b, V x) { return b.div(x, b.add(b.like(x, 1), b.absf(x))); }
/// x - tanh(x).
template <class B, class V> inline V tanhshrink_(B &b, V x) { return b.sub(x, tanh_(b, x)); }
/// x where x > limit, else value; any kind.
template <class B, class V> inline V threshold_(B &b, V x, V limit, V value) {
  return b.select(b.cmp(Cmp::Le, x, limit), value, x);
}
/// x where self is positive, else 0: the gradient of relu.
template <class B, class V> inline V relu_backward_(B &b, V grad, V self) {
  auto zero = constant(b, self, 0);
  return b.select(b.cmp(Cmp::Gt, self, zero), grad, constant(b, grad, 0));
}

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_ACTIVATIONS_H
