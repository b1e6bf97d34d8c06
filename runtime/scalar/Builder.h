// What a builder of scalar code must offer, and the helpers by which primitives pick code by kind.
//
// A primitive is a function template `template <class B, class V> auto exp_(B &b, V x)`. Three builders instantiate it:
// NativeBuilder (a value is a C++ number: eager kernels, folding), TextBuilder (a value is the name of a CUDA
// variable), and the lowering's builder (a value is an SSA value, scalar or vector). All do the same operations in the
// same order, so results agree bit for bit. Code is straight-line: no branch on data, only `select`.
//
// Builder interface. `V` is the value type; a native builder has one per Kind, the others have one that carries its
// Kind (also signedness: I8 and U8 differ in compare, divide, right shift and convert) and perhaps a vector shape.
//
// clang-format off
//   Kind kind(V x)                         of a value; a native builder answers from the C++ type
//   V like(V x, double c)                  constant with the kind and shape of x; float kinds and Bool
//   V likeInt(V x, int64_t c)              the same for integer kinds (wraps) and Bool
//   V add/sub/mul(V x, V y)                floats: one IEEE rounding each, never contracted; ints: wrap
//   V div(V x, V y)                        float kinds only
//   V divInt(V x, V y), remInt(V x, V y)   truncating, signed or unsigned by kind; y is never 0 and never overflows
//   V neg(V x)                             float kinds: flips the sign bit, of NaN too
//   V fma(V x, V y, V z)                   float kinds, one rounding
//   V absf(V x), copysign(V x, V y)        float kinds, on bits
//   V sqrt, floor, ceil, trunc, roundeven(V x)   float kinds, correctly rounded
//   V cmp(Cmp c, V x, V y)                 Bool result; with a NaN operand only Ne is true
//   V select(V condition, V x, V y)        condition is Bool; both sides are computed
//   V bitAnd/bitOr/bitXor(V x, V y)        integers and Bool
//   V shl(V x, V n)                        integers, 0 <= n < width
//   V shr(V x, V n)                        arithmetic for signed kinds, logical for U8
//   V shrLogical(V x, V n)                 logical for every kind
//   V bits(V x)                            F32 -> I32, F64 -> I64, same bits
//   V fromBits(V x)                        the inverse
//   V convert<K>(V x)                      to kind K: int <-> int by sign or zero extension or truncation (Bool is 0 or
//                                          1), int -> float nearest even, float -> float; float -> int truncates and is
//                                          only applied to values that fit; to Bool: never used (compare with 0)
//   V libm(Libm f, V x...)                 scalar call in the value's kind (see Libm); a vector builder calls per lane
//   void raise(V condition, Fault f)       marks the kernel's error slot if the Bool condition holds in any lane
// Where kHasShortcuts<B>, which must not change a bit of a result:
//   bool scale(V x, V n, V &result)        x * 2^n for whole n (a float), one rounding; false: no instruction for it
//   void inAnyLane(V condition, F f, V &...)  f() replaces the values; it may be left out if no lane has the condition
// clang-format on
#ifndef DLC_RUNTIME_SCALAR_BUILDER_H
#define DLC_RUNTIME_SCALAR_BUILDER_H

#include "runtime/scalar/Kind.h"

#include <cstddef>

namespace dlc::scalar {

/// Comparisons. Ne is true with a NaN operand, the others are false.
enum class Cmp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

/// What a primitive may report through the kernel's error slot; the slot holds the largest value
/// seen.
enum class Fault : int64_t { None = 0, DivisionByZero = 1 };

/// Functions that are called per element. For F32 the C name has the suffix `f`. IntPow is ours:
/// `int64_t dlc_ipow(int64_t, int64_t)` (NativeBuilder.h), called with I64 values.
enum class Libm : uint8_t {
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Erfc,
  Lgamma,
  Tgamma,
  Cbrt,
  Atan2,
  Pow,
  Fmod,
  Hypot,
  Nextafter,
  IntPow
};

/// Returns the C name of `f` for F64 values, "exp" for Exp; append `f` for F32. "dlc_ipow" for
/// IntPow.
constexpr const char *libmName(Libm f) {
  constexpr const char *kNames[] = {"exp",   "exp2",  "expm1", "log",   "log2",      "log10",   "log1p",  "sin",
                                    "cos",   "tan",   "asin",  "acos",  "atan",      "sinh",    "cosh",   "tanh",
                                    "asinh", "acosh", "atanh", "erf",   "erfc",      "lgamma",  "tgamma", "cbrt",
                                    "atan2", "pow",   "fmod",  "hypot", "nextafter", "dlc_ipow"};
  return kNames[static_cast<int>(f)];
}

/// Whether the builder has the shortcuts described above.
template <class B> inline constexpr bool kHasShortcuts = false;

/// Whether values of type V are C++ numbers, so that their kind is known when templates are
/// instantiated.
template <class V> inline constexpr bool kIsNative = std::is_arithmetic_v<V>;

/// Calls `f32(x)`, `f64(x)` or `other(x)` by the kind of x. The unused ones are not instantiated
/// for native values; for the others all three must return the builder's value type.
template <class B, class V, class F32, class F64, class Other>
inline auto byKind(B &b, V x, F32 &&f32, F64 &&f64, Other &&other) {
  if constexpr (kIsNative<V>) {
    if constexpr (kKindOf<V> == Kind::F32)
      return f32(x);
    else if constexpr (kKindOf<V> == Kind::F64)
      return f64(x);
    else
      return other(x);
  } else {
    switch (b.kind(x)) {
    case Kind::F32:
      return f32(x);
    case Kind::F64:
      return f64(x);
    default:
      return other(x);
    }
  }
}

/// Calls `onFloat`, `onInt` or `onBool` by the class of x's kind; see byKind.
template <class B, class V, class F, class I, class O>
inline auto byClass(B &b, V x, F &&onFloat, I &&onInt, O &&onBool) {
  if constexpr (kIsNative<V>) {
    if constexpr (isFloat(kKindOf<V>))
      return onFloat(x);
    else if constexpr (isInt(kKindOf<V>))
      return onInt(x);
    else
      return onBool(x);
  } else {
    Kind kind = b.kind(x);
    return isFloat(kind) ? onFloat(x) : isInt(kind) ? onInt(x) : onBool(x);
  }
}

/// The constant `c` of the kind and shape of x, whatever its kind.
template <class B, class V> inline V constant(B &b, V x, double c) {
  return byClass(
      b, x, [&](auto v) { return b.like(v, c); }, [&](auto v) { return b.likeInt(v, static_cast<int64_t>(c)); },
      [&](auto v) { return b.likeInt(v, c != 0); });
}

/// Converts between integer kinds where the target is known at run time only; for builders with one
/// value type.
template <class B, class V> inline V convertInt(B &b, V x, Kind to) {
  switch (to) {
  case Kind::I8:
    return b.template convert<Kind::I8>(x);
  case Kind::U8:
    return b.template convert<Kind::U8>(x);
  case Kind::I16:
    return b.template convert<Kind::I16>(x);
  case Kind::I32:
    return b.template convert<Kind::I32>(x);
  default:
    return b.template convert<Kind::I64>(x);
  }
}

/// c[0] + x * (c[1] + x * (...)) by Horner's rule with fma.
template <class B, class V, size_t N> inline V polynomial(B &b, V x, const double (&c)[N]) {
  V sum = b.like(x, c[N - 1]);
  for (size_t i = N - 1; i-- > 0;)
    sum = b.fma(sum, x, b.like(x, c[i]));
  return sum;
}

/// The smaller of a constant and x; NaN stays NaN (the constant is the first operand of the
/// machine's min).
template <class B, class V> inline V capAt(B &b, V x, double c) {
  V limit = b.like(x, c);
  return b.select(b.cmp(Cmp::Lt, limit, x), limit, x);
}

/// The larger of a constant and x; NaN stays NaN.
template <class B, class V> inline V floorAt(B &b, V x, double c) {
  V limit = b.like(x, c);
  return b.select(b.cmp(Cmp::Gt, limit, x), limit, x);
}

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_BUILDER_H
