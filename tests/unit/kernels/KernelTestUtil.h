// Data and layouts for kernel tests: every tensor here can be read back as doubles whatever its dtype and strides.
#pragma once
#include "runtime/core/Tensor.h"
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace dlc::testing {

inline double readAt(const Tensor &t, const std::vector<int64_t> &index) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d)
    at += index[d] * t.stride(static_cast<int64_t>(d));
  return visitDType(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(t.dataAs<T>()[at]);
  });
}

inline void writeAt(const Tensor &t, const std::vector<int64_t> &index, double v) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d)
    at += index[d] * t.stride(static_cast<int64_t>(d));
  visitDType(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      t.dataAs<T>()[at] = T(static_cast<float>(v));
    else
      t.dataAs<T>()[at] = static_cast<T>(v);
  });
}

/// Calls f(index) for every index of the shape, the last dimension fastest.
template <class F> void forEachIndex(Ints sizes, F f) {
  int64_t n = 1;
  for (int64_t s : sizes)
    n *= s;
  std::vector<int64_t> index(sizes.size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i;
    for (size_t d = sizes.size(); d-- > 0;) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    f(index);
  }
}

inline std::vector<double> values(const Tensor &t) {
  std::vector<double> v;
  forEachIndex(t.sizes(), [&](const auto &i) { v.push_back(readAt(t, i)); });
  return v;
}

enum class Layout { Contiguous, Transposed, Strided, Offset };
constexpr Layout kLayouts[] = {Layout::Contiguous, Layout::Transposed, Layout::Strided, Layout::Offset};

/// An uninitialised tensor of that layout.
inline Tensor make(Ints sizes, DType dtype, Layout layout = Layout::Contiguous) {
  Sizes strides = contiguousStrides(sizes);
  if (layout == Layout::Transposed) {
    Sizes reversed(sizes.size());
    for (size_t d = 0; d < sizes.size(); ++d)
      reversed[d] = sizes[sizes.size() - 1 - d];
    Sizes s = contiguousStrides(reversed);
    for (size_t d = 0; d < sizes.size(); ++d)
      strides[d] = s[sizes.size() - 1 - d];
  }
  int64_t factor = layout == Layout::Strided ? 2 : 1, offset = layout == Layout::Offset ? 3 : 0, n = 1;
  for (int64_t &s : strides)
    s *= factor;
  for (int64_t s : sizes)
    n *= s;
  auto storage = Storage::allocate((n * factor + offset + 1) * itemSize(dtype));
  return Tensor::viewOf(storage, sizes, strides, offset, dtype);
}

/// Values in [low, high], whole for integer dtypes.
inline Tensor random(Ints sizes, DType dtype, double low, double high, unsigned seed = 1,
                     Layout layout = Layout::Contiguous) {
  Tensor t = make(sizes, dtype, layout);
  std::mt19937 gen(seed);
  std::uniform_real_distribution<double> dist(low, high);
  forEachIndex(sizes, [&](const auto &i) {
    double v = dist(gen);
    if (!isFloat(dtype))
      v = std::floor(v);
    if (dtype == DType::Bool)
      v = v > (low + high) / 2;
    writeAt(t, i, v);
  });
  return t;
}

inline Tensor from(const std::vector<double> &v, Ints sizes, DType dtype) {
  Tensor t = make(sizes, dtype);
  size_t k = 0;
  forEachIndex(sizes, [&](const auto &i) { writeAt(t, i, v[k++]); });
  return t;
}
inline Tensor from(const std::vector<double> &v, DType dtype = DType::F32) {
  return from(v, {static_cast<int64_t>(v.size())}, dtype);
}

/// A view with sizes expanded by stride 0.
inline Tensor expand(const Tensor &t, Ints sizes) {
  Sizes strides(sizes.size(), 0);
  for (int64_t d = 1; d <= t.dim(); ++d)
    if (t.size(-d) == sizes[sizes.size() - d])
      strides[sizes.size() - d] = t.stride(-d);
  return Tensor::viewOf(t.storageRef(), sizes, strides, t.offset(), t.dtype());
}

} // namespace dlc::testing
