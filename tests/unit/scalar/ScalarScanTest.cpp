// Accuracy of the f32 scalar primitives over all bit patterns, against double: every 8191st
// pattern, or every 131st with DLC_TEST_FULL set. Bound: 2 ulp; NaN, infinities and the sign of
// zero exactly.
#include "runtime/scalar/NativeBuilder.h"
#include "runtime/scalar/Primitives.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <vector>

namespace s = dlc::scalar;

namespace {

constexpr size_t kChunk = 4096;

uint32_t scanStride() { return std::getenv("DLC_TEST_FULL") ? 131 : 8191; }

/// Distance of `got` from the exact `want` in units of the last place of the float nearest to it.
double ulps(float got, double want) {
  float rounded = static_cast<float>(want);
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded)
      return 0;
    // One of the two overflowed: measure with 2^128 in place of infinity.
    double a = std::isinf(got) ? std::copysign(0x1p128, got) : got;
    double c = std::isinf(want) ? std::copysign(0x1p300, want) : want;
    return std::abs(a - c) / 0x1p104;
  }
  if (got == 0 && rounded == 0)
    return std::signbit(got) == std::signbit(want) ? std::abs(want) / 0x1p-149 : 1e30;
  int exponent = std::max(std::ilogb(rounded == 0 ? 0x1p-149f : rounded), -126);
  return std::abs(got - want) / std::ldexp(1.0, exponent - 23);
}

struct Worst {
  double error = 0;
  float at = 0, got = 0;
};

template <class Own, class Reference> Worst scan(Own own, Reference reference) {
  std::vector<float> in(kChunk), out(kChunk);
  Worst worst;
  uint64_t bits = 0;
  while (bits < (uint64_t(1) << 32)) {
    size_t n = 0;
    for (; n < kChunk && bits < (uint64_t(1) << 32); ++n, bits += scanStride())
      in[n] = s::NativeBuilder::fromBits(static_cast<int32_t>(static_cast<uint32_t>(bits)));
    own(in.data(), out.data(), n);
    for (size_t i = 0; i < n; ++i) {
      double error = ulps(out[i], reference(static_cast<double>(in[i])));
      if (!(error <= worst.error))
        worst = {error, in[i], out[i]};
    }
  }
  return worst;
}

template <class F> auto loopOf(F f) {
  return [f](const float *in, float *out, size_t n) {
    for (size_t i = 0; i < n; ++i)
      out[i] = f(in[i]);
  };
}

template <class Own, class Reference>
void checkScan(const char *name, Own own, Reference reference, double bound = 2.0) {
  Worst w = scan(loopOf(own), reference);
  std::printf("  %-8s %.3f ulp at %a (%g)\n", name, w.error, w.at, w.at);
  EXPECT_LE(w.error, bound) << name << "(" << w.at << ") gave " << w.got << ", want " << reference(w.at);
  for (float x : {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 0x1p-126f, 3.4028234e38f,
                  -3.4028234e38f, 88.72284f, 88.73f, -103.972f, -104.0f, 0.5f, -0.5f})
    EXPECT_LE(ulps(own(x), reference(x)), bound) << name << "(" << x << ") gave " << own(x);
}

#define DLC_SCAN(Name, reference)                                                                                      \
  TEST(ScalarScan, Name) {                                                                                             \
    checkScan(                                                                                                         \
        #Name,                                                                                                         \
        [](float x) {                                                                                                  \
          s::NativeBuilder b;                                                                                          \
          return s::Name##_(b, x);                                                                                     \
        },                                                                                                             \
        [](double x) -> double { return reference; });                                                                 \
  }

DLC_SCAN(exp, std::exp(x))
DLC_SCAN(exp2, std::exp2(x))
DLC_SCAN(expm1, std::expm1(x))
DLC_SCAN(log, std::log(x))
DLC_SCAN(log2, std::log2(x))
DLC_SCAN(log10, std::log10(x))
DLC_SCAN(log1p, std::log1p(x))
DLC_SCAN(sin, std::sin(x))
DLC_SCAN(cos, std::cos(x))
DLC_SCAN(tan, std::tan(x))
DLC_SCAN(asin, std::asin(x))
DLC_SCAN(acos, std::acos(x))
DLC_SCAN(atan, std::atan(x))
DLC_SCAN(sinh, std::sinh(x))
DLC_SCAN(cosh, std::cosh(x))
DLC_SCAN(tanh, std::tanh(x))
DLC_SCAN(asinh, std::asinh(x))
DLC_SCAN(acosh, std::acosh(x))
DLC_SCAN(atanh, std::atanh(x))
DLC_SCAN(erf, std::erf(x))
DLC_SCAN(erfc, std::erfc(x))
DLC_SCAN(sqrt, std::sqrt(x))
DLC_SCAN(rsqrt, 1 / std::sqrt(x))
DLC_SCAN(reciprocal, 1 / x)
DLC_SCAN(round, std::nearbyint(x))
DLC_SCAN(floor, std::floor(x))
DLC_SCAN(ceil, std::ceil(x))
DLC_SCAN(trunc, std::trunc(x))

TEST(ScalarScan, sigmoid) {
  checkScan(
      "sigmoid",
      [](float x) {
        s::NativeBuilder b;
        return s::sigmoid_(b, x);
      },
      [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); });
}

TEST(ScalarScan, pow) {
  for (float y : {0.5f, -0.5f, 2.0f, 3.0f, -1.0f, 0.0f, 1.5f, -7.0f, 1e-3f, 33.3f, INFINITY, -INFINITY, 16777216.0f})
    checkScan(
        "pow",
        [y](float x) {
          s::NativeBuilder b;
          return s::pow_(b, x, y);
        },
        [y](double x) { return std::pow(x, static_cast<double>(y)); });
  for (float x : {0.5f, -2.0f, 1.0000001f, 0.0f, -0.0f, 1.0f, -1.0f, 10.0f, INFINITY, -INFINITY, 1e-40f})
    checkScan(
        "pow_x",
        [x](float y) {
          s::NativeBuilder b;
          return s::pow_(b, x, y);
        },
        [x](double y) { return std::pow(static_cast<double>(x), y); });
}

TEST(ScalarScan, atan2) {
  for (float x : {0.0f, -0.0f, 1.0f, -1.0f, 1e-30f, -1e30f, INFINITY, -INFINITY, NAN, 0x1p-149f})
    checkScan(
        "atan2",
        [x](float y) {
          s::NativeBuilder b;
          return s::atan2_(b, y, x);
        },
        [x](double y) { return std::atan2(y, static_cast<double>(x)); });
}

} // namespace
