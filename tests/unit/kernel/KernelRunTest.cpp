// Kernels in text, compiled and run, against plain loops.
#include "KernelHarness.h"
#include "runtime/scalar/NativeBuilder.h"
#include "runtime/scalar/Primitives.h"

#include <cmath>
#include <random>

using namespace dlc::compiler;

namespace {

std::vector<float> randomFloats(size_t n, unsigned seed, float scale = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> data(n);
  for (float &x : data)
    x = normal(random);
  return data;
}

const char *kGeluBias = R"(
kernel.func @gelu_bias(%x: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?xf32, strided<[1]>>,
                       %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) {
  %g = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.read %b[affine_map<(d0, d1) -> (d1)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.addf %0, %1 : f32
    %3 = kernel.prim "gelu_erf"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  kernel.write %g, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
})";

TEST(KernelRun, GeluBiasOfEveryLength) {
  KernelHarness h;
  CompiledKernel k = h.one(kGeluBias);
  ASSERT_TRUE(k.fn);
  for (int64_t c = 0; c <= 40; ++c) {
    int64_t r = 3, ld = c + 5;
    std::vector<float> x = randomFloats(r * ld, 1), b = randomFloats(c + 1, 2), y(r * ld, -7);
    for (int pieces : {1, 2, 5}) {
      std::fill(y.begin(), y.end(), -7.f);
      EXPECT_EQ(run(k, {x.data(), b.data(), y.data()}, {ld, ld, r, c}, pieces), 0);
      dlc::scalar::NativeBuilder native;
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < ld; ++j) {
          float want = j < c ? dlc::scalar::gelu_erf_(native, x[i * ld + j] + b[j]) : -7.f;
          ASSERT_EQ(y[i * ld + j], want) << c << " " << i << " " << j;
        }
    }
  }
}

const char *kSoftmax = R"(
kernel.func @softmax(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>,
                     %R: index, %C: index, %err: memref<i64>) domain(r = %R, c = %C) outs(%y) {
  %m = kernel.reduce over(r, c) by(c) combine [max] : !kernel.val<f32, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %e = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.use %m : !kernel.val<f32, [r]> -> f32
    %2 = arith.subf %0, %1 : f32
    %3 = kernel.prim "exp"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  %s = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.use %e : !kernel.val<f32, [r, c]> -> f32
    %1 = kernel.use %s : !kernel.val<f32, [r]> -> f32
    %2 = arith.divf %0, %1 : f32
    kernel.yield %2 : f32
  }
  kernel.write %o, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
})";

TEST(KernelRun, Softmax) {
  KernelHarness h;
  CompiledKernel k = h.one(kSoftmax);
  ASSERT_TRUE(k.fn);
  for (int64_t c : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 100, 1000}) {
    int64_t r = 4;
    std::vector<float> x = randomFloats(r * c, 3), y(r * c), again(r * c);
    EXPECT_EQ(run(k, {x.data(), y.data()}, {c, c, r, c}), 0);
    run(k, {x.data(), again.data()}, {c, c, r, c}, 3);
    EXPECT_EQ(y, again);
    for (int64_t i = 0; i < r; ++i) {
      double m = -INFINITY, s = 0;
      for (int64_t j = 0; j < c; ++j)
        m = std::max<double>(m, x[i * c + j]);
      for (int64_t j = 0; j < c; ++j)
        s += std::exp(x[i * c + j] - m);
      for (int64_t j = 0; j < c; ++j) {
        double want = std::exp(x[i * c + j] - m) / s;
        ASSERT_NEAR(y[i * c + j], want, 1e-6 * want + 1e-12) << c;
      }
    }
  }
}

TEST(KernelRun, SoftmaxOfSpecialRows) {
  KernelHarness h;
  CompiledKernel k = h.one(kSoftmax);
  const float inf = INFINITY;
  std::vector<float> x = {-inf, -inf, -inf, 0, -inf, 0, 1, NAN, 2}, y(9);
  run(k, {x.data(), y.data()}, {3, 3, 3, 3});
  for (int i : {0, 1, 2, 6, 7, 8})
    EXPECT_TRUE(std::isnan(y[i])) << i;
  EXPECT_EQ(y[3], 0.5f);
  EXPECT_EQ(y[4], 0.f);
  EXPECT_EQ(y[5], 0.5f);
}

} // namespace
