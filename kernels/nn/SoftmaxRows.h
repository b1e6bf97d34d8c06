// One row of softmax, log_softmax and their gradients: three passes over memory that stays in the first cache. Included
// into an unnamed namespace, because kernels/wide compiles it for another instruction set.
#pragma once
#include "kernels/nn/RowSums.h"
#include "runtime/scalar/Exp.h"
#include "runtime/scalar/Log.h"

namespace dlc::kernels {
namespace {

template <class T> void softmaxRow(const T *x, const T *, T *y, int64_t n) {
  T top = maxOfRow(x, n);
  scalar::NativeBuilder b;
  // The exponentials wait in the output row.
  constexpr int64_t kTile = 512;
  Lanes<T, SumCombine> lanes;
  for (int64_t at = 0; at < n; at += kTile) {
    int64_t count = std::min(kTile, n - at);
#pragma clang loop vectorize(assume_safety)
    for (int64_t i = at; i < at + count; ++i)
      y[i] = scalar::exp_(b, x[i] - top);
    lanes.add(y + at, count);
  }
  T total = lanes.result();
  for (int64_t i = 0; i < n; ++i)
    y[i] = y[i] / total;
}

template <class T> void logSoftmaxRow(const T *x, const T *, T *y, int64_t n) {
  T top = maxOfRow(x, n);
  scalar::NativeBuilder b;
  T total = sumOf<T>(n, [&](int64_t i) { return scalar::exp_(b, x[i] - top); });
  T logTotal = scalar::log_(b, total);
  for (int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - top) - logTotal;
}

template <class T> void softmaxBackwardRow(const T *g, const T *out, T *dx, int64_t n) {
  T dot = sumOf<T>(n, [&](int64_t i) { return g[i] * out[i]; });
  for (int64_t i = 0; i < n; ++i)
    dx[i] = (g[i] - dot) * out[i];
}

template <class T> void logSoftmaxBackwardRow(const T *g, const T *out, T *dx, int64_t n) {
  T total = sumRowOf(g, n);
  scalar::NativeBuilder b;
  for (int64_t i = 0; i < n; ++i)
    dx[i] = g[i] - scalar::exp_(b, out[i]) * total;
}

} // namespace
} // namespace dlc::kernels
