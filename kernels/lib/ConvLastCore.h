// Between ConvLast.cpp and the code of each instruction set: a share of the output rows by a share of the panels.
#pragma once
#include "kernels/lib/ConvLast.h"

namespace dlc::kernels::detail {

/// Pixels are numbered along rows of `width` (the last row of all may be shorter); rows belong to images.
struct ConvLastArgs {
  const float *x; ///< what tap (0, 0) of the first output pixel reads; padding is in memory
  int64_t imageStride, rowStride, pixelStride;
  /// Where the products of a sum are, in bytes from the pixel's first element: `perOffset` (1 or 4) side by side at
  /// each offset. After `sliceOffsets` of them the sum so far is added to those before: no sum is one long chain.
  const int64_t *offsets;
  int64_t numOffsets, sliceOffsets, perOffset, taps;
  int64_t rowsPerImage, rows, width, lastWidth;
  const float *w;
  int64_t wStep;    ///< 0: w is packed; else its rows are that far apart, and channels are whole vectors
  int64_t channels; ///< output channels of the group
  float *y;
  int64_t outStride; ///< elements from one output pixel to the next
  const float *scale, *shift, *residual;
  ConvActivation activation;
};

/// One channel a group: borders are clipped, not padded.
struct DepthwiseArgs {
  const ConvShape *shape;
  const float *x, *w; ///< w: [kh][kw][channels rounded up to vectors]
  int64_t weightStride;
  /// x holds the channels from `firstChannel` on, `pixelStride` elements a pixel, of the images from `firstImage` on.
  int64_t pixelStride, firstChannel, firstImage;
  float *y;
  const float *scale, *shift, *residual;
  ConvActivation activation;
};

struct ConvLastCode {
  int lanes, panelVectors;
  /// Rows [first, last) for panels [firstPanel, lastPanel) of the group.
  void (*rows)(const ConvLastArgs &a, int64_t first, int64_t last, int64_t firstPanel, int64_t lastPanel);
  /// Channels [first, last) of an output row, counted over all images.
  void (*depthwise)(const DepthwiseArgs &a, int64_t row, int64_t first, int64_t last);
};
const ConvLastCode &convLastAvx2();
const ConvLastCode &convLastAvx512();
const ConvLastCode &convLastCode();

/// An input with its borders in memory, or the input itself where no pixel reads beyond it.
struct Padded {
  const float *data;
  int64_t height, width;
};
/// Pads `planes` images (or planes of images) of `unit` elements a pixel, into scratch memory.
Padded padInput(const ConvShape &s, const float *x, int64_t planes, int64_t unit);

/// Panels of the channels of a group: as few as possible, and alike.
struct PanelCut {
  int64_t vectors, panels;
  PanelCut(int64_t channels, int lanes, int most)
      : vectors((channels + lanes - 1) / lanes), panels((vectors + most - 1) / most) {}
  /// The first vector of panel `p`.
  int64_t first(int64_t p) const { return p * (vectors / panels) + (p < vectors % panels ? p : vectors % panels); }
};

} // namespace dlc::kernels::detail
