// Conversions between all kinds, with one rule for values that do not fit.
//
// Float to int truncates towards zero; to i64 it gives INT64_MIN for NaN and for what does not fit;
// to i32, i16, i8 and u8 it first truncates to i32, with INT32_MIN for NaN and what does not fit,
// and then keeps the low bits. That is what x86 does, so tensor([-1., -2.5, 300.]).byte() is [255,
// 254, 44]; NaN gives 0 below 32 bits. Int to int wraps; to Bool is x != 0 (NaN is true); int to
// float rounds to nearest even; f64 to f32 likewise.
#ifndef DLC_RUNTIME_SCALAR_CAST_H
#define DLC_RUNTIME_SCALAR_CAST_H

#include "runtime/scalar/Arith.h"

namespace dlc::scalar {

namespace detail {
// Truncation to I32 or I64; the operand is replaced by the most negative value where it does not
// fit, so that the conversion itself is always defined.
template <Kind K, class B, class V> inline auto truncateTo(B &b, V x) {
  constexpr double kLow = K == Kind::I32 ? -0x1p31 : -0x1p63;
  V low = b.like(x, kLow), high = b.like(x, -kLow);
  // f64 values between -2^31 - 1 and -2^31 truncate to INT32_MIN, which is also the value for "does
  // not fit".
  auto fits = b.bitAnd(b.cmp(Cmp::Ge, x, low), b.cmp(Cmp::Lt, x, high));
  return b.template convert<K>(b.select(fits, x, low));
}
} // namespace detail

/// x converted to kind K by the rule above.
template <Kind K, class B, class V> inline auto castTo(B &b, V x) {
  if constexpr (K == Kind::Bool) {
    return truth_(b, x);
  } else if constexpr (isFloat(K)) {
    return b.template convert<K>(x);
  } else {
    auto fromFloat = [&](auto v) {
      constexpr Kind kWide = K == Kind::I64 ? Kind::I64 : Kind::I32;
      auto whole = detail::truncateTo<kWide>(b, v);
      if constexpr (K == kWide)
        return whole;
      else
        return b.template convert<K>(whole);
    };
    auto fromInt = [&](auto v) { return b.template convert<K>(v); };
    return byClass(b, x, fromFloat, fromInt, fromInt);
  }
}

/// x converted to a kind known at run time; for builders with one value type.
template <class B, class V> inline V cast(B &b, V x, Kind to) {
  static_assert(!kIsNative<V>, "native code names the kind: castTo<K>(b, x)");
  switch (to) {
  case Kind::Bool:
    return castTo<Kind::Bool>(b, x);
  case Kind::I8:
    return castTo<Kind::I8>(b, x);
  case Kind::U8:
    return castTo<Kind::U8>(b, x);
  case Kind::I16:
    return castTo<Kind::I16>(b, x);
  case Kind::I32:
    return castTo<Kind::I32>(b, x);
  case Kind::I64:
    return castTo<Kind::I64>(b, x);
  case Kind::F32:
    return castTo<Kind::F32>(b, x);
  case Kind::F64:
    return castTo<Kind::F64>(b, x);
  }
  return x;
}

/// f32 from the 16 bits of a bf16, given in an I32.
template <class B, class V> inline auto bf16BitsToF32(B &b, V bits16) {
  return b.fromBits(b.shl(bits16, b.likeInt(bits16, 16)));
}

/// The 16 bits of the nearest bf16 (ties to even) in an I32; NaN gives 0x7fc0 with the sign kept.
template <class B, class V> inline auto f32ToBf16Bits(B &b, V x) {
  auto i = b.bits(x);
  auto c = [&](int64_t v) { return b.likeInt(i, v); };
  auto odd = b.bitAnd(b.shrLogical(i, c(16)), c(1));
  auto rounded = b.shrLogical(b.add(i, b.add(odd, c(0x7fff))), c(16));
  auto quiet = b.bitOr(b.bitAnd(b.shrLogical(i, c(16)), c(0x8000)), c(0x7fc0));
  return b.select(b.cmp(Cmp::Ne, x, x), quiet, rounded);
}

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_CAST_H
