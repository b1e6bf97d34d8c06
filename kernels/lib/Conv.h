// Two-dimensional convolution and its gradients on contiguous NCHW data, as products over columns that are laid out
// block by block (never for a whole image batch at once). Runs on the thread pool; bits do not depend on the threads.
#pragma once
#include "kernels/lib/Gemm.h"
#include <cstdint>

namespace dlc::kernels {

/// Sizes of a convolution. The input is [batch, inChannels, height, width], the weight [outChannels, inChannels /
/// groups, kernelHeight, kernelWidth], the output [batch, outChannels, outHeight, outWidth]. Output (oh, ow) reads
/// input rows oh * strideHeight - padTop + kh * dilationHeight, and zeros outside; padding below and to the right
/// follows from the output's size. The caller has checked that groups divide the channels and that all sizes are >= 0.
struct ConvShape {
  int64_t batch = 1, inChannels = 1, height = 1, width = 1;
  int64_t outChannels = 1, kernelHeight = 1, kernelWidth = 1;
  int64_t outHeight = 1, outWidth = 1;
  int64_t strideHeight = 1, strideWidth = 1;
  int64_t padTop = 0, padLeft = 0;
  int64_t dilationHeight = 1, dilationWidth = 1;
  int64_t groups = 1;

  int64_t inPerGroup() const { return inChannels / groups; }
  int64_t outPerGroup() const { return outChannels / groups; }
  /// Length of the sum for one output element.
  int64_t taps() const { return inPerGroup() * kernelHeight * kernelWidth; }
  int64_t outPlane() const { return outHeight * outWidth; }
  int64_t inPlane() const { return height * width; }
};

/// Sets outHeight and outWidth for symmetric padding, as PyTorch does.
void setConvOutputSize(ConvShape &s);

/// y = x * w + bias; `bias` (one value an output channel) may be null. 16-bit floats are summed in float and rounded
/// once.
template <class T> void convForward(const ConvShape &s, const T *x, const T *w, const T *bias, T *y);

/// dx = the gradient of sum(y * dy) for x; also the forward of a transposed convolution.
template <class T> void convBackwardInput(const ConvShape &s, const T *dy, const T *w, T *dx);

/// dw = the gradient of sum(y * dy) for w.
template <class T> void convBackwardWeight(const ConvShape &s, const T *x, const T *dy, T *dw);

#define DLC_X(T)                                                                                                       \
  extern template void convForward(const ConvShape &, const T *, const T *, const T *, T *);                           \
  extern template void convBackwardInput(const ConvShape &, const T *, const T *, T *);                                \
  extern template void convBackwardWeight(const ConvShape &, const T *, const T *, T *);
DLC_GEMM_TYPES(DLC_X)
#undef DLC_X

} // namespace dlc::kernels
