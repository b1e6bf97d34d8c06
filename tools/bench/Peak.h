// Timing for the benchmarks of kernels/lib: the thread's CPU clock, and the FMA peak of the core it runs on.
#pragma once
#include "runtime/core/Machine.h"
#include <algorithm>
#include <ctime>

namespace dlc::bench {

/// Seconds of the calling thread.
inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

/// GFLOP/s of one core.
inline double peak() { return fmaPeak(false); }

/// Keeps in `best` the shortest time of one call.
template <class F> void timed(double &best, double flops, F f) {
  int repeats = std::clamp(int(2e7 / flops), 1, 2000);
  double t = now();
  for (int r = 0; r < repeats; ++r)
    f();
  best = std::min(best, (now() - t) / repeats);
}

} // namespace dlc::bench
