// Timing for the benchmarks of kernels/lib: the thread's CPU clock, and the FMA peak of the core it runs on.
#pragma once
#include "kernels/lib/Gemm.h"
#include <algorithm>
#include <ctime>
#include <string>

namespace dlc::bench {

/// Seconds of the calling thread.
inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

/// Operations of a register-only loop; the accumulators are enough to hide the latency on both widths.
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
typedef float V8 __attribute__((ext_vector_type(8)));
typedef float V16 __attribute__((ext_vector_type(16)));
inline float spin8(int64_t r) { return fmaLoop<V8>(r); }
__attribute__((target("avx512f"))) inline float spin16(int64_t r) { return fmaLoop<V16>(r); }

/// GFLOP/s, the best of a few runs of the loop.
inline double peak() {
  bool wide = std::string(kernels::gemmIsa()) == "avx512";
  constexpr int64_t kRounds = 20000;
  double best = 1e9;
  volatile float sink;
  for (int i = 0; i < 5; ++i) {
    double t = now();
    sink = wide ? spin16(kRounds) : spin8(kRounds);
    best = std::min(best, now() - t);
  }
  (void)sink;
  return kRounds * 12 * 2.0 * (wide ? 16 : 8) / best * 1e-9;
}

/// Keeps in `best` the shortest time of one call.
template <class F> void timed(double &best, double flops, F f) {
  int repeats = std::clamp(int(2e7 / flops), 1, 2000);
  double t = now();
  for (int r = 0; r < repeats; ++r)
    f();
  best = std::min(best, (now() - t) / repeats);
}

} // namespace dlc::bench
