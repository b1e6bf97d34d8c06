// The windows of pooling along one dimension, clipped to the plane.
#pragma once
#include "kernels/Kernels.h"
#include <algorithm>
#include <optional>
#include <vector>

namespace dlc::kernels {

inline int64_t at(Ints v, size_t i) { return v.size() == 1 ? v[0] : v[i]; }

/// One pooled dimension.
struct Axis {
  int64_t in, out, kernel, stride, pad, dilation;
  /// The positions from + k * dilation, k < count, of output position o inside of the plane.
  struct Window {
    int64_t from, count;
  };
  Window window(int64_t o) const { return windows[static_cast<size_t>(o)]; }
  /// Of every output position, computed once a call.
  std::vector<Window> windows;
  Window clipped(int64_t o) const {
    int64_t from = o * stride - pad, first = from < 0 ? (-from + dilation - 1) / dilation : 0;
    int64_t last = std::min(kernel, (in - from + dilation - 1) / dilation);
    return {from + first * dilation, std::max<int64_t>(0, last - first)};
  }
};

inline Axis axisOf(const Tensor &in, const Tensor &out, size_t i, Ints kernel, const std::optional<Ints> &stride,
                   Ints padding, int64_t dilation) {
  int64_t d = static_cast<int64_t>(i) - 2, k = at(kernel, i);
  Axis a{in.size(d), out.size(d), k, stride && !stride->empty() ? at(*stride, i) : k, at(padding, i), dilation, {}};
  for (int64_t o = 0; o < a.out; ++o)
    a.windows.push_back(a.clipped(o));
  return a;
}

/// The same on channels-last f32 images, and false if these are none.
bool maxPoolLast(const MaxPool2dArgs<Tensor> &args, Span<Tensor> outs);
bool maxPoolLastBackward(const MaxPool2dBackwardArgs<Tensor> &args, Span<Tensor> outs);

} // namespace dlc::kernels
