// Trigonometric functions and their inverses. f32: own polynomials (fits: tools/fit/fit.py), at
// most 2 ulp for every input up to the largest float; f64: scalar libm.
#ifndef DLC_RUNTIME_SCALAR_TRIG_H
#define DLC_RUNTIME_SCALAR_TRIG_H

#include "runtime/scalar/Exp.h"

namespace dlc::scalar {

namespace detail {

/// x = q * pi/2 + r with |r| <= pi/4 (a little more); `q` as I32, of which only the low two bits
/// count; r in F32 and, as `wide`, in F64.
template <class N, class V, class W> struct TrigParts {
  N q;
  V r;
  W wide;
};

// The reduction runs in f64 lanes: x * (2/pi) is formed exactly as high + low, the nearest whole
// number is taken off, and a second constant supplies the digits that cancellation uncovers. For
// large x the leading digits of 2/pi only add multiples of 4 turns; each band of magnitudes has its
// own constants without them, so that products stay small.
template <class B, class V> inline auto splitTrig(B &b, V x) {
  constexpr double kLimit[] = {0x1p45, 0x1p66, 0x1p87, 0x1p108};
  constexpr double kFirst[] = {0x1.45f306dc9c883p-1, 0x1.b727220a94fe1p-23, 0x1.1054a7f09d5f4p-42,
                               0x1.fc2757d1f534ep-64, 0x1.7d1f534ddc0dbp-84};
  constexpr double kSecond[] = {-0x1.6b01ec5417056p-55, 0x1.d5f47d4d37703p-78, 0x1.f534ddc0db629p-96,
                                -0x1.1f924eb53361ep-119, 0x1.8a5664f10e410p-138};
  auto d = b.template convert<Kind::F64>(x);
  auto c1 = b.like(d, kFirst[0]), c2 = b.like(d, kSecond[0]);
  auto choose = [&] {
    auto a = b.absf(d);
    for (int i = 0; i < 4; ++i) {
      auto above = b.cmp(Cmp::Ge, a, b.like(d, kLimit[i]));
      c1 = b.select(above, b.like(d, kFirst[i + 1]), c1);
      c2 = b.select(above, b.like(d, kSecond[i + 1]), c2);
    }
  };
  if constexpr (kHasShortcuts<B>)
    b.inAnyLane(b.cmp(Cmp::Ge, b.absf(x), b.like(x, kLimit[0])), choose, c1, c2);
  else
    choose();
  auto high = b.mul(d, c1);
  auto low = b.fma(d, c1, b.neg(high));
  auto magic = b.like(d, 0x1.8p52);
  auto shifted = b.add(high, magic);
  auto turns = b.add(b.sub(high, b.sub(shifted, magic)), b.fma(d, c2, low));
  auto wide = b.mul(turns, b.like(d, 0x1.921fb54442d18p+0));
  V r = b.template convert<Kind::F32>(wide);
  auto q = b.template convert<Kind::I32>(b.bits(shifted));
  return TrigParts<decltype(q), V, decltype(wide)>{q, r, wide};
}

template <class B, class V> inline V sinCore(B &b, V r, V z) {
  constexpr double kC[] = {-0x1.555556p-3f, 0x1.111172p-7f, -0x1.a056a6p-13f, 0x1.7b5ae0p-19f};
  return b.fma(b.mul(z, r), polynomial(b, z, kC), r);
}

template <class B, class V> inline V cosCore(B &b, V z) {
  constexpr double kC[] = {0x1.555556p-5f, -0x1.6c175ap-10f, 0x1.a06d46p-16f, -0x1.34e50ap-22f};
  V low = b.fma(b.mul(z, z), polynomial(b, z, kC), b.mul(z, b.like(z, -0.5)));
  return b.add(b.like(z, 1), low);
}

// sin of q quarter turns plus r: even q takes sin r, odd q cos r; the second bit of q is the sign.
template <class B, class N, class V> inline V quarterSin(B &b, N q, V r) {
  V z = b.mul(r, r);
  N one = b.likeInt(q, 1);
  auto odd = b.cmp(Cmp::Ne, b.bitAnd(q, one), b.likeInt(q, 0));
  V y = b.select(odd, cosCore(b, z), sinCore(b, r, z));
  N flip = b.shl(b.bitAnd(q, b.likeInt(q, 2)), b.likeInt(q, 30));
  return b.fromBits(b.bitXor(b.bits(y), flip));
}

template <class B, class V> inline V sinF32(B &b, V x) {
  auto parts = splitTrig(b, x);
  V y = quarterSin(b, parts.q, parts.r);
  return b.select(b.cmp(Cmp::Eq, x, b.like(x, 0)), x, y);
}

template <class B, class V> inline V cosF32(B &b, V x) {
  auto parts = splitTrig(b, x);
  return quarterSin(b, b.add(parts.q, b.likeInt(parts.q, 1)), parts.r);
}

template <class B, class V> inline V tanF32(B &b, V x) {
  constexpr double kC[] = {0x1.555562p-2f, 0x1.110d12p-3f,   0x1.baf30ep-5f, 0x1.5bb636p-6f,
                           0x1.684c5ep-7f, -0x1.f168bap-14f, 0x1.25b278p-8f};
  auto parts = splitTrig(b, x);
  V r = parts.r;
  V z = b.mul(r, r);
  V tail = b.mul(b.mul(z, r), polynomial(b, z, kC));
  // The sum and the quotient are formed in f64: in f32 they cost 2.3 ulp together.
  auto t = b.add(parts.wide, b.template convert<Kind::F64>(tail));
  auto quotient = b.div(b.like(t, -1), t);
  auto odd = b.cmp(Cmp::Ne, b.bitAnd(parts.q, b.likeInt(parts.q, 1)), b.likeInt(parts.q, 0));
  V y = b.template convert<Kind::F32>(b.select(odd, quotient, t));
  return b.select(b.cmp(Cmp::Eq, x, b.like(x, 0)), x, y);
}

// atan of a in [0, 1].
template <class B, class V> inline V atanCore(B &b, V a) {
  constexpr double kC[] = {-0x1.55553ep-2f, 0x1.9991e6p-3f,  -0x1.2420b6p-3f, 0x1.c08f64p-4f,  -0x1.58155ep-4f,
                           0x1.da5ed4p-5f,  -0x1.fdfc1cp-6f, 0x1.64c1cep-7f,  -0x1.d4984ap-10f};
  V z = b.mul(a, a);
  return b.fma(b.mul(z, a), polynomial(b, z, kC), a);
}

constexpr double kHalfPiHi = 0x1.921fb6p+0, kHalfPiLo = -0x1.777a5cp-25;

template <class B, class V> inline V atanF32(B &b, V x) {
  V a = b.absf(x), one = b.like(x, 1);
  auto steep = b.cmp(Cmp::Gt, a, one);
  V y = atanCore(b, b.select(steep, b.div(one, a), a));
  V other = b.add(b.sub(b.like(x, kHalfPiHi), y), b.like(x, kHalfPiLo));
  return b.copysign(b.select(steep, other, y), x);
}

template <class B, class V> inline V atan2F32(B &b, V y, V x) {
  V ay = b.absf(y), ax = b.absf(x), zero = b.like(x, 0), one = b.like(x, 1);
  auto steep = b.cmp(Cmp::Gt, ay, ax);
  V top = b.select(steep, ax, ay), bottom = b.select(steep, ay, ax);
  V ratio = b.div(top, bottom);
  ratio = b.select(b.cmp(Cmp::Eq, top, bottom), one, ratio); // also inf / inf
  ratio = b.select(b.cmp(Cmp::Eq, top, zero), zero, ratio);  // also 0 / 0
  V angle = atanCore(b, ratio);
  V complement = b.add(b.sub(b.like(x, kHalfPiHi), angle), b.like(x, kHalfPiLo));
  angle = b.select(steep, complement, angle);
  V supplement = b.add(b.sub(b.like(x, 2 * kHalfPiHi), angle), b.like(x, 2 * kHalfPiLo));
  auto i = b.bits(x);
  angle = b.select(b.cmp(Cmp::Lt, i, b.likeInt(i, 0)), supplement, angle);
  auto nan = b.bitOr(b.cmp(Cmp::Ne, x, x), b.cmp(Cmp::Ne, y, y));
  return b.select(nan, b.add(x, y), b.copysign(angle, y));
}

// asin of a = sqrt(z) for a in [0, 1/2].
template <class B, class V> inline V asinCore(B &b, V a, V z) {
  constexpr double kC[] = {0x1.55554cp-3f, 0x1.3338acp-4f, 0x1.6ca750p-5f,
                           0x1.04d366p-5f, 0x1.d5129ep-7f, 0x1.34cf36p-5f};
  return b.fma(b.mul(z, a), polynomial(b, z, kC), a);
}

// Above 1/2 the operand is sqrt((1 - |x|) / 2), whose arc sine is half the complement.
template <class B, class V> inline V asinF32(B &b, V x) {
  V a = b.absf(x), half = b.like(x, 0.5);
  auto large = b.cmp(Cmp::Gt, a, half);
  V z = b.select(large, b.mul(b.sub(b.like(x, 1), a), half), b.mul(a, a));
  V y = asinCore(b, b.select(large, b.sqrt(z), a), z);
  V complement = b.add(b.sub(b.like(x, kHalfPiHi), b.add(y, y)), b.like(x, kHalfPiLo));
  return b.copysign(b.select(large, complement, y), x);
}

template <class B, class V> inline V acosF32(B &b, V x) {
  V a = b.absf(x), half = b.like(x, 0.5);
  auto large = b.cmp(Cmp::Gt, a, half);
  V z = b.select(large, b.mul(b.sub(b.like(x, 1), a), half), b.mul(a, a));
  V y = asinCore(b, b.select(large, b.sqrt(z), a), z);
  V twice = b.add(y, y);
  auto negative = b.cmp(Cmp::Lt, x, b.like(x, 0));
  V far = b.add(b.sub(b.like(x, 2 * kHalfPiHi), twice), b.like(x, 2 * kHalfPiLo));
  V near = b.add(b.sub(b.like(x, kHalfPiHi), b.copysign(y, x)), b.like(x, kHalfPiLo));
  return b.select(large, b.select(negative, far, twice), near);
}

} // namespace detail

/// Sine of x in radians; float kinds, as all of this file.
template <class B, class V> inline V sin_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::sinF32(b, v); }, Libm::Sin);
}
template <class B, class V> inline V cos_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::cosF32(b, v); }, Libm::Cos);
}
template <class B, class V> inline V tan_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::tanF32(b, v); }, Libm::Tan);
}
template <class B, class V> inline V asin_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::asinF32(b, v); }, Libm::Asin);
}
template <class B, class V> inline V acos_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::acosF32(b, v); }, Libm::Acos);
}
template <class B, class V> inline V atan_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::atanF32(b, v); }, Libm::Atan);
}
/// Angle of the point (x, y), with C's special cases.
template <class B, class V> inline V atan2_(B &b, V y, V x) {
  return byKind(
      b, y, [&](auto v) { return detail::atan2F32(b, v, x); }, [&](auto v) { return b.libm(Libm::Atan2, v, x); },
      [](auto v) { return v; });
}

// Inverse hyperbolic functions call libm for every kind.
template <class B, class V> inline V asinh_(B &b, V x) { return b.libm(Libm::Asinh, x); }
template <class B, class V> inline V acosh_(B &b, V x) { return b.libm(Libm::Acosh, x); }
template <class B, class V> inline V atanh_(B &b, V x) { return b.libm(Libm::Atanh, x); }

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_TRIG_H
