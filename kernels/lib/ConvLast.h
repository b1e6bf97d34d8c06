// Convolution over channels-last memory, f32: weights packed once, sums in registers over pixels and output channels,
// and an epilogue on them before they are stored. Runs on the thread pool; bits do not depend on the threads.
#pragma once
#include "kernels/lib/Conv.h"
#include <cstdint>

namespace dlc::kernels {

enum class ConvActivation : uint8_t { None, Relu, Relu6, Hardswish, Hardsigmoid };

/// What happens to the sums, in this order: y = activation(sum * scale + shift + residual). `scale` and `shift` have
/// one value an output channel (no scale without shift), `residual` has the layout of y; each may be null.
struct ConvEpilogue {
  const float *scale = nullptr, *shift = nullptr;
  const float *residual = nullptr;
  ConvActivation activation = ConvActivation::None;
};

/// Whether the kernels below compute `s`: its sums are not empty, and groups have one channel each (depthwise) or many.
bool convLastSupports(const ConvShape &s);

/// Floats of the packed weight, the same on every machine (the order is not).
int64_t convLastPackedSize(const ConvShape &s);
/// Packs w [out, in / groups, kh, kw] for the instruction set in use. `planar`: for an input in NCHW.
void convLastPack(const ConvShape &s, bool planar, const float *w, float *packed);

/// y [batch, outHeight, outWidth, out] from x [batch, height, width, in], or from NCHW data if `planar` (not for
/// depthwise). The residual may not overlap y.
void convLastForward(const ConvShape &s, bool planar, const float *x, const float *packed, const ConvEpilogue &e,
                     float *y);

/// Whether convLastBackwardWeight computes `s`.
bool convLastHasWeightGradient(const ConvShape &s);
/// dw [out, in, kh, kw] = the gradient of sum(y * dy) for w, from channels-last x and dy.
void convLastBackwardWeight(const ConvShape &s, const float *x, const float *dy, float *dw);

} // namespace dlc::kernels
