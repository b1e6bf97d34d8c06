// Reductions of rows and of expressions over them, in the order of Lanes.
#pragma once
#include "kernels/reduce/Lanes.h"
#include <algorithm>

namespace dlc::kernels {
inline namespace DLC_ISA {

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

} // namespace DLC_ISA
} // namespace dlc::kernels
