// The column matrix of a convolution: row (channel, kh, kw), column (oh, ow). Made a block of columns at a time, in
// rows or straight into the panels that the product reads.
#pragma once
#include "kernels/lib/Conv.h"
#include "kernels/lib/GemmCore.h"
#include <algorithm>
#include <cstring>
#include <type_traits>

namespace dlc::kernels::detail {

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Output positions [lo, hi) whose input position `o * stride + offset` lies in [0, size).
struct Valid {
  int64_t lo, hi;
};
inline Valid validOutputs(int64_t outputs, int64_t stride, int64_t offset, int64_t size) {
  int64_t lo = offset >= 0 ? 0 : ceilDiv(-offset, stride), hi = size - offset <= 0 ? 0 : ceilDiv(size - offset, stride);
  hi = std::min(hi, outputs);
  return {std::min(lo, hi), hi};
}

/// One tap of a kernel: where it reads for the output (0, 0), and for which columns that is inside.
struct Tap {
  int64_t row, col;
  Valid cols;
};
inline Tap tapOf(const ConvShape &s, int64_t kh, int64_t kw) {
  int64_t col = kw * s.dilationWidth - s.padLeft;
  return {kh * s.dilationHeight - s.padTop, col, validOutputs(s.outWidth, s.strideWidth, col, s.width)};
}

/// Calls f(first output column, length, source) for the runs of outputs [begin, end) of one image that lie in one row
/// of it; source is null for a row of padding.
template <class S, class F>
void forEachRun(const ConvShape &s, const Tap &tap, S *plane, int64_t begin, int64_t end, F f) {
  int64_t oh = begin / s.outWidth, ow = begin % s.outWidth;
  while (begin < end) {
    int64_t length = std::min(s.outWidth - ow, end - begin), ih = oh * s.strideHeight + tap.row;
    f(ow, length, ih >= 0 && ih < s.height ? plane + ih * s.width : nullptr);
    begin += length, ow = 0, ++oh;
  }
}

/// Elements [begin, end) of the column matrix's row for `tap`.
template <class S, class T>
void fillColumnRow(const ConvShape &s, const Tap &tap, const S *plane, int64_t begin, int64_t end, T *out) {
  forEachRun(s, tap, plane, begin, end, [&](int64_t ow, int64_t length, const S *row) {
    if (!row) {
      out = std::fill_n(out, length, T(0));
      return;
    }
    int64_t lo = std::clamp(tap.cols.lo, ow, ow + length), hi = std::clamp(tap.cols.hi, lo, ow + length);
    std::fill(out, out + (lo - ow), T(0));
    const S *from = row + lo * s.strideWidth + tap.col;
    if (s.strideWidth == 1)
      std::copy(from, from + (hi - lo), out + (lo - ow));
    else
      for (int64_t i = lo; i < hi; ++i, from += s.strideWidth)
        out[i - ow] = T(*from);
    std::fill(out + (hi - ow), out + length, T(0));
    out += length;
  });
}

/// Adds a row of columns back to where it came from.
template <class T>
void addColumnRow(const ConvShape &s, const Tap &tap, T *plane, int64_t begin, int64_t end, const T *in) {
  forEachRun(s, tap, plane, begin, end, [&](int64_t ow, int64_t length, T *row) {
    if (row) {
      int64_t lo = std::clamp(tap.cols.lo, ow, ow + length), hi = std::clamp(tap.cols.hi, lo, ow + length);
      T *to = row + lo * s.strideWidth + tap.col;
      if (s.strideWidth == 1)
        for (int64_t i = lo; i < hi; ++i)
          to[i - lo] = T(to[i - lo] + in[i - ow]);
      else
        for (int64_t i = lo; i < hi; ++i, to += s.strideWidth)
          *to = T(*to + in[i - ow]);
    }
    in += length;
  });
}

/// A block of output positions: `images` whole images, or columns [begin, end) of one.
struct ColumnBlock {
  int64_t image, images, begin, end;
  int64_t columns() const { return images * (end - begin); }
};

/// How the positions of a batch are cut into blocks.
struct ColumnCut {
  int64_t images, columns, perImage, count;
  ColumnBlock block(const ConvShape &s, int64_t index) const {
    if (images > 1) {
      int64_t first = index * images;
      return {first, std::min(images, s.batch - first), 0, s.outPlane()};
    }
    int64_t begin = index % perImage * columns;
    return {index / perImage, 1, begin, std::min(begin + columns, s.outPlane())};
  }
};

/// Small images are taken together, large ones cut, so that a block has about `wanted` columns.
inline ColumnCut cutColumns(const ConvShape &s, int64_t wanted, int64_t unit) {
  int64_t plane = s.outPlane();
  if (plane * 2 <= wanted) {
    int64_t images = std::min(s.batch, wanted / plane);
    return {images, plane, 1, ceilDiv(s.batch, images)};
  }
  int64_t columns = std::min(plane, ceilDiv(ceilDiv(plane, ceilDiv(plane, wanted)), unit) * unit);
  int64_t perImage = ceilDiv(plane, columns);
  return {1, columns, perImage, s.batch * perImage};
}

/// Row `p` of the column matrix (channel, kh, kw in that order) for a block, into `out`.
template <class S, class T>
void fillBlockRow(const ConvShape &s, const ColumnBlock &b, int64_t channel, int64_t p, const S *x, T *out) {
  int64_t area = s.kernelHeight * s.kernelWidth, c = p / area;
  Tap tap = tapOf(s, p % area / s.kernelWidth, p % s.kernelWidth);
  for (int64_t e = 0; e < b.images; ++e) {
    const S *plane = x + ((b.image + e) * s.inChannels + channel + c) * s.inPlane();
    fillColumnRow(s, tap, plane, b.begin, b.end, out);
    out += b.end - b.begin;
  }
}

} // namespace dlc::kernels::detail
