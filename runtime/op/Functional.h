// The functional API: `ops::add(x, y)` for every op and every kind of value that has a Builder. Rules and gradients are
// written with it once and serve eager tensors, recorded values and the IR.
#pragma once
#include "runtime/op/Dispatcher.h"
#include "runtime/op/Ops.h"
#include <array>

namespace dlc {

/// How calls over values of type V are carried out. A V is cheap to copy, default-constructs to "absent", converts
/// from Number, and has overloads of isDefined and metaOf beside it.
template <class V> struct Builder; // static void call(const OpInfo &, Span<const Arg<V>>, SmallVec<V, 3> &outs)

template <class V, class = void> struct IsValue : std::false_type {};
template <class V> struct IsValue<V, std::void_t<decltype(&Builder<V>::call)>> : std::true_type {};

inline bool isDefined(const Tensor &t) { return t.defined(); }
inline TensorMeta metaOf(const Tensor &t) { return t.meta(); }

template <> struct Builder<Tensor> {
  static void call(const OpInfo &op, Span<const Arg<Tensor>> args, SmallVec<Tensor, 3> &outs) {
    dispatch(op, args, outs);
  }
  /// A size as a number, for arithmetic with elements.
  static Number number(const Dim &d) {
    return Number::symbolic(Number(static_cast<double>(d.value())), exprRef(d.expr()));
  }
  /// The value of a number that became a 0-d tensor, where rules may choose a cheaper form by it.
  static std::optional<double> constant(const Tensor &t) {
    if (!t.isWrapped())
      return std::nullopt;
    Number n = t.item();
    return n.ref() ? std::nullopt : std::optional<double>(n.toDouble());
  }
  /// Whether what a gradient rule computes may be differentiated again.
  static bool higherOrder() { return gradEnabled(); }
};

namespace ops {

/// V, where template argument deduction shall not look.
template <class V> struct SameType {
  using type = V;
};
template <class V> using Same = typename SameType<V>::type;

/// A value or a number for a parameter of kind TN.
template <class V> class ValueOrNumber {
public:
  ValueOrNumber(const V &v) : value_(&v) {}
  ValueOrNumber(const Number &n) : own_(n), value_(&own_) {}
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>> ValueOrNumber(N n) : ValueOrNumber(Number(n)) {}
  ValueOrNumber(const ValueOrNumber &) = delete;
  const V &get() const { return *value_; }
  Arg<V> arg() const { return Arg<V>::of(*value_); }

private:
  V own_;
  const V *value_;
};

/// A value, or null: an optional operand.
template <class V> class OptValue {
public:
  OptValue(std::nullptr_t) {}
  OptValue(const V *v) : value_(v && isDefined(*v) ? v : nullptr) {}
  OptValue(const V &v) : OptValue(&v) {}
  OptValue(const std::optional<V> &v) : OptValue(v ? &*v : nullptr) {}
  Arg<V> arg() const { return value_ ? Arg<V>::of(*value_) : Arg<V>(); }

private:
  const V *value_ = nullptr;
};

/// A value, a number or null.
template <class V> class OptValueOrNumber {
public:
  OptValueOrNumber(std::nullptr_t) {}
  OptValueOrNumber(const V *v) : value_(v && isDefined(*v) ? v : nullptr) {}
  OptValueOrNumber(const V &v) : OptValueOrNumber(&v) {}
  OptValueOrNumber(const Number &n) : own_(n), value_(&own_) {}
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  OptValueOrNumber(N n) : OptValueOrNumber(Number(n)) {}
  OptValueOrNumber(const OptValueOrNumber &) = delete;
  Arg<V> arg() const { return value_ ? Arg<V>::of(*value_) : Arg<V>(); }

private:
  V own_;
  const V *value_ = nullptr;
};

template <class V, size_t N> auto call(const OpInfo &op, Span<const Arg<V>> args) {
  SmallVec<V, 3> outs;
  Builder<V>::call(op, args, outs);
  if constexpr (N == 1) {
    return V(std::move(outs[0]));
  } else if constexpr (N > 1) {
    std::array<V, N> r;
    for (size_t i = 0; i < N; ++i)
      r[i] = std::move(outs[i]);
    return r;
  }
}
template <class V> std::vector<V> callList(const OpInfo &op, Span<const Arg<V>> args) {
  SmallVec<V, 3> outs;
  Builder<V>::call(op, args, outs);
  return std::vector<V>(outs.begin(), outs.end());
}
template <class V> void callInPlace(const OpInfo &op, Span<const Arg<V>> args) {
  static_assert(std::is_same_v<V, Tensor>, "only eager tensors change in place");
  SmallVec<V, 3> outs;
  dispatch(op, args, outs, CallForm::InPlace);
}

#include "runtime/op/Functional.inc"

#define DLC_BINARY(symbol, fn)                                                                                         \
  template <class V, class = std::enable_if_t<IsValue<V>::value>>                                                      \
  V operator symbol(const V &a, const ValueOrNumber<Same<V>> &b) {                                                     \
    return fn(a, b.get());                                                                                             \
  }                                                                                                                    \
  template <class V, class = std::enable_if_t<IsValue<V>::value>> V operator symbol(const Number &a, const V &b) {     \
    return fn(V(a), b);                                                                                                \
  }
DLC_BINARY(+, add)
DLC_BINARY(-, sub)
DLC_BINARY(*, mul)
DLC_BINARY(/, div)
DLC_BINARY(<, lt)
DLC_BINARY(<=, le)
DLC_BINARY(>, gt)
DLC_BINARY(>=, ge)
#undef DLC_BINARY
template <class V, class = std::enable_if_t<IsValue<V>::value>> V operator-(const V &a) { return neg(a); }
template <class V, class D, class = std::enable_if_t<IsValue<V>::value && std::is_same_v<D, Dim>>>
V operator*(const V &a, const D &b) {
  return a * Builder<V>::number(b);
}
template <class V, class D, class = std::enable_if_t<IsValue<V>::value && std::is_same_v<D, Dim>>>
V operator/(const V &a, const D &b) {
  return a / Builder<V>::number(b);
}

} // namespace ops
} // namespace dlc
