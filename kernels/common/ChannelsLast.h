// Images whose channels are neighbours in memory: [N, C, H, W] tensors with the strides of row-major [N, H, W, C].
#pragma once
#include "kernels/common/Copy.h"

namespace dlc::kernels {

/// The strides of dense channels-last memory.
inline Sizes channelsLastStrides(Ints sizes) {
  int64_t c = sizes[1], h = sizes[2], w = sizes[3];
  return Sizes{h * w * c, 1, w * c, c};
}

/// Strides of dims of one element do not matter.
inline bool isChannelsLast(const Tensor &t) {
  if (t.dim() != 4)
    return false;
  Sizes dense = channelsLastStrides(t.sizes());
  for (size_t d = 0; d < 4; ++d)
    if (t.sizes()[d] > 1 && t.strides()[d] != dense[d])
      return false;
  return true;
}

inline Tensor emptyChannelsLast(Ints sizes, DType dtype) {
  return Tensor::emptyStrided(sizes, channelsLastStrides(sizes), dtype);
}

/// `t` itself, or a copy in that layout.
inline Tensor asChannelsLast(const Tensor &t) {
  if (isChannelsLast(t))
    return t;
  Tensor copy = emptyChannelsLast(t.sizes(), t.dtype());
  copyInto(copy, t);
  return copy;
}

/// An output in that layout: the tensor itself, or a temporary that `commit` copies back.
class ChannelsLastOut {
public:
  explicit ChannelsLastOut(const Tensor &out)
      : out_(out), work_(isChannelsLast(out) ? out : emptyChannelsLast(out.sizes(), out.dtype())) {}
  const Tensor &get() const { return work_; }
  void commit() const {
    if (!work_.is(out_))
      copyInto(out_, work_);
  }

private:
  Tensor out_, work_;
};

} // namespace dlc::kernels
