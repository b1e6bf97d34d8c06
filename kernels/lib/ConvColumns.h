// The column matrix of a convolution: row (channel, kh, kw), column (oh, ow); made a block of columns at a time. The
// images are first copied into padded planes, so that every run of columns is a plain copy.
#pragma once
#include "kernels/lib/Conv.h"
#include "kernels/lib/GemmCore.h"
#include <algorithm>
#include <cstring>
#include <type_traits>

namespace dlc::kernels::detail {

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Bytes that copies and loads of whole vectors may touch past the end.
constexpr int64_t kRunBytes = 32;
template <class T> constexpr int64_t kRunLanes = kRunBytes / sizeof(T);

/// Copies whole vectors: up to kRunBytes more are read and written.
template <class T> inline void copyRun(T *out, const T *in, int64_t length) {
  for (int64_t i = 0; i < length; i += kRunLanes<T>)
    std::memcpy(out + i, in + i, kRunBytes);
}

/// A padded plane: what the outputs of whole rows read, zeros included. A row is split by the stride, so that the
/// inputs of successive outputs lie side by side: element i of a row is at (i % stride) * run + i / stride.
struct PlaneLayout {
  int64_t run, rowSize;
  explicit PlaneLayout(const ConvShape &s) {
    int64_t width = (s.outWidth - 1) * s.strideWidth + (s.kernelWidth - 1) * s.dilationWidth + 1;
    run = ceilDiv(width, s.strideWidth);
    rowSize = run * s.strideWidth;
  }
  /// Rows for `outRows` rows of outputs.
  static int64_t rows(const ConvShape &s, int64_t outRows) {
    return (outRows - 1) * s.strideHeight + (s.kernelHeight - 1) * s.dilationHeight + 1;
  }
  /// Where output (oh, 0) reads for a tap.
  int64_t at(const ConvShape &s, int64_t oh, int64_t kh, int64_t kw) const {
    int64_t i = kw * s.dilationWidth;
    return (oh * s.strideHeight + kh * s.dilationHeight) * rowSize + i % s.strideWidth * run + i / s.strideWidth;
  }
};

/// The run of one phase of a padded row that lies in the image: elements [lo, hi), from column `first` on.
struct Inside {
  int64_t lo, hi, first;
};
inline Inside insideOf(const ConvShape &s, const PlaneLayout &l, int64_t phase) {
  int64_t offset = phase - s.padLeft, lo = offset >= 0 ? 0 : ceilDiv(-offset, s.strideWidth);
  int64_t hi = std::min(l.run, s.width - offset <= 0 ? 0 : ceilDiv(s.width - offset, s.strideWidth));
  lo = std::min(lo, hi);
  return {lo, hi, offset + lo * s.strideWidth};
}

/// Fills `count` rows of a padded plane, the first of which is its row `first`.
template <class S, class T>
void padPlane(const ConvShape &s, const PlaneLayout &l, int64_t first, int64_t count, const S *image, T *out) {
  for (int64_t r = first; r < first + count; ++r, out += l.rowSize) {
    int64_t ih = r - s.padTop;
    if (ih < 0 || ih >= s.height) {
      std::fill_n(out, l.rowSize, T(0));
      continue;
    }
    for (int64_t phase = 0; phase < s.strideWidth; ++phase) {
      Inside in = insideOf(s, l, phase);
      T *to = out + phase * l.run;
      const S *from = image + ih * s.width + in.first;
      std::fill(to, to + in.lo, T(0));
      if (s.strideWidth == 1)
        std::copy(from, from + (in.hi - in.lo), to + in.lo);
      else
        for (int64_t i = in.lo; i < in.hi; ++i, from += s.strideWidth)
          to[i] = T(*from);
      std::fill(to + in.hi, to + l.run, T(0));
    }
  }
}

/// The image inside a whole padded plane; what no output reads is 0.
template <class S, class T> void unpadPlane(const ConvShape &s, const PlaneLayout &l, const T *padded, S *image) {
  int64_t rows = PlaneLayout::rows(s, s.outHeight);
  for (int64_t ih = 0; ih < s.height; ++ih) {
    S *out = image + ih * s.width;
    std::fill_n(out, s.width, S(T(0)));
    int64_t r = ih + s.padTop;
    if (r >= rows)
      continue;
    for (int64_t phase = 0; phase < s.strideWidth; ++phase) {
      Inside in = insideOf(s, l, phase);
      const T *from = padded + r * l.rowSize + phase * l.run;
      for (int64_t i = in.lo; i < in.hi; ++i)
        out[in.first + (i - in.lo) * s.strideWidth] = S(from[i]);
    }
  }
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

/// Calls f(oh, ow, length) for the runs of outputs [begin, end) that lie in one row.
template <class F> inline void forEachRun(const ConvShape &s, int64_t begin, int64_t end, F f) {
  int64_t oh = begin / s.outWidth, ow = begin % s.outWidth;
  while (begin < end) {
    int64_t length = std::min(s.outWidth - ow, end - begin);
    f(oh, ow, length);
    begin += length, ow = 0, ++oh;
  }
}

/// Makes rows of the column matrix for one block, a channel at a time.
template <class T> class ColumnRows {
public:
  ColumnRows(const ConvShape &s, const ColumnBlock &b) : s_(s), b_(b), layout_(s) {
    firstOut_ = b.begin / s.outWidth;
    rows_ = PlaneLayout::rows(s, (b.end - 1) / s.outWidth - firstOut_ + 1);
  }
  /// Size of the buffer for load().
  int64_t bytes() const { return b_.images * rows_ * layout_.rowSize * sizeof(T) + kRunBytes; }
  /// Pads channel `channel` of the block's images into `buffer`, from which row() then copies.
  template <class S> void load(const S *x, int64_t channel, T *buffer) {
    planes_ = buffer;
    for (int64_t e = 0; e < b_.images; ++e)
      padPlane(s_, layout_, firstOut_ * s_.strideHeight, rows_,
               x + ((b_.image + e) * s_.inChannels + channel) * s_.inPlane(), buffer + e * rows_ * layout_.rowSize);
  }
  /// The row of a tap, and up to kRunBytes of rubbish behind it.
  void row(int64_t kh, int64_t kw, T *out) const {
    const int64_t step = s_.strideHeight * layout_.rowSize;
    const T *from = planes_ + layout_.at(s_, 0, kh, kw) - firstOut_ * step;
    for (int64_t e = 0; e < b_.images; ++e, from += rows_ * layout_.rowSize)
      forEachRun(s_, b_.begin, b_.end, [&](int64_t oh, int64_t ow, int64_t length) {
        copyRun(out, from + oh * step + ow, length);
        out += length;
      });
  }

private:
  const ConvShape &s_;
  ColumnBlock b_;
  PlaneLayout layout_;
  int64_t firstOut_, rows_;
  const T *planes_ = nullptr;
};

/// Groups of so few channels that a product would be all overhead; the functions below serve them.
inline bool hasFewChannels(const ConvShape &s) { return s.inPerGroup() <= 2 && s.outPerGroup() <= 2; }
template <class S> void fewForward(const ConvShape &s, const S *x, const S *w, const S *bias, S *y);
template <class S> void fewBackwardInput(const ConvShape &s, const S *dy, const S *w, S *dx);
template <class S> void fewBackwardWeight(const ConvShape &s, const S *x, const S *dy, S *dw);

/// The storage types, for explicit instantiations.
#define DLC_STORAGE_TYPES(X)                                                                                           \
  X(float) X(double) X(::dlc::Half) X(::dlc::BFloat16) X(uint8_t) X(uint16_t) X(uint32_t) X(uint64_t)

} // namespace dlc::kernels::detail
