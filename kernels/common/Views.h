// Views that kernels make of their operands, with Python's rules for negative positions already checked by the metas.
#pragma once
#include "kernels/common/Copy.h"
#include <algorithm>
#include <optional>

namespace dlc::kernels {

inline int64_t wrapDim(int64_t d, int64_t rank) { return d < 0 ? d + std::max<int64_t>(rank, 1) : d; }

inline Tensor narrowed(const Tensor &t, int64_t dim, int64_t start, int64_t length, int64_t step = 1) {
  Sizes sizes = t.sizes(), strides = t.strides();
  int64_t offset = start * strides[dim];
  sizes[dim] = length;
  strides[dim] *= step;
  return viewAs(t, sizes, strides, offset);
}

inline Tensor selected(const Tensor &t, int64_t dim, int64_t index) {
  Sizes sizes = t.sizes(), strides = t.strides();
  int64_t offset = index * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return viewAs(t, sizes, strides, offset);
}

/// t[start:end:step] along `dim`.
inline Tensor sliced(const Tensor &t, int64_t dim, const std::optional<Dim> &start, const std::optional<Dim> &end,
                     int64_t step) {
  int64_t n = t.size(dim);
  auto clip = [n](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n); };
  int64_t from = clip(start ? start->value() : 0), to = std::max(from, clip(end ? end->value() : n));
  return narrowed(t, dim, from, (to - from + step - 1) / step, step);
}

inline Tensor diagonalOf(const Tensor &t, int64_t offset, int64_t dim1, int64_t dim2) {
  dim1 = wrapDim(dim1, t.dim());
  dim2 = wrapDim(dim2, t.dim());
  int64_t rows = t.size(dim1), cols = t.size(dim2);
  int64_t n = std::max<int64_t>(0, offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols));
  int64_t at = n == 0 ? 0 : offset >= 0 ? offset * t.stride(dim2) : -offset * t.stride(dim1);
  Sizes sizes, strides;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != dim1 && d != dim2)
      sizes.push_back(t.size(d)), strides.push_back(t.stride(d));
  sizes.push_back(n);
  strides.push_back(t.stride(dim1) + t.stride(dim2));
  return viewAs(t, sizes, strides, at);
}

/// The plain numbers of symbolic sizes.
inline Sizes valuesOf(Span<const Dim> dims) {
  Sizes s;
  for (const Dim &d : dims)
    s.push_back(d.value());
  return s;
}

} // namespace dlc::kernels
