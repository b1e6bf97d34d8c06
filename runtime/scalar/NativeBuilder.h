// The builder whose values are C++ numbers: eager kernels and constant folding. Every method is one
// machine operation that clang vectorises in a plain loop; compile with -ffp-contract=off.
#ifndef DLC_RUNTIME_SCALAR_NATIVEBUILDER_H
#define DLC_RUNTIME_SCALAR_NATIVEBUILDER_H

#include "runtime/scalar/Builder.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace dlc::scalar {

/// base to the power of exponent with wrap-around; negative exponents give the truncated quotient 1
/// / base^-exponent, and 0 for base 0.
inline int64_t intPow(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1)
      return 1;
    return base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e; e >>= 1, factor *= factor)
    if (e & 1)
      result *= factor;
  return static_cast<int64_t>(result);
}

/// Builder over C++ numbers. Faults are collected in `fault`, which the kernel stores to its error
/// slot at the end.
struct NativeBuilder {
  /// The largest Fault raised so far.
  int64_t fault = 0;

  template <class T> static constexpr Kind kind(T) { return kKindOf<T>; }
  template <class T> static constexpr T like(T, double c) { return static_cast<T>(c); }
  template <class T> static constexpr T likeInt(T, int64_t c) { return static_cast<T>(c); }

  template <class T> static T add(T x, T y) {
    return wrap(x, y, [](auto a, auto c) { return a + c; });
  }
  template <class T> static T sub(T x, T y) {
    return wrap(x, y, [](auto a, auto c) { return a - c; });
  }
  template <class T> static T mul(T x, T y) {
    return wrap(x, y, [](auto a, auto c) { return a * c; });
  }
  template <class T> static T div(T x, T y) {
    static_assert(std::is_floating_point_v<T>);
    return x / y;
  }
  template <class T> static T divInt(T x, T y) { return static_cast<T>(x / y); }
  template <class T> static T remInt(T x, T y) { return static_cast<T>(x % y); }
  template <class T> static T neg(T x) { return -x; }
  static float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
  static double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
  static float absf(float x) { return __builtin_fabsf(x); }
  static double absf(double x) { return __builtin_fabs(x); }
  static float copysign(float x, float y) { return __builtin_copysignf(x, y); }
  static double copysign(double x, double y) { return __builtin_copysign(x, y); }
  // Not __builtin_sqrtf: it may set errno, which keeps loops scalar.
  static float sqrt(float x) { return __builtin_elementwise_sqrt(x); }
  static double sqrt(double x) { return __builtin_elementwise_sqrt(x); }
  static float floor(float x) { return __builtin_floorf(x); }
  static double floor(double x) { return __builtin_floor(x); }
  static float ceil(float x) { return __builtin_ceilf(x); }
  static double ceil(double x) { return __builtin_ceil(x); }
  static float trunc(float x) { return __builtin_truncf(x); }
  static double trunc(double x) { return __builtin_trunc(x); }
  static float roundeven(float x) { return __builtin_roundevenf(x); }
  static double roundeven(double x) { return __builtin_roundeven(x); }

  template <class T> static bool cmp(Cmp c, T x, T y) {
    switch (c) {
    case Cmp::Eq:
      return x == y;
    case Cmp::Ne:
      return x != y;
    case Cmp::Lt:
      return x < y;
    case Cmp::Le:
      return x <= y;
    case Cmp::Gt:
      return x > y;
    case Cmp::Ge:
      return x >= y;
    }
    return false;
  }
  template <class T> static T select(bool condition, T x, T y) { return condition ? x : y; }
  template <class T> static T bitAnd(T x, T y) { return static_cast<T>(x & y); }
  template <class T> static T bitOr(T x, T y) { return static_cast<T>(x | y); }
  template <class T> static T bitXor(T x, T y) { return static_cast<T>(x ^ y); }
  template <class T> static T shl(T x, T n) { return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << n); }
  template <class T> static T shr(T x, T n) { return static_cast<T>(x >> n); }
  template <class T> static T shrLogical(T x, T n) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) >> n);
  }
  static int32_t bits(float x) { return bitCast<int32_t>(x); }
  static int64_t bits(double x) { return bitCast<int64_t>(x); }
  static float fromBits(int32_t x) { return bitCast<float>(x); }
  static double fromBits(int64_t x) { return bitCast<double>(x); }
  template <Kind K, class T> static TypeOf<K> convert(T x) { return static_cast<TypeOf<K>>(x); }

  void raise(bool condition, Fault f) {
    int64_t code = condition ? static_cast<int64_t>(f) : 0;
    fault = fault > code ? fault : code;
  }

  template <class T> static T libm(Libm f, T x);
  template <class T> static T libm(Libm f, T x, T y);

private:
  template <class To, class From> static To bitCast(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    std::memcpy(&result, &x, sizeof(To));
    return result;
  }

  // Integer arithmetic wraps: done in the unsigned type, at least 32 bits wide.
  template <class T, class F> static T wrap(T x, T y, F f) {
    if constexpr (std::is_floating_point_v<T>)
      return f(x, y);
    else {
      using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
      return static_cast<T>(f(static_cast<U>(x), static_cast<U>(y)));
    }
  }
};

template <class T> inline T NativeBuilder::libm(Libm f, T x) {
  switch (f) {
  case Libm::Exp:
    return std::exp(x);
  case Libm::Exp2:
    return std::exp2(x);
  case Libm::Expm1:
    return std::expm1(x);
  case Libm::Log:
    return std::log(x);
  case Libm::Log2:
    return std::log2(x);
  case Libm::Log10:
    return std::log10(x);
  case Libm::Log1p:
    return std::log1p(x);
  case Libm::Sin:
    return std::sin(x);
  case Libm::Cos:
    return std::cos(x);
  case Libm::Tan:
    return std::tan(x);
  case Libm::Asin:
    return std::asin(x);
  case Libm::Acos:
    return std::acos(x);
  case Libm::Atan:
    return std::atan(x);
  case Libm::Sinh:
    return std::sinh(x);
  case Libm::Cosh:
    return std::cosh(x);
  case Libm::Tanh:
    return std::tanh(x);
  case Libm::Asinh:
    return std::asinh(x);
  case Libm::Acosh:
    return std::acosh(x);
  case Libm::Atanh:
    return std::atanh(x);
  case Libm::Erf:
    return std::erf(x);
  case Libm::Erfc:
    return std::erfc(x);
  case Libm::Lgamma:
    return std::lgamma(x);
  case Libm::Tgamma:
    return std::tgamma(x);
  case Libm::Cbrt:
    return std::cbrt(x);
  default:
    return std::numeric_limits<T>::quiet_NaN();
  }
}

template <class T> inline T NativeBuilder::libm(Libm f, T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(intPow(x, y));
  } else {
    switch (f) {
    case Libm::Atan2:
      return std::atan2(x, y);
    case Libm::Pow:
      return std::pow(x, y);
    case Libm::Fmod:
      return std::fmod(x, y);
    case Libm::Hypot:
      return std::hypot(x, y);
    case Libm::Nextafter:
      return std::nextafter(x, y);
    default:
      return std::numeric_limits<T>::quiet_NaN();
    }
  }
}

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_NATIVEBUILDER_H
