// Reductions: every combine and type, by inner, outer and all dims, and kernels of several stages.
#include "KernelHarness.h"

#include <cmath>
#include <limits>
#include <random>

using namespace dlc::compiler;

namespace {

const char *kReduce = R"(
kernel.func @f(%x: memref<?x?x$M, strided<[?, 1]>>, %y: memref<?x$U, strided<[1]>>, %R: index, %C: index,
               %err: memref<i64>) domain(r = %R, c = %C) outs(%y) attributes {schedule = #kernel.schedule<$S>} {
  %a = kernel.reduce over(r, c) by($B) combine [$K] : !kernel.val<$V, [$D]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?x$M, strided<[?, 1]>> -> $T
    kernel.yield %0 : $T
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<$V, [$D]>, memref<?x$U, strided<[1]>>
})";

const char *kReduceAll = R"(
kernel.func @f(%x: memref<?x?x$M, strided<[?, 1]>>, %y: memref<$U>, %R: index, %C: index,
               %err: memref<i64>) domain(r = %R, c = %C) outs(%y) attributes {schedule = #kernel.schedule<$S>} {
  %a = kernel.reduce over(r, c) by(r, c) combine [$K] : !kernel.val<$V, []> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?x$M, strided<[?, 1]>> -> $T
    kernel.yield %0 : $T
  }
  kernel.write %a, %y[affine_map<() -> ()>] : !kernel.val<$V, []>, memref<$U>
})";

struct Types {
  const char *memory, *scalar;
};

// `want(values)` is the expected result of a list; result type U.
template <class T, class U, class F>
void checkReduce(KernelHarness &h, Types types, const char *combine, Types result, F want,
                 std::vector<T> (*make)(size_t)) {
  for (const char *by : {"c", "r", "all"})
    for (const char *schedule : {"", "vec = {c = 1}", "unroll = 2", "tail = single"}) {
      bool all = !std::strcmp(by, "all"), inner = !std::strcmp(by, "c");
      std::vector<std::pair<std::string, std::string>> keys = {
          {"$M", types.memory}, {"$T", types.scalar}, {"$U", result.memory},     {"$V", result.scalar},
          {"$K", combine},      {"$B", by},           {"$D", inner ? "r" : "c"}, {"$S", schedule}};
      CompiledKernel k = h.one(fill(all ? kReduceAll : kReduce, keys));
      ASSERT_TRUE(k.fn) << combine << " " << types.memory;
      for (int64_t c = 1; c <= 70; c += c < 36 ? 1 : 11) {
        int64_t r = 1 + c % 4, ld = c + 2;
        std::vector<T> x = make(r * ld);
        int64_t outs = all ? 1 : inner ? r : c;
        std::vector<U> y(outs + 1, U(77));
        ASSERT_EQ(run(k, {x.data(), y.data()}, {ld, r, c}, 1 + c % 2), 0);
        for (int64_t o = 0; o < outs; ++o) {
          std::vector<T> list;
          for (int64_t i = 0; i < r; ++i)
            for (int64_t j = 0; j < c; ++j)
              if (all || (inner ? i : j) == o)
                list.push_back(x[i * ld + j]);
          U expected = want(list);
          bool same = y[o] == expected || (y[o] != y[o] && expected != expected);
          ASSERT_TRUE(same) << combine << " " << types.memory << " by " << by << " " << schedule << " r=" << r
                            << " c=" << c << " o=" << o << ": " << double(y[o]) << ", not " << double(expected);
        }
        ASSERT_EQ(y[outs], U(77));
      }
    }
}

template <class T> std::vector<T> small(size_t n) {
  std::vector<T> data(n);
  for (size_t i = 0; i < n; ++i)
    data[i] = T(int64_t((i * 29) % 17) - 8);
  return data;
}

template <class T> T sum(const std::vector<T> &list) {
  T total = 0;
  for (T x : list)
    total = T(total + x);
  return total;
}

template <class T> T largest(const std::vector<T> &list) {
  T best = list[0];
  for (T x : list)
    if (x > best || x != x)
      best = x;
  return best;
}

template <class T> int64_t argLargest(const std::vector<T> &list) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] != list[i])
      return int64_t(i);
  return std::max_element(list.begin(), list.end()) - list.begin();
}

std::vector<float> withNan(size_t n) {
  std::vector<float> data = small<float>(n);
  for (size_t i = 3; i < n; i += 13)
    data[i] = NAN;
  return data;
}

std::vector<float> infinite(size_t n) { return std::vector<float>(n, -INFINITY); }

TEST(KernelReduce, SumsAndProducts) {
  KernelHarness h;
  checkReduce<float, float>(h, {"f32", "f32"}, "add", {"f32", "f32"}, sum<float>, small<float>);
  checkReduce<double, double>(h, {"f64", "f64"}, "add", {"f64", "f64"}, sum<double>, small<double>);
  checkReduce<int64_t, int64_t>(h, {"i64", "i64"}, "add", {"i64", "i64"}, sum<int64_t>, small<int64_t>);
  checkReduce<int8_t, int8_t>(h, {"i8", "i8"}, "add", {"i8", "i8"}, sum<int8_t>, small<int8_t>);
  auto product = [](const std::vector<int32_t> &list) {
    uint32_t p = 1;
    for (int32_t x : list)
      p *= uint32_t(x);
    return int32_t(p);
  };
  checkReduce<int32_t, int32_t>(h, {"i32", "i32"}, "mul", {"i32", "i32"}, product, small<int32_t>);
}

TEST(KernelReduce, ExtremesLetNanWin) {
  KernelHarness h;
  checkReduce<float, float>(h, {"f32", "f32"}, "max", {"f32", "f32"}, largest<float>, small<float>);
  checkReduce<float, float>(h, {"f32", "f32"}, "max", {"f32", "f32"}, largest<float>, withNan);
  checkReduce<float, float>(h, {"f32", "f32"}, "max", {"f32", "f32"}, largest<float>, infinite);
  checkReduce<int16_t, int16_t>(h, {"i16", "i16"}, "max", {"i16", "i16"}, largest<int16_t>, small<int16_t>);
  auto least = [](const std::vector<int64_t> &list) { return *std::min_element(list.begin(), list.end()); };
  checkReduce<int64_t, int64_t>(h, {"i64", "i64"}, "min", {"i64", "i64"}, least, small<int64_t>);
  auto mostUnsigned = [](const std::vector<uint8_t> &list) { return *std::max_element(list.begin(), list.end()); };
  checkReduce<uint8_t, uint8_t>(h, {"i8", "i8"}, "maxu", {"i8", "i8"}, mostUnsigned, small<uint8_t>);
}

TEST(KernelReduce, ArgmaxTakesTheFirst) {
  KernelHarness h;
  checkReduce<float, int64_t>(h, {"f32", "f32"}, "argmax", {"i64", "i64"}, argLargest<float>, small<float>);
  checkReduce<float, int64_t>(h, {"f32", "f32"}, "argmax", {"i64", "i64"}, argLargest<float>, withNan);
  checkReduce<float, int64_t>(h, {"f32", "f32"}, "argmax", {"i64", "i64"}, argLargest<float>, infinite);
  checkReduce<int32_t, int64_t>(h, {"i32", "i32"}, "argmax", {"i64", "i64"}, argLargest<int32_t>, small<int32_t>);
  auto argLeast = [](const std::vector<double> &list) -> int64_t {
    return std::min_element(list.begin(), list.end()) - list.begin();
  };
  checkReduce<double, int64_t>(h, {"f64", "f64"}, "argmin", {"i64", "i64"}, argLeast, small<double>);
}

TEST(KernelReduce, AnyAndAll) {
  KernelHarness h;
  auto any = [](const std::vector<uint8_t> &list) {
    return uint8_t(std::any_of(list.begin(), list.end(), [](uint8_t x) { return x != 0; }));
  };
  auto all = [](const std::vector<uint8_t> &list) {
    return uint8_t(std::all_of(list.begin(), list.end(), [](uint8_t x) { return x != 0; }));
  };
  checkReduce<uint8_t, uint8_t>(h, {"i8", "i1"}, "or", {"i8", "i1"}, any, small<uint8_t>);
  checkReduce<uint8_t, uint8_t>(h, {"i8", "i1"}, "and", {"i8", "i1"}, all, small<uint8_t>);
}

TEST(KernelReduce, EmptyGivesTheIdentity) {
  KernelHarness h;
  CompiledKernel k = h.one(fill(kReduce, {{"$M", "f32"},
                                          {"$T", "f32"},
                                          {"$U", "f32"},
                                          {"$V", "f32"},
                                          {"$K", "add"},
                                          {"$B", "c"},
                                          {"$D", "r"},
                                          {"$S", ""}}));
  std::vector<float> y(3, 5.f);
  run(k, {nullptr, y.data()}, {0, 3, 0});
  EXPECT_EQ(y, std::vector<float>(3, 0.f));
}

// Mean over rows of log-sum-exp minus the picked score: three loops in one row loop that itself accumulates.
const char *kCrossEntropy = R"(
kernel.func @ce(%x: memref<?x?xf32, strided<[?, 1]>>, %t: memref<?xi64, strided<[1]>>, %y: memref<f32>,
                %R: index, %C: index, %err: memref<i64>) domain(r = %R, c = %C) outs(%y) {
  %m = kernel.reduce over(r, c) by(c) combine [max] : !kernel.val<f32, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %s = kernel.reduce over(r, c) by(c) combine [add] : !kernel.val<f32, [r]> {
    %0 = kernel.read %x[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    %1 = kernel.use %m : !kernel.val<f32, [r]> -> f32
    %2 = arith.subf %0, %1 : f32
    %3 = kernel.prim "exp"(%2) : (f32) -> f32
    kernel.yield %3 : f32
  }
  %l = kernel.map over(r) : !kernel.val<f32, [r]> {
    %0 = kernel.read %t[affine_map<(d0) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    %1 = kernel.read %x[affine_map<(d0)[s0] -> (d0, s0)>] syms(%0 : i64) bound check [1] of (%C) : memref<?x?xf32, strided<[?, 1]>> -> f32
    %2 = kernel.use %s : !kernel.val<f32, [r]> -> f32
    %3 = kernel.prim "log"(%2) : (f32) -> f32
    %4 = kernel.use %m : !kernel.val<f32, [r]> -> f32
    %5 = arith.addf %3, %4 : f32
    %6 = arith.subf %5, %1 : f32
    kernel.yield %6 : f32
  }
  %u = kernel.reduce over(r) by(r) combine [add] : !kernel.val<f32, []> {
    %0 = kernel.use %l : !kernel.val<f32, [r]> -> f32
    kernel.yield %0 : f32
  }
  %o = kernel.map over() : !kernel.val<f32, []> {
    %0 = kernel.use %u : !kernel.val<f32, []> -> f32
    %1 = arith.index_cast %R : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.divf %0, %2 : f32
    kernel.yield %3 : f32
  }
  kernel.write %o, %y[affine_map<() -> ()>] : !kernel.val<f32, []>, memref<f32>
})";

TEST(KernelReduce, CrossEntropyInOneKernel) {
  KernelHarness h;
  CompiledKernel k = h.one(kCrossEntropy);
  ASSERT_TRUE(k.fn);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int64_t c : {1, 2, 9, 33, 100}) {
    int64_t r = 7;
    std::vector<float> x(r * c);
    std::vector<int64_t> t(r);
    for (float &v : x)
      v = normal(random);
    double want = 0;
    for (int64_t i = 0; i < r; ++i) {
      t[i] = (i * 5) % c;
      double s = 0;
      for (int64_t j = 0; j < c; ++j)
        s += std::exp(double(x[i * c + j]));
      want += std::log(s) - x[i * c + t[i]];
    }
    float y = -1;
    EXPECT_EQ(run(k, {x.data(), t.data(), &y}, {c, r, c}), 0);
    EXPECT_NEAR(y, want / r, 1e-6 + 1e-6 * std::abs(want));
    t[3] = c;
    EXPECT_EQ(run(k, {x.data(), t.data(), &y}, {c, r, c}), 2);
    t[3] = -1;
    EXPECT_EQ(run(k, {x.data(), t.data(), &y}, {c, r, c}), 2);
  }
}

// Mean and sum of squares over (n, h) for each channel, then the normalised values: a batch norm in training.
const char *kBatchNorm = R"(
kernel.func @bn(%x: memref<?x?x?xf32, strided<[?, ?, 1]>>, %y: memref<?x?x?xf32, strided<[?, ?, 1]>>,
                %mean: memref<?xf32, strided<[1]>>, %N: index, %C: index, %H: index, %err: memref<i64>)
    domain(n = %N, c = %C, h = %H) outs(%y, %mean) {
  %s:2 = kernel.reduce over(n, c, h) by(n, h) combine [add, max] : !kernel.val<f32, [c]>, !kernel.val<f32, [c]> {
    %0 = kernel.read %x[affine_map<(d0, d1, d2) -> (d0, d1, d2)>] : memref<?x?x?xf32, strided<[?, ?, 1]>> -> f32
    kernel.yield %0, %0 : f32, f32
  }
  %d = kernel.map over(n, c, h) : !kernel.val<f32, [n, c, h]> {
    %0 = kernel.read %x[affine_map<(d0, d1, d2) -> (d0, d1, d2)>] : memref<?x?x?xf32, strided<[?, ?, 1]>> -> f32
    %1 = kernel.use %s#0 : !kernel.val<f32, [c]> -> f32
    %2 = arith.subf %0, %1 : f32
    %3 = kernel.use %s#1 : !kernel.val<f32, [c]> -> f32
    %4 = arith.divf %2, %3 : f32
    kernel.yield %4 : f32
  }
  kernel.write %d, %y[affine_map<(d0, d1, d2) -> (d0, d1, d2)>] : !kernel.val<f32, [n, c, h]>, memref<?x?x?xf32, strided<[?, ?, 1]>>
  kernel.write %s#0, %mean[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [c]>, memref<?xf32, strided<[1]>>
})";

TEST(KernelReduce, MiddleDimKept) {
  KernelHarness h;
  CompiledKernel k = h.one(kBatchNorm);
  ASSERT_TRUE(k.fn);
  for (int64_t hw : {1, 5, 8, 33}) {
    int64_t n = 3, c = 4;
    std::vector<float> x = small<float>(n * c * hw), y(x.size()), mean(c);
    for (float &v : x)
      v += 20;
    run(k, {x.data(), y.data(), mean.data()}, {c * hw, hw, c * hw, hw, n, c, hw}, 3);
    for (int64_t j = 0; j < c; ++j) {
      float total = 0, top = -INFINITY;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t l = 0; l < hw; ++l) {
          total += x[(i * c + j) * hw + l];
          top = std::max(top, x[(i * c + j) * hw + l]);
        }
      EXPECT_EQ(mean[j], total);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t l = 0; l < hw; ++l)
          EXPECT_EQ(y[(i * c + j) * hw + l], (x[(i * c + j) * hw + l] - total) / top);
    }
  }
}

} // namespace
