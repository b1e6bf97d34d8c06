// Gathers under every bound, scatters, accumulating and in-place writes.
#include "KernelHarness.h"

#include <numeric>
#include <sys/mman.h>

using namespace dlc::compiler;

namespace {

// y[r, c] = w[i[r], c]
const char *kEmbedding = R"(
kernel.func @f(%w: memref<?x?xf32, strided<[?, 1]>>, %i: memref<?xi64, strided<[1]>>,
               %y: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %V: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%y) attributes {schedule = #kernel.schedule<$S>} {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %p = arith.constant -3.0 : f32
    %0 = kernel.read %i[affine_map<(d0, d1) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    %1 = kernel.read %w[affine_map<(d0, d1)[s0] -> (s0, d1)>] syms(%0 : i64) bound $B [0] of (%V) $P : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %1 : f32
  }
  kernel.write %a, %y[affine_map<(d0, d1) -> (d0, d1)>] : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
})";

// y[i] = w[i[i]]: every lane its own place
const char *kTake = R"(
kernel.func @f(%w: memref<?xf32, strided<[?]>>, %i: memref<?xi32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>,
               %R: index, %V: index, %err: memref<i64>) domain(r = %R) outs(%y)
    attributes {schedule = #kernel.schedule<$S>} {
  %a = kernel.map over(r) : !kernel.val<f32, [r]> {
    %p = arith.constant -3.0 : f32
    %0 = kernel.read %i[affine_map<(d0) -> (d0)>] : memref<?xi32, strided<[1]>> -> i32
    %1 = kernel.read %w[affine_map<(d0)[s0] -> (s0)>] syms(%0 : i32) bound $B [0] of (%V) $P : memref<?xf32, strided<[?]>> -> f32
    kernel.yield %1 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [r]>, memref<?xf32, strided<[1]>>
})";

// What bound `b` makes of index i in [0, v): place, or -1 for the pad value; sets fault.
int64_t resolve(const std::string &bound, int64_t i, int64_t v, int64_t &fault) {
  if (bound == "clamp")
    return std::min(std::max<int64_t>(i, 0), v - 1);
  if (bound == "wrap" && i < 0)
    i += v;
  if (i >= 0 && i < v)
    return i;
  if (bound != "pad")
    fault = 2;
  return -1;
}

TEST(KernelAccess, GathersUnderEveryBound) {
  KernelHarness h;
  for (std::string bound : {"clamp", "wrap", "check", "pad"})
    for (const char *schedule : {"", "tail = single", "vec = {r = 1}", "vec = {r = 8}"}) {
      std::vector<std::pair<std::string, std::string>> keys = {
          {"$B", bound}, {"$P", bound == "pad" ? "pad %p : f32" : ""}, {"$S", schedule}};
      CompiledKernel rows = h.one(fill(kEmbedding, keys)), lanes = h.one(fill(kTake, keys));
      ASSERT_TRUE(rows.fn && lanes.fn) << bound;
      for (std::vector<int64_t> index : {std::vector<int64_t>{0, 4, 2, 2, 1},
                                         {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0},
                                         {0, -1, 4, -5},
                                         {0, 5, 1},
                                         {-6, 0, 1, 2, 3, 4, 1, 1, 1}}) {
        int64_t v = 5, c = 11, n = int64_t(index.size()), fault = 0;
        std::vector<float> w(v * c), y(n * c), z(n);
        std::iota(w.begin(), w.end(), 1.f);
        std::vector<int32_t> narrow(index.begin(), index.end());
        int64_t rowFault = run(rows, {w.data(), index.data(), y.data()}, {c, c, n, c, v});
        int64_t laneFault = run(lanes, {w.data(), narrow.data(), z.data()}, {c, n, v});
        for (int64_t i = 0; i < n; ++i) {
          int64_t place = resolve(bound, index[i], v, fault);
          for (int64_t j = 0; j < c && (place >= 0 || bound == "pad"); ++j)
            ASSERT_EQ(y[i * c + j], place < 0 ? -3.f : w[place * c + j]) << bound << " " << schedule;
          if (place >= 0 || bound == "pad")
            ASSERT_EQ(z[i], place < 0 ? -3.f : w[place * c]) << bound << " " << schedule << " " << i;
        }
        EXPECT_EQ(rowFault, fault) << bound;
        EXPECT_EQ(laneFault, fault) << bound;
      }
    }
}

TEST(KernelAccess, AnEmptyTableIsNeverTouched) {
  KernelHarness h;
  for (std::string bound : {"clamp", "wrap", "check", "pad"}) {
    CompiledKernel k = h.one(fill(kTake, {{"$B", bound}, {"$P", bound == "pad" ? "pad %p : f32" : ""}, {"$S", ""}}));
    CompiledKernel rows =
        h.one(fill(kEmbedding, {{"$B", bound}, {"$P", bound == "pad" ? "pad %p : f32" : ""}, {"$S", ""}}));
    std::vector<int32_t> index(9, 0);
    std::vector<int64_t> wide(9, 0);
    std::vector<float> y(9 * 10);
    run(k, {nullptr, index.data(), y.data()}, {1, 9, 0});
    run(rows, {nullptr, wide.data(), y.data()}, {10, 10, 9, 10, 0});
  }
}

// Rows of two tensors one after the other, by padded reads: a concatenation.
const char *kConcat = R"(
kernel.func @cat(%x: memref<?xf32, strided<[1]>>, %z: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>,
                 %N: index, %A: index, %B: index, %err: memref<i64>) domain(i = %N) outs(%y)
    attributes {schedule = #kernel.schedule<$S>} {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %p = arith.constant 9.0 : f32
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] bound pad [0] of (%A) pad %p : f32 : memref<?xf32, strided<[1]>> -> f32
    %1 = kernel.read %z[affine_map<(d0)[s0] -> (d0 - s0)>] syms(%A : index) bound pad [0] of (%B) pad %p : f32 : memref<?xf32, strided<[1]>> -> f32
    %2 = kernel.index i : i64
    %3 = arith.index_cast %A : index to i64
    %4 = arith.cmpi slt, %2, %3 : i64
    %5 = arith.select %4, %0, %1 : f32
    kernel.yield %5 : f32
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
})";

TEST(KernelAccess, ConcatenationAndPaddingByPaddedReads) {
  KernelHarness h;
  for (const char *schedule : {"", "tail = single", "vec = {i = 1}", "unroll = 4"}) {
    CompiledKernel k = h.one(fill(kConcat, {{"$S", schedule}}));
    ASSERT_TRUE(k.fn);
    for (int64_t a : {0, 1, 7, 8, 9, 20})
      for (int64_t b : {0, 1, 8, 13}) {
        std::vector<float> x(a), z(b), y(a + b + 3);
        std::iota(x.begin(), x.end(), 1.f);
        std::iota(z.begin(), z.end(), 100.f);
        run(k, {x.data(), z.data(), y.data()}, {a + b + 3, a, b}, 2);
        for (int64_t i = 0; i < a + b + 3; ++i)
          ASSERT_EQ(y[i], i < a ? x[i] : i < a + b ? z[i - a] : 9.f) << a << " " << b << " " << i;
      }
  }
}

// w[i[r], c] += g[r, c]: the gradient of an embedding; rows in order.
const char *kScatterAdd = R"(
kernel.func @f(%g: memref<?x?xf32, strided<[?, 1]>>, %i: memref<?xi64, strided<[1]>>,
               %w: memref<?x?xf32, strided<[?, 1]>>, %R: index, %C: index, %V: index, %err: memref<i64>)
    domain(r = %R, c = %C) outs(%w) {
  %a = kernel.map over(r, c) : !kernel.val<f32, [r, c]> {
    %0 = kernel.read %g[affine_map<(d0, d1) -> (d0, d1)>] : memref<?x?xf32, strided<[?, 1]>> -> f32
    kernel.yield %0 : f32
  }
  %k = kernel.map over(r) : !kernel.val<i64, [r]> {
    %0 = kernel.read %i[affine_map<(d0) -> (d0)>] : memref<?xi64, strided<[1]>> -> i64
    kernel.yield %0 : i64
  }
  kernel.write %a, %w[affine_map<(d0, d1)[s0] -> (s0, d1)>] syms(%k : !kernel.val<i64, [r]>) bound wrap [0] of (%V) accumulate add : !kernel.val<f32, [r, c]>, memref<?x?xf32, strided<[?, 1]>>
})";

TEST(KernelAccess, ScatterAddsInOrder) {
  KernelHarness h;
  CompiledKernel k = h.one(kScatterAdd);
  ASSERT_TRUE(k.fn);
  int64_t v = 4, c = 13;
  std::vector<int64_t> index = {1, 3, 1, -1, 0, 1};
  int64_t n = int64_t(index.size());
  std::vector<float> g(n * c), w(v * c, 1.f), want(v * c, 1.f);
  std::iota(g.begin(), g.end(), 0.5f);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < c; ++j)
      want[(index[i] < 0 ? index[i] + v : index[i]) * c + j] += g[i * c + j];
  EXPECT_EQ(run(k, {g.data(), index.data(), w.data()}, {c, c, n, c, v}, 3), 0);
  EXPECT_EQ(w, want);
  index[2] = 4;
  std::vector<float> before = w;
  EXPECT_EQ(run(k, {g.data(), index.data(), w.data()}, {c, c, n, c, v}), 2);
}

// p -= lr * g and m = 0.9 m + g in place.
const char *kStep = R"(
kernel.func @sgd(%p: memref<?xf32, strided<[1]>>, %m: memref<?xf32, strided<[1]>>, %g: memref<?xf32, strided<[1]>>,
                 %lr: f64, %n: index, %err: memref<i64>) domain(i = %n) outs(%p, %m) {
  %k = kernel.map over(i) : !kernel.val<f32, [i]> {
    %c = arith.constant 0.5 : f32
    %0 = kernel.read %m[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %1 = kernel.read %g[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %2 = arith.mulf %0, %c : f32
    %3 = arith.addf %2, %1 : f32
    kernel.yield %3 : f32
  }
  kernel.write %k, %m[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  %q = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %p[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %1 = kernel.use %k : !kernel.val<f32, [i]> -> f32
    %2 = arith.truncf %lr : f64 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.subf %0, %3 : f32
    kernel.yield %4 : f32
  }
  kernel.write %q, %p[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
})";

TEST(KernelAccess, UpdatesInPlace) {
  KernelHarness h;
  CompiledKernel k = h.one(kStep);
  ASSERT_TRUE(k.fn);
  for (int64_t n : {1, 8, 21}) {
    std::vector<float> p(n, 10.f), m(n, 2.f), g(n, 3.f);
    run(k, {p.data(), m.data(), g.data()}, {asInt(0.25), n}, 2);
    EXPECT_EQ(m, std::vector<float>(n, 4.f));
    EXPECT_EQ(p, std::vector<float>(n, 9.f));
  }
}

/// n elements that end where the next page can't be touched.
template <class T> struct Guarded {
  explicit Guarded(size_t n) {
    size = (n * sizeof(T) + 4095) / 4096 * 4096 + 4096;
    base = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + size - 4096, 4096, PROT_NONE);
    data = reinterpret_cast<T *>(base + size - 4096) - n;
  }
  ~Guarded() { munmap(base, size); }
  Guarded(const Guarded &) = delete;
  size_t size;
  char *base;
  T *data;
};

// y[i] = x[i] + x[i * stride] + z[i]: neighbours, lanes apart and bytes, at the very end of their memory.
const char *kEnds = R"(
kernel.func @ends(%x: memref<?xf32, strided<[1]>>, %s: memref<?xf32, strided<[?]>>, %z: memref<?xi8, strided<[1]>>,
                  %y: memref<?xf32, strided<[1]>>, %b: memref<?xi8, strided<[1]>>, %w: memref<?xf32, strided<[?]>>,
                  %n: index, %err: memref<i64>) domain(i = %n) outs(%y, %b, %w)
    attributes {schedule = #kernel.schedule<$S>} {
  %a = kernel.map over(i) : !kernel.val<f32, [i]> {
    %0 = kernel.read %x[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[1]>> -> f32
    %1 = kernel.read %s[affine_map<(d0) -> (d0)>] : memref<?xf32, strided<[?]>> -> f32
    %2 = kernel.read %z[affine_map<(d0) -> (d0)>] : memref<?xi8, strided<[1]>> -> i8
    %3 = arith.sitofp %2 : i8 to f32
    %4 = arith.addf %0, %1 : f32
    %5 = arith.addf %4, %3 : f32
    kernel.yield %5 : f32
  }
  %c = kernel.map over(i) : !kernel.val<i1, [i]> {
    %0 = kernel.use %a : !kernel.val<f32, [i]> -> f32
    %1 = arith.constant 4.0 : f32
    %2 = arith.cmpf ogt, %0, %1 : f32
    kernel.yield %2 : i1
  }
  kernel.write %a, %y[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[1]>>
  kernel.write %c, %b[affine_map<(d0) -> (d0)>] : !kernel.val<i1, [i]>, memref<?xi8, strided<[1]>>
  kernel.write %a, %w[affine_map<(d0) -> (d0)>] : !kernel.val<f32, [i]>, memref<?xf32, strided<[?]>>
})";

TEST(KernelAccess, NothingBeyondTheEndsIsTouched) {
  KernelHarness h;
  for (const char *schedule : {"", "tail = single", "unroll = 4", "vec = {i = 32}", "vec = {i = 1}"}) {
    CompiledKernel k = h.one(fill(kEnds, {{"$S", schedule}}));
    ASSERT_TRUE(k.fn) << h.error;
    for (int64_t n = 0; n <= 40; ++n) {
      int64_t span = n ? 3 * n - 2 : 0;
      Guarded<float> x(n), s(span), y(n), w(span);
      Guarded<int8_t> z(n), b(n);
      for (int64_t i = 0; i < n; ++i) {
        x.data[i] = 1;
        s.data[3 * i] = float(i);
        z.data[i] = -2;
      }
      run(k, {x.data, s.data, z.data, y.data, b.data, w.data}, {3, 3, n}, 1 + n % 2);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(y.data[i], float(i) - 1) << schedule;
        ASSERT_EQ(w.data[3 * i], float(i) - 1) << schedule;
        ASSERT_EQ(b.data[i], i > 5) << schedule;
      }
    }
  }
}

TEST(KernelAccess, TellsWhichBuffersMayBeOne) {
  KernelHarness h;
  auto pairs = h.one(fill(kConcat, {{"$S", ""}})).info.mayShare;
  EXPECT_TRUE(pairs.empty()); // y[i] may be written before z[i - a] is read
  pairs = h.one(kStep).info.mayShare;
  EXPECT_EQ(pairs, (std::vector<std::pair<uint32_t, uint32_t>>{{2, 1}, {2, 0}}));
}

} // namespace
