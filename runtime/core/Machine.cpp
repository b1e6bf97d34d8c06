// Loops that do nothing but multiply and add, read, or copy, and the best of their times.
#include "runtime/core/Machine.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace dlc {

namespace {

typedef float V8 __attribute__((ext_vector_type(8)));
typedef float V16 __attribute__((ext_vector_type(16)));

/// Enough accumulators to hide the latency on both widths.
template <class V> __attribute__((always_inline)) inline float fmaLoop(int64_t rounds) {
  volatile float one = 1.0f, little = 1e-9f; // unknown to the compiler
  V acc[12], x = float(one), y = float(little);
  for (auto &a : acc)
    a = x;
  for (int64_t r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < 12; ++i)
      acc[i] = __builtin_elementwise_fma(acc[i], x, y);
  }
  for (int i = 1; i < 12; ++i)
    acc[0] += acc[i];
  return acc[0][0];
}
float spin8(int64_t r) { return fmaLoop<V8>(r); }
__attribute__((target("avx512f"))) float spin16(int64_t r) { return fmaLoop<V16>(r); }

/// 8 vectors at a time; what is left of `n` floats does not count.
template <class V> __attribute__((always_inline)) inline float readLoop(const float *p, int64_t n) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(float);
  V acc[8] = {};
  for (int64_t i = 0; i + 8 * kLanes <= n; i += 8 * kLanes) {
#pragma unroll
    for (int v = 0; v < 8; ++v)
      acc[v] += *reinterpret_cast<const V *>(p + i + v * kLanes);
  }
  for (int v = 1; v < 8; ++v)
    acc[0] += acc[v];
  return acc[0][0];
}
float read8(const float *p, int64_t n) { return readLoop<V8>(p, n); }
__attribute__((target("avx512f"))) float read16(const float *p, int64_t n) { return readLoop<V16>(p, n); }

bool wide() { return __builtin_cpu_supports("avx512f") && knobs().gemmIsa.empty(); }

volatile float sink;

/// Zeros, in huge pages where the system has them, so that a stream is not bound by page walks.
struct Buffer {
  explicit Buffer(size_t bytes) {
    constexpr size_t kHuge = size_t(2) << 20;
    if (!bytes || !(data = static_cast<char *>(std::aligned_alloc(kHuge, (bytes + kHuge - 1) / kHuge * kHuge))))
      return;
    madvise(data, bytes, MADV_HUGEPAGE);
    std::memset(data, 0, bytes);
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer &) = delete;
  char *data = nullptr;
};

/// Seconds of the fastest of some runs of `f` on each of `threads` threads.
template <class F> double best(int threads, int runs, F f) {
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    auto start = std::chrono::steady_clock::now();
    parallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        f(t);
    });
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

} // namespace

double fmaPeak(bool allThreads) {
  int threads = allThreads ? getNumThreads() : 1;
  constexpr int64_t kRounds = 100000;
  double seconds = best(threads, 8, [](int64_t) { sink = wide() ? spin16(kRounds) : spin8(kRounds); });
  return threads * kRounds * 12 * 2.0 * (wide() ? 16 : 8) / seconds * 1e-9;
}

double bandwidth(size_t bytes, bool copy, bool allThreads) {
  int threads = allThreads ? getNumThreads() : 1;
  constexpr size_t kStep = 4096;
  size_t part = std::max(kStep, bytes / threads / (copy ? 2 : 1) / kStep * kStep);
  size_t all = part * threads;
  Buffer from(all), to(copy ? all : 0);
  if (!from.data || (copy && !to.data))
    return 0;
  int64_t trips = std::max<int64_t>(1, static_cast<int64_t>(size_t(8) << 20) / static_cast<int64_t>(part));
  bool avx512 = wide();
  double seconds = best(threads, part > (size_t(32) << 20) ? 4 : 12, [&](int64_t t) {
    const char *source = from.data + t * part;
    for (int64_t i = 0; i < trips; ++i) {
      if (copy)
        std::memcpy(to.data + t * part, source, part);
      else if (auto *p = reinterpret_cast<const float *>(source); avx512)
        sink = read16(p, static_cast<int64_t>(part / sizeof(float)));
      else
        sink = read8(p, static_cast<int64_t>(part / sizeof(float)));
    }
  });
  return static_cast<double>(all) * trips * (copy ? 2 : 1) / seconds * 1e-9;
}

size_t cacheBytes(int level) {
  const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  if (level < 1 || level > 3)
    return 0;
  long n = sysconf(names[level - 1]);
  return n > 0 ? static_cast<size_t>(n) : 0;
}

} // namespace dlc
