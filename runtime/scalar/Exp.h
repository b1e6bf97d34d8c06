// Exponentials and what is built on them. f32: own polynomials (fits: tools/fit/fit.py), at most 2
// ulp over the whole range, checked by tests/unit/scalar/ScalarScanTest.cpp; f64: scalar libm.
#ifndef DLC_RUNTIME_SCALAR_EXP_H
#define DLC_RUNTIME_SCALAR_EXP_H

#include "runtime/scalar/Arith.h"

namespace dlc::scalar {

namespace detail {

/// x = n * ln 2 + r with |r| <= ln 2 / 2; `n` as an I32 value and, as `whole`, in F32; `r` as F32.
template <class N, class V> struct ExpParts {
  N n;
  V whole, r;
};

constexpr double kRoundMagic = 0x1.8p23; // adding it leaves the nearest integer in the low mantissa bits

// Works for |x| < 2^21; a NaN gives a NaN r and some n.
template <class B, class V> inline auto splitExp(B &b, V x) {
  V magic = b.like(x, kRoundMagic);
  V shifted = b.fma(x, b.like(x, 0x1.715476p+0), magic);
  V n = b.sub(shifted, magic);
  V r = b.fma(n, b.like(x, -0x1.62e4p-1), x);
  r = b.fma(n, b.like(x, -0x1.7f7d1cp-20), r);
  auto i = b.sub(b.bits(shifted), b.bits(magic));
  return ExpParts<decltype(i), V>{i, n, r};
}

// x * 2^n for n of a result that may be denormal or overflow: two exact steps and one rounding. `whole` is n in F32.
template <class B, class V, class N> inline V scaleBy(B &b, V x, N n, V whole) {
  if constexpr (kHasShortcuts<B>) {
    V result = x;
    if (b.scale(x, whole, result))
      return result;
  }
  N bias = b.likeInt(n, 127), shift = b.likeInt(n, 23);
  N half = b.shr(n, b.likeInt(n, 1));
  N rest = b.sub(n, half);
  V first = b.fromBits(b.shl(b.add(half, bias), shift));
  V second = b.fromBits(b.shl(b.add(rest, bias), shift));
  return b.mul(b.mul(x, first), second);
}

constexpr double kExpTail[] = {0x1.000000p-1f, 0x1.555554p-3f,  0x1.5554e0p-5f,
                               0x1.11130ap-7f, 0x1.6d5828p-10f, 0x1.9e1612p-13f};

// e^r - 1 on |r| <= ln 2 / 2.
template <class B, class V> inline V expm1Core(B &b, V r) { return b.fma(b.mul(r, r), polynomial(b, r, kExpTail), r); }

// Below kExpZero the result is 0. It is chosen, not computed: a product that underflows takes the processor over a
// hundred cycles, and masked scores of attention are all of this kind.
constexpr double kExpZero = -0x1.9fe368p6;

template <class B, class V> inline V expF32(B &b, V x) {
  V zero = b.like(x, 0);
  auto vanishes = b.cmp(Cmp::Lt, x, b.like(x, kExpZero));
  auto parts = splitExp(b, b.select(vanishes, zero, capAt(b, x, 89.0)));
  V p = b.add(expm1Core(b, parts.r), b.like(x, 1));
  return b.select(vanishes, zero, scaleBy(b, p, parts.n, parts.whole));
}

template <class B, class V> inline V exp2F32(B &b, V x) {
  constexpr double kC[] = {0x1.62e430p-1f,  0x1.ebfbe0p-3f,  0x1.c6b070p-5f, 0x1.3b2a58p-7f,
                           0x1.5da280p-10f, 0x1.44142ep-13f, 0x1.e4e424p-17f};
  V zero = b.like(x, 0);
  auto vanishes = b.cmp(Cmp::Lt, x, b.like(x, -150));
  x = b.select(vanishes, zero, capAt(b, x, 129.0));
  V magic = b.like(x, kRoundMagic);
  V shifted = b.add(x, magic);
  V whole = b.sub(shifted, magic);
  V r = b.sub(x, whole);
  auto n = b.sub(b.bits(shifted), b.bits(magic));
  V p = b.fma(polynomial(b, r, kC), r, b.like(x, 1));
  return b.select(vanishes, zero, scaleBy(b, p, n, whole));
}

// 2^n * (e^r - 1) + (2^n - 1), halved until the last step so that n = 128 does not overflow early.
template <class B, class V> inline V expm1F32(B &b, V x) {
  V y = floorAt(b, capAt(b, x, 89.0), -18.0);
  auto parts = splitExp(b, y);
  V core = expm1Core(b, parts.r);
  auto n = parts.n;
  V half = b.fromBits(b.shl(b.add(n, b.likeInt(n, 126)), b.likeInt(n, 23)));
  V sum = b.fma(half, core, b.sub(half, b.like(x, 0.5)));
  V result = b.select(b.cmp(Cmp::Eq, n, b.likeInt(n, 0)), core, b.add(sum, sum));
  return b.copysign(result, x);
}

template <class B, class V> inline V tanhF32(B &b, V x) {
  constexpr double kC[] = {-0x1.555554p-2f, 0x1.11107ap-3f,  -0x1.b9f18ap-5f,
                           0x1.63a58ap-6f,  -0x1.0c60d2p-7f, 0x1.1a3336p-9f};
  V a = b.absf(x), one = b.like(x, 1);
  V z = b.mul(a, a);
  V small = b.fma(b.mul(z, a), polynomial(b, z, kC), a);
  V e = expF32(b, b.add(a, a));
  V large = b.sub(one, b.div(b.like(x, 2), b.add(e, one)));
  return b.copysign(b.select(b.cmp(Cmp::Lt, a, b.like(x, 0.625)), small, large), x);
}

template <class B, class V> inline V sinhF32(B &b, V x) {
  constexpr double kC[] = {0x1.555556p-3f, 0x1.1110e0p-7f, 0x1.a022bcp-13f, 0x1.756c1ep-19f};
  V a = b.absf(x);
  V z = b.mul(a, a);
  V small = b.fma(b.mul(z, a), polynomial(b, z, kC), a);
  // e^a / 2 as the square of e^(a/2) / sqrt 2 would lose digits: scale by 2^(n - 1) instead.
  V c = capAt(b, a, 90.0);
  auto parts = splitExp(b, c);
  auto n = b.sub(parts.n, b.likeInt(parts.n, 1));
  V whole = b.sub(parts.whole, b.like(x, 1));
  V half = scaleBy(b, b.add(expm1Core(b, parts.r), b.like(x, 1)), n, whole);
  V large = b.sub(half, b.div(b.like(x, 0.25), half));
  return b.copysign(b.select(b.cmp(Cmp::Lt, a, b.like(x, 1)), small, large), x);
}

template <class B, class V> inline V coshF32(B &b, V x) {
  V c = capAt(b, b.absf(x), 90.0);
  auto parts = splitExp(b, c);
  auto n = b.sub(parts.n, b.likeInt(parts.n, 1));
  V whole = b.sub(parts.whole, b.like(x, 1));
  V half = scaleBy(b, b.add(expm1Core(b, parts.r), b.like(x, 1)), n, whole);
  return b.add(half, b.div(b.like(x, 0.25), half));
}

template <class B, class V> inline V sigmoidF32(B &b, V x) {
  V one = b.like(x, 1);
  V e = expF32(b, b.neg(b.absf(x)));
  V top = b.select(b.cmp(Cmp::Lt, x, b.like(x, 0)), e, one);
  return b.div(top, b.add(one, e));
}

template <class B, class V, class F> inline V ownOrLibm(B &b, V x, F &&own, Libm f) {
  auto call = [&](auto v) { return b.libm(f, v); };
  return byKind(b, x, own, call, [](auto v) { return v; });
}

} // namespace detail

/// e^x; float kinds, as all of this file.
template <class B, class V> inline V exp_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::expF32(b, v); }, Libm::Exp);
}
/// 2^x.
template <class B, class V> inline V exp2_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::exp2F32(b, v); }, Libm::Exp2);
}
/// e^x - 1 without cancellation.
template <class B, class V> inline V expm1_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::expm1F32(b, v); }, Libm::Expm1);
}
template <class B, class V> inline V tanh_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::tanhF32(b, v); }, Libm::Tanh);
}
template <class B, class V> inline V sinh_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::sinhF32(b, v); }, Libm::Sinh);
}
template <class B, class V> inline V cosh_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::coshF32(b, v); }, Libm::Cosh);
}
/// 1 / (1 + e^-x), right down to denormal results.
template <class B, class V> inline V sigmoid_(B &b, V x) {
  auto f64 = [&](auto v) {
    auto one = b.like(v, 1);
    auto e = b.libm(Libm::Exp, b.neg(b.absf(v)));
    auto top = b.select(b.cmp(Cmp::Lt, v, b.like(v, 0)), e, one);
    return b.div(top, b.add(one, e));
  };
  return byKind(b, x, [&](auto v) { return detail::sigmoidF32(b, v); }, f64, [](auto v) { return v; });
}

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_EXP_H
