// The gradient of a channels-last convolution for its weight: a product over the output pixels, on the tiles of the
// forward pass. Elements of the input at a tap take the place of pixels, pixels that of taps, dy that of the weight.
#include "kernels/lib/ConvLast.h"
#include "kernels/lib/ConvLastCore.h"
#include "kernels/lib/GemmCore.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <vector>

namespace dlc::kernels {
namespace {

using namespace detail;

/// The pixels are cut into slices, whose sums are added in order; where there are few tiles, so that threads have
/// something to do, into as many parts as this with sums of their own. Neither depends on the threads.
constexpr int64_t kParts = 8, kUnitsForOnePart = 8;

/// Bytes from the first pixel's first element to each output pixel's.
std::vector<int64_t> pixelOffsets(const ConvShape &s, const Padded &in) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(s.batch * s.outPlane()));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t oh = 0; oh < s.outHeight; ++oh)
      for (int64_t ow = 0; ow < s.outWidth; ++ow)
        offsets.push_back(((b * in.height + oh * s.strideHeight) * in.width + ow * s.strideWidth) * s.inChannels *
                          int64_t(sizeof(float)));
  return offsets;
}

/// The sum of the parts in order, from [kh][kw][in][out] to [out][in][kh][kw].
void storeGradient(const ConvShape &s, const float *sums, int64_t parts, float *dw) {
  int64_t area = s.kernelHeight * s.kernelWidth, size = s.taps() * s.outChannels;
  parallelFor(s.inChannels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, area * s.outChannels)),
              [&](int64_t from, int64_t to) {
                for (int64_t c = from; c < to; ++c)
                  for (int64_t k = 0; k < area; ++k)
                    for (int64_t o = 0; o < s.outChannels; ++o) {
                      const float *at = sums + (k * s.inChannels + c) * s.outChannels + o;
                      float sum = *at;
                      for (int64_t p = 1; p < parts; ++p)
                        sum += at[p * size];
                      dw[(o * s.inChannels + c) * area + k] = sum;
                    }
              });
}

} // namespace

bool convLastHasWeightGradient(const ConvShape &s) {
  return s.groups == 1 && s.outChannels % convLastCode().lanes == 0 && s.taps() > 0 && s.batch * s.outPlane() > 0;
}

void convLastBackwardWeight(const ConvShape &s, const float *x, const float *dy, float *dw) {
  const ConvLastCode &code = convLastCode();
  Padded in = padInput(s, x, s.batch, s.inChannels);
  std::vector<int64_t> offsets = pixelOffsets(s, in);
  auto pixels = static_cast<int64_t>(offsets.size());
  // A slice of both operands stays in the first-level cache while all tiles go over it.
  int64_t pixelBytes = (s.inChannels + s.outChannels) * int64_t(sizeof(float));
  int64_t most = std::clamp<int64_t>((24 << 10) / pixelBytes, 32, kSliceRows);
  int64_t slices = (pixels + most - 1) / most, slice = (pixels + slices - 1) / slices;
  bool merged = s.dilationWidth == 1 && s.kernelWidth * s.inChannels < 32;
  ConvLastArgs a{};
  a.pixelStride = 1, a.perOffset = 1, a.taps = pixels;
  a.imageStride = s.dilationHeight * in.width * s.inChannels, a.rowStride = s.dilationWidth * s.inChannels;
  a.rowsPerImage = merged ? 1 : s.kernelWidth, a.rows = s.kernelHeight * a.rowsPerImage;
  a.width = a.lastWidth = s.inChannels * (merged ? s.kernelWidth : 1);
  a.wStep = a.channels = a.outStride = s.outChannels;
  PanelCut cut(a.channels, code.lanes, code.panelVectors);
  int64_t units = a.rows * cut.panels, size = s.taps() * s.outChannels;
  int64_t parts = units >= kUnitsForOnePart ? 1 : std::min(kParts, slices);
  auto *sums = static_cast<float *>(scratch(kScratchSums, parts * size * sizeof(float)));
  auto slicesOf = [&](int64_t part, int64_t firstUnit, int64_t lastUnit) {
    int64_t begin = part * slices / parts, end = (part + 1) * slices / parts;
    for (int64_t i = begin; i < end; ++i) {
      ConvLastArgs b = a;
      int64_t first = std::min(pixels, i * slice), last = std::min(pixels, first + slice);
      b.x = in.data, b.w = dy + first * s.outChannels, b.y = sums + part * size;
      b.offsets = offsets.data() + first, b.numOffsets = b.sliceOffsets = last - first;
      b.residual = i > begin ? b.y : nullptr;
      for (int64_t u = firstUnit; first < last && u < lastUnit; ++u)
        code.rows(b, u / cut.panels, u / cut.panels + 1, u % cut.panels, u % cut.panels + 1);
    }
  };
  int64_t grain = std::max<int64_t>(1, 600000 / std::max<int64_t>(1, pixels * size / (units * parts)));
  parallelFor(units * parts, grain, [&](int64_t from, int64_t to) {
    for (int64_t t = from; t < to;) {
      int64_t part = t / units, end = std::min(to, (part + 1) * units);
      slicesOf(part, t - part * units, end - part * units);
      t = end;
    }
  });
  storeGradient(s, sums, parts, dw);
}

} // namespace dlc::kernels
