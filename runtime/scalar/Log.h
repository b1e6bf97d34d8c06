// Logarithms and pow. f32: own polynomials (fits: tools/fit/fit.py), at most 2 ulp over the whole
// range; pow is computed in f64 lanes, half an ulp. f64: scalar libm.
#ifndef DLC_RUNTIME_SCALAR_LOG_H
#define DLC_RUNTIME_SCALAR_LOG_H

#include "runtime/scalar/Exp.h"

namespace dlc::scalar {

namespace detail {

/// x = 2^k * (1 + f) with 1 + f in [sqrt 1/2, sqrt 2); k as F32.
template <class V> struct LogParts {
  V k, f;
};

// For positive x, denormals too; what it gives for others is replaced by finishLog.
template <class B, class V> inline LogParts<V> splitLog(B &b, V x) {
  auto tiny = b.cmp(Cmp::Lt, x, b.like(x, 0x1p-126));
  V y = b.select(tiny, b.mul(x, b.like(x, 0x1p23)), x);
  auto i = b.bits(y);
  auto k = b.shr(b.sub(i, b.likeInt(i, 0x3f3504f3)), b.likeInt(i, 23));
  V m = b.fromBits(b.sub(i, b.shl(k, b.likeInt(i, 23))));
  V exponent = b.template convert<Kind::F32>(k);
  exponent = b.select(tiny, b.sub(exponent, b.like(x, 23)), exponent);
  return {exponent, b.sub(m, b.like(x, 1))};
}

// log(1 + f) - f.
template <class B, class V> inline V logTail(B &b, V f) {
  constexpr double kC[] = {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a01cp-3f, -0x1.54728ap-3f,
                           0x1.22d930p-3f, -0x1.0d8246p-3f, 0x1.055eaep-3f, -0x1.38c974p-4f};
  V z = b.mul(f, f);
  return b.fma(b.mul(z, f), polynomial(b, f, kC), b.mul(z, b.like(f, -0.5)));
}

// The values at the border of the domain: NaN below `zero`, -inf at it, inf and NaN unchanged.
template <class B, class V> inline V finishLog(B &b, V x, V y, double zero) {
  V pole = b.like(x, zero);
  y = b.select(b.cmp(Cmp::Lt, x, b.like(x, kInfinity)), y, x);
  y = b.select(b.cmp(Cmp::Eq, x, pole), b.like(x, -kInfinity), y);
  return b.select(b.cmp(Cmp::Lt, x, pole), b.like(x, kNan), y);
}

template <class B, class V> inline V logF32(B &b, V x) {
  LogParts<V> parts = splitLog(b, x);
  V tail = b.fma(parts.k, b.like(x, 0x1.7f7d1cp-20), logTail(b, parts.f));
  V y = b.fma(parts.k, b.like(x, 0x1.62e4p-1), b.add(parts.f, tail));
  return finishLog(b, x, y, 0);
}

// k * log_base(2) + log_base(e) * log(1 + f), each constant in two parts.
template <class B, class V> inline V logOfBase(B &b, V x, double kHi, double kLo, double eHi, double eLo) {
  LogParts<V> parts = splitLog(b, x);
  V f = parts.f;
  V low = b.fma(f, b.like(x, eLo), b.mul(logTail(b, f), b.like(x, eHi)));
  low = b.fma(parts.k, b.like(x, kLo), low);
  V high = b.mul(parts.k, b.like(x, kHi));
  V y = b.add(high, b.fma(f, b.like(x, eHi), low));
  return finishLog(b, x, y, 0);
}

// As log, of 1 + x with f formed from x itself, so that nothing is lost to the addition.
template <class B, class V> inline V log1pF32(B &b, V x) {
  V one = b.like(x, 1);
  V sum = b.add(x, one);
  auto i = b.bits(sum);
  auto shift = b.likeInt(i, 23);
  auto k = b.shr(b.sub(i, b.likeInt(i, 0x3f3504f3)), shift);
  // x * 2^-k + (2^-k - 1); the exponent of x is lowered directly since 2^-k may be denormal.
  V scaled = b.fromBits(b.sub(b.bits(x), b.shl(k, shift)));
  auto most = b.likeInt(i, 127);
  auto limited = b.select(b.cmp(Cmp::Gt, k, most), most, k); // 1 + x rounds to 2^128 for the largest x
  V power = b.fromBits(b.shl(b.sub(most, limited), shift));
  auto whole = b.cmp(Cmp::Eq, k, b.likeInt(k, 0));
  V f = b.select(whole, x, b.add(scaled, b.sub(power, one)));
  V exponent = b.template convert<Kind::F32>(k);
  V tail = b.fma(exponent, b.like(x, 0x1.7f7d1cp-20), logTail(b, f));
  V y = b.fma(exponent, b.like(x, 0x1.62e4p-1), b.add(f, tail));
  y = b.select(b.cmp(Cmp::Eq, x, b.like(x, 0)), x, y);
  return finishLog(b, x, y, -1);
}

// log2 of |x| for an f32 value in f64, relative error 2^-44.
template <class B, class V> inline auto log2InF64(B &b, V x) {
  constexpr double kC[] = {0x1.71547652b8250p+1, 0x1.ec709dc53fb45p-1, 0x1.2776c28eceee7p-1,
                           0x1.a61a32ae99644p-2, 0x1.4794a92f95ae9p-2, 0x1.21bb398b53732p-2};
  auto d = b.template convert<Kind::F64>(b.absf(x));
  auto i = b.bits(d);
  auto shift = b.likeInt(i, 52);
  auto k = b.shr(b.sub(i, b.likeInt(i, 0x3fe6a09e667f3bcd)), shift);
  auto m = b.fromBits(b.sub(i, b.shl(k, shift)));
  auto one = b.like(d, 1), magic = b.like(d, 0x1.8p52);
  auto s = b.div(b.sub(m, one), b.add(m, one));
  auto exponent = b.sub(b.fromBits(b.add(k, b.bits(magic))), magic);
  auto y = b.fma(s, polynomial(b, b.mul(s, s), kC), exponent);
  auto infinity = b.like(d, kInfinity);
  y = b.select(b.cmp(Cmp::Lt, d, infinity), y, d);
  return b.select(b.cmp(Cmp::Eq, d, b.like(d, 0)), b.neg(infinity), y);
}

// 2^t rounded once to f32.
template <class B, class V> inline auto exp2FromF64(B &b, V t) {
  constexpr double kC[] = {0x1.ffffffffabbd1p-1, 0x1.62e42ff1162d3p-1,  0x1.ebfbe0a4be555p-3,  0x1.c6b08aaf25fc3p-5,
                           0x1.3b29dc40f49dcp-7, 0x1.5d8a7091ae515p-10, 0x1.446a1fc5eec0ap-13, 0x1.fe1778a6523abp-17};
  t = floorAt(b, capAt(b, t, 130.0), -160.0);
  auto magic = b.like(t, 0x1.8p52);
  auto shifted = b.add(t, magic);
  auto r = b.sub(t, b.sub(shifted, magic));
  auto n = b.sub(b.bits(shifted), b.bits(magic));
  auto scale = b.fromBits(b.shl(b.add(n, b.likeInt(n, 1023)), b.likeInt(n, 52)));
  return b.template convert<Kind::F32>(b.mul(polynomial(b, r, kC), scale));
}

template <class B, class V> inline V powF32(B &b, V x, V y) {
  V zero = b.like(x, 0), one = b.like(x, 1), infinity = b.like(x, kInfinity);
  V r = exp2FromF64(b, b.mul(b.template convert<Kind::F64>(y), log2InF64(b, x)));
  V half = b.mul(y, b.like(x, 0.5));
  auto whole = b.cmp(Cmp::Eq, b.trunc(y), y);
  auto odd = b.bitAnd(whole, b.cmp(Cmp::Ne, b.trunc(half), half));
  r = b.select(odd, b.copysign(r, x), r);
  auto inDomain = b.bitOr(whole, b.cmp(Cmp::Eq, x, b.neg(infinity)));
  auto outside = b.bitAnd(b.cmp(Cmp::Lt, x, zero), notBool(b, inDomain));
  r = b.select(outside, b.like(x, kNan), r);
  auto unit = b.bitAnd(b.cmp(Cmp::Eq, x, b.neg(one)), b.cmp(Cmp::Eq, b.absf(y), infinity));
  unit = b.bitOr(unit, b.bitOr(b.cmp(Cmp::Eq, x, one), b.cmp(Cmp::Eq, y, zero)));
  return b.select(unit, one, r);
}

} // namespace detail

/// Natural logarithm; float kinds, as all logarithms.
template <class B, class V> inline V log_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::logF32(b, v); }, Libm::Log);
}
template <class B, class V> inline V log2_(B &b, V x) {
  auto own = [&](auto v) { return detail::logOfBase(b, v, 1.0, 0.0, 0x1.715476p+0, 0x1.4ae0cp-26); };
  return detail::ownOrLibm(b, x, own, Libm::Log2);
}
template <class B, class V> inline V log10_(B &b, V x) {
  auto own = [&](auto v) {
    return detail::logOfBase(b, v, 0x1.344p-2, 0x1.3509f8p-18, 0x1.bcb7b2p-2, -0x1.5b235ep-27);
  };
  return detail::ownOrLibm(b, x, own, Libm::Log10);
}
/// log(1 + x) without cancellation.
template <class B, class V> inline V log1p_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::log1pF32(b, v); }, Libm::Log1p);
}

/// x to the power y. Floats follow C's pow in all special cases; ints wrap and negative exponents
/// give 0, 1 or -1.
template <class B, class V> inline V pow_(B &b, V x, V y) {
  auto ofInt = [&](auto v) {
    using T = decltype(v);
    auto wide = b.libm(Libm::IntPow, b.template convert<Kind::I64>(v), b.template convert<Kind::I64>(y));
    if constexpr (kIsNative<T>)
      return b.template convert<kKindOf<T>>(wide);
    else
      return convertInt(b, wide, b.kind(v));
  };
  return byKind(
      b, x, [&](auto v) { return detail::powF32(b, v, y); }, [&](auto v) { return b.libm(Libm::Pow, v, y); }, ofInt);
}

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_LOG_H
