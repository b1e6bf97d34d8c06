// Maps of every element type, length and stride against plain loops.
#include "KernelHarness.h"
#include "runtime/core/Half.h"

#include <cmath>

using namespace dlc;
using namespace dlc::compiler;

namespace {

// y = x OP z, strides of x and y are inputs.
const char *kBinary = R"(
kernel.func @f(%x: memref<?x$M, strided<[?]>>, %z: memref<?x$M, strided<[1]>>, %y: memref<?x$M, strided<[$Y]>>,
               %n: index, %err: memref<i64>) domain(i = %n) outs(%y) attributes {schedule = #kernel.schedule<$S>} {
  %a = kernel.map over(i) : !kernel.val<$T, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?x$M, strided<[?]>> -> $T
    %1 = kernel.read %z[affine_map<(d0) -> (d0)>] : memref<?x$M, strided<[1]>> -> $T
    %2 = $OP
    kernel.yield %2 : $T
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<$T, [i]>, memref<?x$M, strided<[$Y]>>
})";

template <class T> T sample(int64_t i) { return T(int64_t((i * 37) % 23) - 11); }
template <> bool sample<bool>(int64_t i) { return i % 3 == 0; }
template <> uint8_t sample<uint8_t>(int64_t i) { return uint8_t(i * 37); }

template <class T, class F>
void checkBinary(KernelHarness &h, const char *type, const char *memory, const std::string &op, F want) {
  for (const char *schedule : {"", "tail = single", "vec = {i = 1}", "unroll = 4"})
    for (bool strided : {false, true}) {
      CompiledKernel k = h.one(
          fill(kBinary, {{"$OP", op}, {"$T", type}, {"$M", memory}, {"$Y", strided ? "?" : "1"}, {"$S", schedule}}));
      ASSERT_TRUE(k.fn) << type;
      for (int64_t n = 0; n <= 40; ++n)
        for (int64_t stride : {1, 0, 3}) {
          int64_t out = strided ? 2 : 1;
          std::vector<T> x(n * 3 + 1), z(n + 1), y(n * out + 2, T(1));
          for (size_t i = 0; i < x.size(); ++i)
            x[i] = sample<T>(i);
          for (size_t i = 0; i < z.size(); ++i)
            z[i] = sample<T>(i + 5);
          std::vector<int64_t> ints = strided ? std::vector<int64_t>{stride, out, n} : std::vector<int64_t>{stride, n};
          ASSERT_EQ(run(k, {x.data(), z.data(), y.data()}, ints, 1 + n % 3), 0);
          for (int64_t i = 0; i < n; ++i)
            ASSERT_TRUE(y[i * out] == want(x[i * stride], z[i])) << type << " n=" << n << " i=" << i << " " << schedule;
          ASSERT_TRUE(y[n * out] == T(1)) << "written past the end";
        }
    }
}

TEST(KernelMap, EveryType) {
  KernelHarness h;
  checkBinary<float>(h, "f32", "f32", "arith.mulf %0, %1 : f32", [](float a, float b) { return a * b; });
  checkBinary<double>(h, "f64", "f64", "arith.subf %0, %1 : f64", [](double a, double b) { return a - b; });
  checkBinary<int8_t>(h, "i8", "i8", "arith.muli %0, %1 : i8", [](int8_t a, int8_t b) { return int8_t(a * b); });
  checkBinary<uint8_t>(h, "i8", "i8", "arith.maxui %0, %1 : i8", [](uint8_t a, uint8_t b) { return std::max(a, b); });
  checkBinary<int16_t>(h, "i16", "i16", "arith.addi %0, %1 : i16", [](int a, int b) { return int16_t(a + b); });
  checkBinary<int32_t>(h, "i32", "i32", "arith.muli %0, %1 : i32", [](int a, int b) { return a * b; });
  checkBinary<int64_t>(h, "i64", "i64", "arith.muli %0, %1 : i64", [](int64_t a, int64_t b) { return a * b; });
}

template <class H> struct Stored {
  H value;
  Stored(int64_t v = 0) : value(float(v) * 0.37f) {}
  explicit Stored(H h) : value(h) {}
  bool operator==(const Stored &o) const { return std::memcmp(&value, &o.value, 2) == 0; }
};

TEST(KernelMap, HalfTypesRoundEachOp) {
  KernelHarness h;
  using F16 = Stored<Half>;
  using B16 = Stored<BFloat16>;
  checkBinary<F16>(h, "f16", "f16", "arith.mulf %0, %1 : f16",
                   [](F16 a, F16 b) { return F16(Half(float(a.value) * float(b.value))); });
  checkBinary<B16>(h, "bf16", "bf16", "arith.addf %0, %1 : bf16",
                   [](B16 a, B16 b) { return B16(BFloat16(float(a.value) + float(b.value))); });
}

TEST(KernelMap, BoolIsAByte) {
  KernelHarness h;
  checkBinary<uint8_t>(h, "i1", "i8", "arith.xori %0, %1 : i1",
                       [](uint8_t a, uint8_t b) { return uint8_t((a != 0) != (b != 0)); });
}

TEST(KernelMap, DivisionByZeroSetsTheErrorSlotOnlyInRange) {
  KernelHarness h;
  for (const char *schedule : {"", "vec = {i = 1}"}) {
    CompiledKernel k = h.one(fill(kBinary, {{"$OP", "kernel.prim \"floor_div\"(%0, %1) : (i32, i32) -> i32"},
                                            {"$T", "i32"},
                                            {"$M", "i32"},
                                            {"$Y", "1"},
                                            {"$S", schedule}}));
    ASSERT_TRUE(k.fn);
    for (int64_t n : {1, 7, 8, 9, 17}) {
      std::vector<int32_t> x(n, -7), z(n, 2), y(n);
      EXPECT_EQ(run(k, {x.data(), z.data(), y.data()}, {1, n}), 0);
      EXPECT_EQ(y, std::vector<int32_t>(n, -4));
      z[n - 1] = 0;
      EXPECT_EQ(run(k, {x.data(), z.data(), y.data()}, {1, n}), 1);
      x[n - 1] = INT32_MIN;
      z[n - 1] = -1;
      EXPECT_EQ(run(k, {x.data(), z.data(), y.data()}, {1, n}), 0);
      EXPECT_EQ(y[n - 1], INT32_MIN);
    }
  }
}

TEST(KernelMap, DoublesCallTheCLibrary) {
  KernelHarness h;
  CompiledKernel k = h.one(fill(kBinary, {{"$OP", "kernel.prim \"pow\"(%0, %1) : (f64, f64) -> f64"},
                                          {"$T", "f64"},
                                          {"$M", "f64"},
                                          {"$Y", "1"},
                                          {"$S", ""}}));
  ASSERT_TRUE(k.fn);
  std::vector<double> x = {2, 3, 0.5, -1, 7}, z = {0.5, 4, -2, 3, 1.25}, y(5);
  run(k, {x.data(), z.data(), y.data()}, {1, 5});
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(y[i], std::pow(x[i], z[i]));
}

const char *kTranspose = R"(
kernel.func @t(%x: memref<?x?xf32, strided<[?, ?]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %s: f64,
               %R: index, %C: index, %err: memref<i64>) domain(r = %R, c = %C) outs(%y) {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %x[affine_map<(d0, d1)[s0] -> (s0 - d1 - 1, d0)>] syms(%C : index) : memref<?x?xf32, strided<[?, ?]>> -> f32
    %1 = arith.truncf %s : f64 to f32
    %2 = arith.mulf %0, %1 : f32
    kernel.yield %2 : f32
  }
  kernel.write %a, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
})";

TEST(KernelMap, TransposedFlippedScaled) {
  KernelHarness h;
  CompiledKernel k = h.one(kTranspose);
  ASSERT_TRUE(k.fn);
  for (int64_t r : {0, 1, 5})
    for (int64_t c : {0, 1, 7, 8, 19}) {
      std::vector<float> x(r * c + 1), y(r * c + 1);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i);
      // x is c x r, stored with unit stride along r
      run(k, {x.data(), y.data()}, {r, 1, c, asInt(0.5), r, c}, 2);
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < c; ++j)
          ASSERT_EQ(y[i * c + j], 0.5f * x[(c - 1 - j) * r + i]);
    }
}

const char *kReshape = R"(
kernel.func @t(%x: memref<?x?xi32, strided<[?, 1]>>, %y: memref<?xi32, strided<[1]>>, %z: memref<?xi32, strided<[1]>>,
               %n: index, %C: index, %err: memref<i64>) domain(i = %n) outs(%y, %z) {
  %a:2 = kernel.map over(i) : !kernel.val<i32, [i]>, !kernel.val<i32, [i]> {
    %0 = kernel.read %x[affine_map<(d0)[s0] -> (d0 floordiv s0, d0 mod s0)>] syms(%C : index) : memref<?x?xi32, strided<[?, 1]>> -> i32
    %1 = kernel.index i : i64
    %2 = arith.trunci %1 : i64 to i32
    %3 = arith.subi %0, %2 : i32
    kernel.yield %0, %3 : i32, i32
  }
  kernel.write %a#0, %y[affine_map<(d0) -> (d0)>] : !kernel.val<i32, [i]>, memref<?xi32, strided<[1]>>
  kernel.write %a#1, %z[affine_map<(d0) -> (d0)>] : !kernel.val<i32, [i]>, memref<?xi32, strided<[1]>>
})";

TEST(KernelMap, NonLinearMapAndTwoOutputs) {
  KernelHarness h;
  CompiledKernel k = h.one(kReshape);
  ASSERT_TRUE(k.fn);
  EXPECT_EQ(k.info.outputs, (std::vector<uint32_t>{1, 2}));
  int64_t r = 4, c = 5, ld = 9;
  std::vector<int32_t> x(r * ld), y(r * c), z(r * c);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = int32_t(i * i);
  run(k, {x.data(), y.data(), z.data()}, {ld, r * c, c}, 3);
  for (int64_t i = 0; i < r * c; ++i) {
    EXPECT_EQ(y[i], x[i / c * ld + i % c]);
    EXPECT_EQ(z[i], y[i] - i);
  }
}

// start + step * index, and a causal mask made of two of them.
const char *kCausal = R"(
kernel.func @t(%x: memref<?x?xf32, strided<[?, 1]>>, %y: memref<?x?xf32, strided<[?, 1]>>, %start: i64, %step: i64,
               %R: index, %C: index, %err: memref<i64>) domain(r = %R, c = %C) outs(%y)
    attributes {schedule = #kernel.schedule<$S>} {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.index r : i64
    %1 = kernel.prim "mul"(%0, %step) : (i64, i64) -> i64
    %2 = kernel.prim "add"(%start, %1) : (i64, i64) -> i64
    %3 = kernel.index c : i64
    %4 = kernel.prim "mul"(%3, %step) : (i64, i64) -> i64
    %5 = kernel.prim "add"(%start, %4) : (i64, i64) -> i64
    %6 = kernel.prim "ge"(%2, %5) : (i64, i64) -> i1
    %7 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %8 = arith.muli %3, %0 : i64
    %9 = arith.sitofp %8 : i64 to f32
    %10 = arith.select %6, %7, %9 : f32
    kernel.yield %10 : f32
  }
  kernel.write %a, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
})";

TEST(KernelMap, IndicesAsValues) {
  KernelHarness h;
  for (const char *schedule : {"", "tail = single", "vec = {r = 8}", "order = [c, r]", "vec = {c = 1}"}) {
    CompiledKernel k = h.one(fill(kCausal, {{"$S", schedule}}));
    ASSERT_TRUE(k.fn);
    for (int64_t c : {1, 9, 16, 35, 64})
      for (int64_t step : {1, 3, -2}) {
        int64_t r = 20;
        std::vector<float> x(r * c, -1.f), y(r * c);
        run(k, {x.data(), y.data()}, {c, c, 5, step, r, c}, 3);
        for (int64_t i = 0; i < r; ++i)
          for (int64_t j = 0; j < c; ++j)
            ASSERT_EQ(y[i * c + j], i * step >= j * step ? -1.f : float(i * j)) << schedule << " " << i << " " << j;
      }
  }
}

} // namespace
