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
/// Of the input, that a thread keeps in its second-level cache.
constexpr int64_t kBlockBytes = 512 << 10;

bool isDepthwise(const ConvShape &s) { return s.groups > 1 && s.inPerGroup() == 1 && s.outPerGroup() == 1; }

int64_t roundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// Where the products of a sum are, in the order of the packed weight, in the form of the tiles.
std::vector<int64_t> setOffsets(ConvLastArgs &a, const ConvShape &s, bool planar, const Padded &in) {
  int64_t channels = s.inPerGroup(), taps = s.taps();
  // Four products side by side have one offset.
  bool merged = s.dilationWidth == 1 && s.groups == 1 && !planar, four = !planar && channels % 4 == 0;
  four |= merged && s.kernelWidth * channels % 4 == 0;
  a.perOffset = four ? 4 : 1;
  a.numOffsets = taps / a.perOffset;
  std::vector<int64_t> offsets(static_cast<size_t>(a.numOffsets));
  int64_t *to = offsets.data();
  constexpr int64_t kSize = sizeof(float);
  int64_t pixel = (planar ? 1 : s.inChannels) * kSize, row = s.dilationHeight * in.width * pixel;
  for (int64_t c = 0; c < (planar ? channels : 1); ++c)
    for (int64_t kh = 0; kh < s.kernelHeight; ++kh) {
      int64_t at = c * in.height * in.width * kSize + kh * row;
      int64_t runs = merged ? 1 : s.kernelWidth, length = planar ? 1 : merged ? s.kernelWidth * channels : channels;
      for (int64_t r = 0; r < runs; ++r, at += s.dilationWidth * pixel)
        for (int64_t i = 0; i < length; i += a.perOffset)
          *to++ = at + i * kSize;
    }
  int64_t slices = (taps + kSliceRows - 1) / kSliceRows;
  a.sliceOffsets = (a.numOffsets + slices - 1) / slices;
  a.offsets = offsets.data();
  return offsets;
}

/// Values of the channels of a group, with zeros up to whole vectors.
const float *padChannels(const float *v, int64_t channels, int64_t padded, float *to) {
  if (!v)
    return nullptr;
  std::copy_n(v, channels, to);
  std::fill(to + channels, to + padded, 0.0f);
  return to;
}

/// Into how many blocks to cut the rows, at least `least`: `shares` equal shares of blocks by panels, with few blocks.
int64_t blocksFor(int64_t rows, int64_t panels, int64_t shares, int64_t least) {
  int64_t best = std::min(rows, std::max<int64_t>(1, least));
  double bestWaste = 1e9;
  for (int64_t blocks = best, last = std::min(rows, best + 7); blocks <= last; ++blocks) {
    int64_t n = panels * blocks, block = (rows + blocks - 1) / blocks;
    double used = double(n) * double(rows) / double((n + shares - 1) / shares * shares * blocks * block);
    double waste = 1 / used + 0.01 * double(blocks);
    if (waste < bestWaste)
      best = blocks, bestWaste = waste;
  }
  return best;
}

/// Blocks of rows by panels. What is larger, weights or input, is gone over once.
void runGroup(const ConvLastArgs &a, int64_t inputBytes) {
  const ConvLastCode &code = convLastCode();
  PanelCut cut(a.channels, code.lanes, code.panelVectors);
  int64_t weights = a.taps * a.channels, weightBytes = weights * int64_t(sizeof(float));
  // Few pixels: bound by reading the weights, which takes as long as 16 products an element.
  int64_t work = weights * std::max<int64_t>(16, (a.rows - 1) * a.width + a.lastWidth);
  int64_t shares = parallelShares(std::max<int64_t>(1, work / kTaskWork), 1);
  bool byPanels = weightBytes > inputBytes;
  int64_t blocks = blocksFor(a.rows, cut.panels, shares, byPanels ? 1 : inputBytes / kBlockBytes);
  int64_t block = (a.rows + blocks - 1) / blocks, n = cut.panels * blocks;
  parallelFor(n, std::max<int64_t>(1, n / shares), [&](int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t) {
      int64_t panel = byPanels ? t / blocks : t % cut.panels, b = byPanels ? t % blocks : t / cut.panels;
      code.rows(a, std::min(a.rows, b * block), std::min(a.rows, (b + 1) * block), panel, panel + 1);
    }
  });
}

/// Channels [first, last) of an image with its borders, for one task.
DepthwiseArgs padPart(const ConvShape &s, ConvShape &padded, const DepthwiseArgs &a, int64_t image, int64_t first,
                      int64_t last) {
  padded = s;
  padded.padTop = padded.padLeft = 0;
  padded.height = (s.outHeight - 1) * s.strideHeight + (s.kernelHeight - 1) * s.dilationHeight + 1;
  padded.width = (s.outWidth - 1) * s.strideWidth + (s.kernelWidth - 1) * s.dilationWidth + 1;
  int64_t n = last - first, rowSize = padded.width * n;
  auto *to =
      static_cast<float *>(scratch(kScratchColumns, static_cast<size_t>(padded.height * rowSize) * sizeof(float)));
  for (int64_t h = 0; h < padded.height; ++h) {
    int64_t ih = h - s.padTop;
    float *row = to + h * rowSize;
    const float *from = a.x + ((image * s.height + ih) * s.width - s.padLeft) * s.outChannels + first;
    for (int64_t w = 0; w < padded.width; ++w)
      if (bool inside = ih >= 0 && ih < s.height && w >= s.padLeft && w < s.padLeft + s.width; inside)
        std::copy_n(from + w * s.outChannels, n, row + w * n);
      else
        std::fill_n(row + w * n, n, 0.0f);
  }
  DepthwiseArgs part = a;
  part.shape = &padded, part.x = to, part.pixelStride = n, part.firstChannel = first, part.firstImage = image;
  return part;
}

void depthwise(const ConvShape &s, const float *x, const float *packed, const ConvEpilogue &e, float *y) {
  const ConvLastCode &code = convLastCode();
  int64_t padded = roundUp(s.outChannels, code.lanes);
  std::vector<float> values(static_cast<size_t>(2 * padded));
  DepthwiseArgs a{&s, x, packed, padded, s.outChannels, 0, 0, y, nullptr, nullptr, e.residual, e.activation};
  a.scale = padChannels(e.scale, s.outChannels, padded, values.data());
  a.shift = padChannels(e.shift, s.outChannels, padded, values.data() + padded);
  // Borders take their pixels one by one. Where they are much of a row, each task pads its part of the channels.
  bool pads = s.padLeft > 0 && s.outWidth <= 16;
  // A part of the channels keeps the rows of a window in the first-level cache. Parts are whole vectors but for the
  // last.
  int64_t vectors = std::max<int64_t>(1, s.outChannels / kMostLanes), rows = s.batch * s.outHeight;
  int64_t parts = std::min<int64_t>(vectors, pads ? 8 : std::max<int64_t>(1, s.outChannels / 64));
  auto firstOf = [&](int64_t part) { return part == parts ? s.outChannels : part * vectors / parts * kMostLanes; };
  int64_t work = s.outWidth * padded / parts * (s.kernelHeight * s.kernelWidth + 8) * (pads ? s.outHeight : 1);
  int64_t grain = std::max<int64_t>(1, kTaskWork / 4 / std::max<int64_t>(1, work));
  if (!pads)
    return parallelFor(rows * parts, grain, [&](int64_t from, int64_t to) {
      for (int64_t t = from; t < to; ++t)
        code.depthwise(a, t % rows, firstOf(t / rows), firstOf(t / rows + 1));
    });
  parallelFor(s.batch * parts, grain, [&](int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t) {
      int64_t image = t / parts, first = firstOf(t % parts), last = firstOf(t % parts + 1);
      ConvShape shape;
      DepthwiseArgs part = padPart(s, shape, a, image, first, last);
      for (int64_t r = image * s.outHeight; r < (image + 1) * s.outHeight; ++r)
        code.depthwise(part, r, first, last);
    }
  });
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
  int64_t unit = planar ? 1 : s.inChannels, padded = roundUp(s.outPerGroup(), code.lanes);
  ConvLastArgs a{};
  a.imageStride = in.height * in.width * s.inChannels;
  a.rowStride = s.strideHeight * in.width * unit, a.pixelStride = s.strideWidth * unit;
  a.taps = s.taps();
  std::vector<int64_t> offsets = setOffsets(a, s, planar, in);
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
  std::vector<float> values(static_cast<size_t>(2 * padded));
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
