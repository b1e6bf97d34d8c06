// Error function and relatives. f32 erf: own fits (tools/fit/fit.py), at most 2 ulp; the rest and
// f64: scalar libm.
#ifndef DLC_RUNTIME_SCALAR_ERF_H
#define DLC_RUNTIME_SCALAR_ERF_H

#include "runtime/scalar/Exp.h"

namespace dlc::scalar {

namespace detail {

// x + x * P(x^2) up to 1, then 1 - R(x) with R a rational fit of erfc in absolute error, about
// the middle of the range: in powers of x itself its terms would cancel.
template <class B, class V> inline V erfF32(B &b, V x) {
  constexpr double kSmall[] = {0x1.06eba8p-3f, -0x1.81273ep-2f,  0x1.ce2ce6p-4f, -0x1.b7f71ap-6f,
                               0x1.53f224p-8f, -0x1.a3515ep-11f, 0x1.4771fcp-14f};
  constexpr double kTop[] = {0x1.7f70e8p-10f, -0x1.7b679cp-8f, 0x1.51f002p-7f,  -0x1.5fe5e6p-7f,
                             0x1.ced4a8p-8f,  -0x1.7fa4b0p-9f, 0x1.7153eep-11f, -0x1.3c3904p-14f};
  constexpr double kBottom[] = {1.0, 0x1.d9a0dcp-1f, 0x1.29678cp-1f, 0x1.76fd02p-3f, 0x1.171fbap-5f};
  V a = b.absf(x);
  V z = b.mul(x, x);
  V small = b.fma(x, polynomial(b, z, kSmall), x);
  V c = b.sub(capAt(b, a, 3.93), b.like(x, 2.25));
  V large = b.sub(b.like(x, 1), b.div(polynomial(b, c, kTop), polynomial(b, c, kBottom)));
  auto near = b.cmp(Cmp::Lt, a, b.like(x, 1));
  return b.copysign(b.select(near, small, large), x);
}

} // namespace detail

/// Error function; float kinds, as all of this file.
template <class B, class V> inline V erf_(B &b, V x) {
  return detail::ownOrLibm(b, x, [&](auto v) { return detail::erfF32(b, v); }, Libm::Erf);
}
/// 1 - erf(x) without cancellation; f32 through the f64 function, since C's f32 one is 2.2 ulp off.
template <class B, class V> inline V erfc_(B &b, V x) {
  auto f32 = [&](auto v) {
    return b.template convert<Kind::F32>(b.libm(Libm::Erfc, b.template convert<Kind::F64>(v)));
  };
  return byKind(b, x, f32, [&](auto v) { return b.libm(Libm::Erfc, v); }, [](auto v) { return v; });
}
template <class B, class V> inline V lgamma_(B &b, V x) { return b.libm(Libm::Lgamma, x); }
/// Gamma function.
template <class B, class V> inline V tgamma_(B &b, V x) { return b.libm(Libm::Tgamma, x); }
template <class B, class V> inline V cbrt_(B &b, V x) { return b.libm(Libm::Cbrt, x); }
template <class B, class V> inline V hypot_(B &b, V x, V y) { return b.libm(Libm::Hypot, x, y); }
template <class B, class V> inline V nextafter_(B &b, V x, V y) { return b.libm(Libm::Nextafter, x, y); }

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_ERF_H
