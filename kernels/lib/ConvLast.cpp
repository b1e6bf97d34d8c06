// Packing, padding and the cut into tasks of the channels-last convolution.
#include "kernels/lib/ConvLast.h"
#include "kernels/lib/ConvLastCore.h"
#include "kernels/lib/GemmCore.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <cstring>
#include <vector>

namespace dlc::kernels {
namespace detail {

const ConvLastCode &convLastCode() {
  static const ConvLastCode &code = std::strcmp(gemmIsa(), "avx512") == 0 ? convLastAvx512() : convLastAvx2();
  return code;
}

static bool readsBorder(const ConvShape &s) {
  auto beyond = [](int64_t pad, int64_t out, int64_t stride, int64_t kernel, int64_t dilation, int64_t size) {
    return pad > 0 || (out - 1) * stride + (kernel - 1) * dilation >= size;
  };
  return beyond(s.padTop, s.outHeight, s.strideHeight, s.kernelHeight, s.dilationHeight, s.height) ||
         beyond(s.padLeft, s.outWidth, s.strideWidth, s.kernelWidth, s.dilationWidth, s.width);
}

Padded padInput(const ConvShape &s, const float *x, int64_t planes, int64_t unit) {
  if (!readsBorder(s))
    return {x, s.height, s.width};
  int64_t height = (s.outHeight - 1) * s.strideHeight + (s.kernelHeight - 1) * s.dilationHeight + 1;
  int64_t width = (s.outWidth - 1) * s.strideWidth + (s.kernelWidth - 1) * s.dilationWidth + 1;
  auto *out = static_cast<float *>(scratch(kScratchColumns, planes * height * width * unit * sizeof(float)));
  int64_t end = std::clamp<int64_t>(width, s.padLeft, s.padLeft + s.width);
  int64_t left = std::min(s.padLeft, width), inside = std::max<int64_t>(0, end - s.padLeft);
  parallelFor(planes * height, std::max<int64_t>(1, 40000 / (width * unit)), [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      float *row = out + r * width * unit;
      int64_t h = r % height - s.padTop;
      if (h < 0 || h >= s.height) {
        std::fill_n(row, width * unit, 0.0f);
        continue;
      }
      std::fill_n(row, left * unit, 0.0f);
      std::copy_n(x + (r / height * s.height + h) * s.width * unit, inside * unit, row + left * unit);
      std::fill(row + (left + inside) * unit, row + width * unit, 0.0f);
    }
  });
  return {out, height, width};
}

} // namespace detail

namespace {

using namespace detail;

/// Packed weights have the same size for every instruction set.
constexpr int64_t kMostLanes = 16;
/// Products below which a task is not worth handing out.
constexpr int64_t kTaskWork = 300000;

bool isDepthwise(const ConvShape &s) { return s.groups > 1 && s.inPerGroup() == 1 && s.outPerGroup() == 1; }

int64_t roundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// The offsets of a sum's products in the order of the packed weight, as elements from the pixel's first one.
std::vector<int64_t> makeOffsets(const ConvShape &s, bool planar, const Padded &in) {
  std::vector<int64_t> offsets;
  int64_t channels = s.inPerGroup();
  auto at = [&](int64_t c, int64_t kh, int64_t kw) {
    int64_t pixel = kh * s.dilationHeight * in.width + kw * s.dilationWidth;
    return planar ? c * in.height * in.width + pixel : pixel * s.inChannels + c;
  };
  for (int64_t outer = 0; outer < (planar ? channels : 1); ++outer)
    for (int64_t kh = 0; kh < s.kernelHeight; ++kh)
      for (int64_t kw = 0; kw < s.kernelWidth; ++kw)
        for (int64_t c = 0; c < (planar ? 1 : channels); ++c)
          offsets.push_back(at(outer + c, kh, kw));
  return offsets;
}

/// Puts the offsets into the form of the tiles.
void setOffsets(ConvLastArgs &a, std::vector<int64_t> &offsets) {
  auto n = static_cast<int64_t>(offsets.size());
  bool four = n % 4 == 0;
  for (int64_t k = 0; four && k < n; k += 4)
    four = offsets[k + 3] == offsets[k] + 3 && offsets[k + 2] == offsets[k] + 2 && offsets[k + 1] == offsets[k] + 1;
  a.perOffset = four ? 4 : 1;
  a.numOffsets = n / a.perOffset;
  for (int64_t k = 0; k < a.numOffsets; ++k)
    offsets[k] = offsets[k * a.perOffset] * int64_t(sizeof(float));
  int64_t slices = (n + kSliceRows - 1) / kSliceRows;
  a.sliceOffsets = (a.numOffsets + slices - 1) / slices;
  a.offsets = offsets.data();
}

/// Values of the channels of a group, with zeros up to whole vectors.
const float *padChannels(const float *v, int64_t channels, int64_t padded, float *to) {
  if (!v)
    return nullptr;
  std::copy_n(v, channels, to);
  std::fill(to + channels, to + padded, 0.0f);
  return to;
}

/// Rows by panels. Big weights are cut over the threads, small ones read by all.
void runGroup(const ConvLastArgs &a, int64_t inputBytes) {
  const ConvLastCode &code = convLastCode();
  PanelCut cut(a.channels, code.lanes, code.panelVectors);
  int64_t work = std::max<int64_t>(1, a.rows * a.width * a.taps * a.channels);
  int64_t shares = parallelShares(std::max<int64_t>(1, work / kTaskWork), 1);
  bool byPanels = cut.panels >= 2 * shares && a.channels * a.taps * int64_t(sizeof(float)) > inputBytes;
  if (byPanels || a.rows < 2) {
    parallelFor(cut.panels, std::max<int64_t>(1, kTaskWork * cut.panels / work),
                [&](int64_t from, int64_t to) { code.rows(a, 0, a.rows, from, to); });
    return;
  }
  // A block of rows stays in the second-level cache while all panels go over it.
  int64_t rowBytes = std::max<int64_t>(1, inputBytes / a.rows);
  int64_t block = std::clamp<int64_t>((256 << 10) / rowBytes, 8, 1 << 20);
  parallelFor(a.rows, std::max<int64_t>(1, kTaskWork * a.rows / work), [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; r += block)
      code.rows(a, r, std::min(to, r + block), 0, cut.panels);
  });
}

void depthwise(ConvShape s, const float *x, const float *packed, const ConvEpilogue &e, float *y) {
  // Borders take their pixels one by one; where they are much of a row, padding in memory is cheaper.
  if (s.padLeft > 0 && s.outWidth <= 16) {
    Padded in = padInput(s, x, s.batch, s.inChannels);
    x = in.data, s.height = in.height, s.width = in.width;
    s.padLeft = s.padTop = 0;
  }
  const ConvLastCode &code = convLastCode();
  int64_t padded = roundUp(s.outChannels, code.lanes);
  std::vector<float> values(2 * padded);
  DepthwiseArgs a{&s, x, packed, padded, y, nullptr, nullptr, e.residual, e.activation};
  a.scale = padChannels(e.scale, s.outChannels, padded, values.data());
  a.shift = padChannels(e.shift, s.outChannels, padded, values.data() + padded);
  int64_t rowWork = s.outWidth * padded * (s.kernelHeight * s.kernelWidth + 2);
  parallelFor(s.batch * s.outHeight, std::max<int64_t>(1, kTaskWork / 2 / std::max<int64_t>(1, rowWork)),
              [&](int64_t from, int64_t to) { code.depthwise(a, from, to); });
}

} // namespace

bool convLastSupports(const ConvShape &s) {
  return s.taps() > 0 && (s.groups == 1 || isDepthwise(s) || (s.inPerGroup() >= 4 && s.outPerGroup() >= 4));
}

int64_t convLastPackedSize(const ConvShape &s) {
  if (isDepthwise(s))
    return s.kernelHeight * s.kernelWidth * roundUp(s.outChannels, kMostLanes);
  return s.groups * s.taps() * roundUp(s.outPerGroup(), kMostLanes);
}

void convLastPack(const ConvShape &s, bool planar, const float *w, float *packed) {
  const ConvLastCode &code = convLastCode();
  int64_t taps = s.taps(), area = s.kernelHeight * s.kernelWidth, in = s.inPerGroup();
  if (isDepthwise(s)) {
    int64_t padded = roundUp(s.outChannels, code.lanes);
    std::fill_n(packed, area * padded, 0.0f);
    for (int64_t c = 0; c < s.outChannels; ++c)
      for (int64_t k = 0; k < area; ++k)
        packed[k * padded + c] = w[c * area + k];
    return;
  }
  PanelCut cut(s.outPerGroup(), code.lanes, code.panelVectors);
  parallelFor(s.groups * cut.panels, std::max<int64_t>(1, 20000 / std::max<int64_t>(1, taps * code.lanes)),
              [&](int64_t from, int64_t to) {
                for (int64_t t = from; t < to; ++t) {
                  int64_t g = t / cut.panels, p = t % cut.panels;
                  int64_t first = cut.first(p) * code.lanes, columns = cut.first(p + 1) * code.lanes - first;
                  float *panel = packed + g * taps * cut.vectors * code.lanes + first * taps;
                  int64_t used = std::min(columns, s.outPerGroup() - first);
                  for (int64_t c = 0; c < in; ++c)
                    for (int64_t k = 0; k < area; ++k) {
                      float *to = panel + (planar ? c * area + k : k * in + c) * columns;
                      const float *source = w + (g * s.outPerGroup() + first) * taps + c * area + k;
                      for (int64_t j = 0; j < used; ++j)
                        to[j] = source[j * taps];
                      std::fill(to + used, to + columns, 0.0f);
                    }
                }
              });
}

void convLastForward(const ConvShape &s, bool planar, const float *x, const float *packed, const ConvEpilogue &e,
                     float *y) {
  if (s.batch <= 0 || s.outChannels <= 0 || s.outPlane() <= 0)
    return;
  if (isDepthwise(s) && !planar)
    return depthwise(s, x, packed, e, y);
  const ConvLastCode &code = convLastCode();
  Padded in = planar ? padInput(s, x, s.batch * s.inChannels, 1) : padInput(s, x, s.batch, s.inChannels);
  std::vector<int64_t> offsets = makeOffsets(s, planar, in);
  int64_t unit = planar ? 1 : s.inChannels, padded = roundUp(s.outPerGroup(), code.lanes);
  ConvLastArgs a{};
  a.imageStride = in.height * in.width * s.inChannels;
  a.rowStride = s.strideHeight * in.width * unit, a.pixelStride = s.strideWidth * unit;
  a.taps = s.taps();
  setOffsets(a, offsets);
  a.rowsPerImage = s.outHeight, a.rows = s.batch * s.outHeight, a.width = a.lastWidth = s.outWidth;
  bool flat = !planar && s.kernelHeight == 1 && s.kernelWidth == 1 && s.strideHeight == 1 && s.strideWidth == 1 &&
              in.height == s.outHeight && in.width == s.outWidth;
  if (flat) { // pixels are rows of a matrix: any cut of them will do
    int64_t pixels = s.batch * s.outPlane(), width = std::min<int64_t>(pixels, 28);
    a.rows = a.rowsPerImage = (pixels + width - 1) / width;
    a.width = width, a.lastWidth = pixels - (a.rows - 1) * width;
    a.rowStride = width * s.inChannels;
  }
  a.channels = s.outPerGroup(), a.outStride = s.outChannels, a.activation = e.activation;
  std::vector<float> values(2 * padded);
  int64_t inputBytes = s.batch * in.height * in.width * s.inPerGroup() * int64_t(sizeof(float));
  for (int64_t g = 0; g < s.groups; ++g) {
    int64_t first = g * a.channels;
    a.x = in.data + g * s.inPerGroup() * (planar ? in.height * in.width : 1);
    a.w = packed + g * a.taps * padded;
    a.y = y + first;
    a.residual = e.residual ? e.residual + first : nullptr;
    a.scale = padChannels(e.scale ? e.scale + first : nullptr, a.channels, padded, values.data());
    a.shift = padChannels(e.shift ? e.shift + first : nullptr, a.channels, padded, values.data() + padded);
    runGroup(a, inputBytes);
  }
}

} // namespace dlc::kernels
