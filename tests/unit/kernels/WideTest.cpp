// The AVX-512 loops give the bits of the baseline ones, for every function that has them.
#include "KernelTestUtil.h"
#include "kernels/nn/SoftmaxRows.h"
#include "kernels/wide/Wide.h"
#include "runtime/scalar/Primitives.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace dlc;
using namespace dlc::kernels;

namespace {
namespace functions {
#include "runtime/op/ScalarOps.inc"
}

std::vector<float> inputs(size_t n, unsigned seed) {
  std::mt19937 gen(seed);
  std::vector<float> v(n);
  const float inf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, inf, -inf, std::nanf(""), 1.0f, -1.0f, 88.7f, -104.0f, 1e-42f, 3e38f};
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits = gen();
    float any;
    std::memcpy(&any, &bits, 4);
    float usual = std::normal_distribution<float>(0, 4)(gen);
    v[i] = i % 11 == 3 ? special[gen() % 11] : i % 3 == 0 ? any : usual;
  }
  return v;
}

bool sameBits(float a, float b) { return (a != a && b != b) || std::memcmp(&a, &b, 4) == 0; }

template <class F> void compare(const char *name, const WideCode &code) {
  for (int64_t n : {1, 7, 15, 16, 17, 40, 4096}) {
    std::vector<float> in[4], base(static_cast<size_t>(n)), wide(static_cast<size_t>(n));
    char *p[5] = {reinterpret_cast<char *>(base.data())}, *q[5] = {reinterpret_cast<char *>(wide.data())};
    for (int k = 0; k < F::kArity; ++k) {
      in[k] = inputs(static_cast<size_t>(n), static_cast<unsigned>(n * 10 + k));
      p[k + 1] = q[k + 1] = reinterpret_cast<char *>(in[k].data());
    }
    detail::loopOf<F, float>(p, n);
    code.loops[F::kWide](q, n);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_TRUE(sameBits(base[i], wide[i])) << name << "(" << in[0][i] << "): " << base[i] << " and " << wide[i];
  }
}

TEST(Wide, SameBitsAsBaseline) {
  const WideCode *code = wideCode();
  if (!code)
    GTEST_SKIP() << "this machine has no AVX-512";
#define DLC_WIDE(F) compare<functions::F>(#F, *code);
#include "kernels/elementwise/Wide.inc"
#undef DLC_WIDE
}

TEST(Wide, RowsAsBaseline) {
  const WideCode *code = wideCode();
  if (!code)
    GTEST_SKIP() << "this machine has no AVX-512";
  RowFn wide[] = {code->softmax, code->logSoftmax, code->softmaxBackward, code->logSoftmaxBackward};
  RowFn base[] = {softmaxRow<float>, logSoftmaxRow<float>, softmaxBackwardRow<float>, logSoftmaxBackwardRow<float>};
  std::mt19937 gen(1);
  std::normal_distribution<float> normal(0, 3);
  for (int64_t n : {1, 5, 16, 33, 128, 700, 1100}) {
    std::vector<float> a(static_cast<size_t>(n)), b(a), y(a), z(a);
    for (auto *v : {&a, &b})
      for (float &x : *v)
        x = normal(gen);
    for (int k = 0; k < 4; ++k) {
      base[k](a.data(), b.data(), y.data(), n);
      wide[k](a.data(), b.data(), z.data(), n);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_TRUE(sameBits(y[i], z[i])) << k << " length " << n << " at " << i;
    }
  }
}

} // namespace
