// Shared by the row kernels: operands as rows of a compute type, and reductions of mapped rows in the order of Lanes.
#pragma once
#include "kernels/common/Copy.h"
#include "kernels/common/Types.h"
#include "kernels/reduce/Lanes.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/scalar/Exp.h"
#include "runtime/scalar/Log.h"
#include <algorithm>
#include <vector>

namespace dlc::kernels {

/// Rows a task should take, so that it is worth a thread.
inline int64_t rowGrain(int64_t width, int64_t costPerElement = 4) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, width * costPerElement));
}

template <class T> T maxOfRow(const T *x, int64_t n) {
  Lanes<T, MaxCombine> lanes;
  lanes.add(x, n);
  return lanes.result();
}

/// Sum of f(i) over a row, in the order of Lanes: f fills a tile of consecutive values.
template <class T, class F> T sumOfTiles(int64_t n, F fill) {
  constexpr int64_t kTile = 512;
  Lanes<T, SumCombine> lanes;
  T tile[kTile];
  for (int64_t at = 0; at < n; at += kTile) {
    int64_t count = std::min(kTile, n - at);
    fill(tile, at, count);
    lanes.add(tile, count);
  }
  return lanes.result();
}
/// The same for an expression of the position.
template <class T, class F> T sumOf(int64_t n, F value) {
  return sumOfTiles<T>(n, [&](T *tile, int64_t at, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      tile[i] = value(at + i);
  });
}

template <class T> T sumRowOf(const T *x, int64_t n) {
  Lanes<T, SumCombine> lanes;
  lanes.add(x, n);
  return lanes.result();
}

} // namespace dlc::kernels
