// Products against a plain triple loop, on integer-valued data, so that equality is exact for every dtype.
#include "kernels/lib/Gemm.h"
#include "runtime/core/ThreadPool.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace dlc;
using namespace dlc::kernels;

namespace {

/// A matrix of small integers in a buffer, with strides; `kind` picks the layout.
template <class T> struct Matrix {
  std::vector<T> data;
  int64_t rows, cols, row, col, offset = 0;
  Matrix(int64_t r, int64_t c, int kind, unsigned seed) : rows(r), cols(c) {
    switch (kind) {
    case 0: // row-major
      row = c, col = 1;
      break;
    case 1: // column-major
      row = 1, col = r;
      break;
    case 2: // rows with a gap
      row = c + 3, col = 1;
      break;
    case 3: // every second column of a column-major matrix, backwards
      row = 2, col = -(2 * r + 1);
      break;
    default: // one row for all
      row = 0, col = 1;
    }
    int64_t low = 0, high = 0;
    for (int64_t i : {int64_t(0), r - 1})
      for (int64_t j : {int64_t(0), c - 1}) {
        low = std::min(low, i * row + j * col);
        high = std::max(high, i * row + j * col);
      }
    offset = -low;
    data.resize(high - low + 1);
    for (auto &x : data) {
      seed = seed * 1664525u + 1013904223u;
      x = T(float(int(seed >> 20) % 5 - (std::is_unsigned_v<T> ? 0 : 2)));
    }
  }
  T *ptr() { return data.data() + offset; }
  T &at(int64_t i, int64_t j) { return ptr()[i * row + j * col]; }
};

template <class T> using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
template <class T> Wide<T> widen(T x) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return Wide<T>(GemmAcc<T>(x));
}

struct Case {
  int64_t m, n, k;
  int aKind, bKind, cKind;
  int alpha, beta;
};

template <class T> GemmArgs<T> argsOf(const Case &t, Matrix<T> &a, Matrix<T> &b, Matrix<T> &c) {
  GemmArgs<T> g;
  g.m = t.m, g.n = t.n, g.k = t.k;
  g.a = a.ptr(), g.aRow = a.row, g.aCol = a.col;
  g.b = b.ptr(), g.bRow = b.row, g.bCol = b.col;
  g.c = c.ptr(), g.cRow = c.row, g.cCol = c.col;
  g.alpha = GemmAcc<T>(t.alpha), g.beta = GemmAcc<T>(t.beta);
  return g;
}

template <class T> void check(const Case &t, bool packed = false) {
  SCOPED_TRACE(testing::Message() << t.m << "x" << t.n << "x" << t.k << " layouts " << t.aKind << t.bKind << t.cKind
                                  << " alpha " << t.alpha << " beta " << t.beta << (packed ? " packed" : ""));
  Matrix<T> a(t.m, t.k, t.aKind, 1), b(t.k, t.n, t.bKind, 2), c(t.m, t.n, t.cKind, 3), want = c;
  for (int64_t i = 0; i < t.m; ++i)
    for (int64_t j = 0; j < t.n; ++j) {
      Wide<T> sum = 0;
      for (int64_t p = 0; p < t.k; ++p)
        sum += widen(a.at(i, p)) * widen(b.at(p, j));
      want.at(i, j) = T(GemmAcc<T>(t.alpha * sum + t.beta * widen(want.at(i, j))));
    }
  GemmArgs<T> g = argsOf(t, a, b, c);
  std::unique_ptr<PackedMatrix<T>> right;
  if (packed) {
    right = std::make_unique<PackedMatrix<T>>(t.k, t.n, g.b, g.bRow, g.bCol);
    g.packedB = right.get(), g.b = nullptr;
  }
  Matrix<T> parallel = c;
  gemm(g);
  g.c = parallel.ptr();
  gemmParallel(g);
  // Whole buffers: what lies between C's elements must be untouched.
  for (size_t e = 0; e < c.data.size(); ++e) {
    ASSERT_EQ(widen(c.data[e]), widen(want.data[e])) << "at " << e;
    ASSERT_EQ(widen(parallel.data[e]), widen(want.data[e])) << "parallel, at " << e;
  }
}

const std::vector<int64_t> kRows{0, 1, 3, 5, 6, 7, 13, 14, 15, 29}, kCols{0, 1, 7, 15, 16, 17, 31, 32, 33, 65},
    kDepths{0, 1, 2, 17, 33, 383, 384, 385};

template <class T> void sweep(size_t step) {
  size_t number = 0;
  for (int64_t m : kRows)
    for (int64_t n : kCols)
      for (int64_t k : kDepths)
        for (int layout = 0; layout < 16; ++layout)
          if (number++ % step == 0)
            check<T>({m, n, k, layout % 4, layout / 4, int(number % 4), number % 3 == 0 ? 2 : 1, int(number % 5 % 3)},
                     number % 7 == 0);
}

} // namespace

TEST(Gemm, float32AllEdges) { sweep<float>(1); }
TEST(Gemm, float64AllEdges) { sweep<double>(3); }
TEST(Gemm, narrowFloats) {
  // 16-bit results are exact while |sum| <= 256; the products of -2..2 over 17 rows stay below.
  for (int64_t m : kRows)
    for (int64_t n : kCols)
      for (int64_t k : {0, 1, 2, 17}) {
        check<Half>({m, n, k, int(m % 4), int(n % 4), int(k % 4), 1, int(m % 2)});
        check<BFloat16>({m, n, k, int(n % 4), int(m % 4), int(k % 4), 1, int(n % 2)}, m % 2 == 0);
      }
}
TEST(Gemm, narrowFloatsRoundOnceOverSlices) {
  // 1000 products of 1: a 16-bit accumulator would stop at 256 (bfloat16).
  std::vector<BFloat16> a(1000, BFloat16(1.0f)), b(1000, BFloat16(1.0f)), c(1);
  GemmArgs<BFloat16> g;
  g.m = g.n = 1, g.k = 1000, g.a = a.data(), g.b = b.data(), g.bRow = 1, g.c = c.data(), g.cRow = 1, g.aRow = 1000;
  gemm(g);
  EXPECT_EQ(float(c[0]), 1000.0f);
}
TEST(Gemm, integersOfEveryWidth) {
  sweep<int8_t>(41);
  sweep<uint8_t>(43);
  sweep<int16_t>(47);
  sweep<int32_t>(37);
  sweep<int64_t>(53);
}
TEST(Gemm, integersWrap) {
  std::vector<int32_t> a{2000000000, 2000000000}, b{3, 5}, c{7};
  GemmArgs<int32_t> g;
  g.m = g.n = 1, g.k = 2, g.a = a.data(), g.aRow = 2, g.b = b.data(), g.bRow = 1, g.c = c.data(), g.cRow = 1,
  g.beta = 1;
  gemm(g);
  EXPECT_EQ(c[0], int32_t(uint32_t(2000000000) * 8u + 7u));
}
TEST(Gemm, sharedRowOfA) {
  for (int64_t m : {2, 15})
    check<float>({m, 33, 40, 4, 0, 0, 1, 0});
}
TEST(Gemm, betaZeroDoesNotReadC) {
  for (int64_t n : {1, 5, 32, 33})
    for (int64_t k : {0, 3, 64}) {
      std::vector<float> a(7 * 64, 1.0f), b(64 * 33, 1.0f), c(7 * n, std::numeric_limits<float>::quiet_NaN());
      GemmArgs<float> g;
      g.m = 7, g.n = n, g.k = k, g.a = a.data(), g.aRow = k, g.b = b.data(), g.bRow = n, g.c = c.data(), g.cRow = n;
      gemm(g);
      for (float x : c)
        ASSERT_EQ(x, float(k));
    }
}
TEST(Gemm, nanAndInfinityReachTheResult) {
  std::vector<float> a(3 * 40, 0.0f), b(40 * 33, 1.0f), c(3 * 33);
  b[5 * 33 + 2] = std::numeric_limits<float>::infinity();
  GemmArgs<float> g;
  g.m = 3, g.n = 33, g.k = 40, g.a = a.data(), g.aRow = 40, g.b = b.data(), g.bRow = 33, g.c = c.data(), g.cRow = 33;
  gemm(g);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 33; ++j)
      ASSERT_EQ(std::isnan(c[i * 33 + j]), j == 2);
}
TEST(Gemm, blocksOfEveryLevel) {
  check<float>({900, 70, 800, 0, 0, 0, 1, 1});
  check<float>({70, 3000, 500, 1, 1, 0, 1, 0});
  check<float>({700, 700, 40, 0, 1, 1, 1, 0}, true);
  check<double>({300, 300, 800, 1, 0, 0, 1, 1});
}
TEST(Gemm, batches) {
  constexpr int64_t kBatch = 5, m = 9, n = 17, k = 21;
  std::vector<float> a(kBatch * m * k), b(k * n), c(kBatch * m * n, -1.0f);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = float(int(i % 7) - 3);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = float(int(i % 5) - 2);
  GemmArgs<float> g;
  g.m = m, g.n = n, g.k = k, g.a = a.data(), g.aRow = k, g.b = b.data(), g.bRow = n, g.c = c.data(), g.cRow = n;
  g.batch = kBatch, g.aBatch = m * k, g.bBatch = 0, g.cBatch = m * n;
  gemm(g);
  for (int64_t e = 0; e < kBatch; ++e)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float want = 0;
        for (int64_t p = 0; p < k; ++p)
          want += a[e * m * k + i * k + p] * b[p * n + j];
        ASSERT_EQ(c[e * m * n + i * n + j], want);
      }
}

TEST(Gemm, bitsDoNotDependOnThreads) {
  int before = getNumThreads();
  for (auto [m, n, k, bKind, beta] :
       {std::tuple{300, 333, 700, 0, 0.5f}, std::tuple{16, 1000, 777, 1, 0.0f}, std::tuple{1000, 10, 300, 0, 0.3f},
        std::tuple{1, 4000, 1000, 0, 0.0f}, std::tuple{130, 600, 500, 1, 0.7f}}) {
    std::vector<float> a(m * k), b(k * n), first(m * n, 0.1f);
    unsigned seed = 1;
    for (auto *v : {&a, &b})
      for (float &x : *v)
        x = float((seed = seed * 1664525u + 1013904223u) >> 8) / float(1 << 24) - 0.5f;
    GemmArgs<float> g;
    g.m = m, g.n = n, g.k = k, g.a = a.data(), g.aRow = k, g.b = b.data();
    g.bRow = bKind ? 1 : n, g.bCol = bKind ? k : 1, g.cRow = n, g.alpha = 0.37f, g.beta = beta;
    g.c = first.data();
    gemm(g);
    for (int threads : {1, 2, 3, 8}) {
      setNumThreads(threads);
      std::vector<float> c(m * n, 0.1f);
      g.c = c.data();
      gemmParallel(g);
      ASSERT_EQ(0, std::memcmp(c.data(), first.data(), c.size() * sizeof(float))) << threads << " threads";
    }
  }
  setNumThreads(before);
}
