// Convolution forward: blocks of columns go straight into packed panels and are multiplied by the weights; groups with
// few channels run row by row instead.
#include "kernels/lib/Conv.h"
#include "kernels/lib/ConvColumns.h"
#include "runtime/core/ThreadPool.h"

namespace dlc::kernels {
namespace {

using namespace detail;

/// Products below which a task is not worth handing out.
constexpr int64_t kTaskWork = 300000;

/// The column block of one group as packed B: for each slice of taps, panels of columns.
template <class S> const GemmAcc<S> *makePanels(const ConvShape &s, const ColumnBlock &b, int64_t channel, const S *x) {
  using T = GemmAcc<S>;
  const int64_t width = coreCode<S>().panelCols, taps = s.taps(), slice = sliceRows(taps), columns = b.columns();
  const int64_t padded = ceilDiv(columns, width) * width;
  ColumnRows<T> source(s, b);
  T *panels = static_cast<T *>(scratch(kScratchColumns, taps * padded * sizeof(T)));
  T *line = static_cast<T *>(scratch(kScratchRows, (padded + kRunLanes<T>)*sizeof(T) + source.bytes()));
  T *planes = line + padded + kRunLanes<T>;
  for (int64_t p = 0, c = 0; c < s.inPerGroup(); ++c) {
    source.load(x, channel + c, planes);
    for (int64_t kh = 0; kh < s.kernelHeight; ++kh)
      for (int64_t kw = 0; kw < s.kernelWidth; ++kw, ++p) {
        int64_t first = p / slice * slice, rows = std::min(slice, taps - first);
        source.row(kh, kw, line);
        std::fill(line + columns, line + padded, T(0));
        T *to = panels + first * padded + (p - first) * width;
        for (int64_t j = 0; j < padded; j += width)
          copyRun(to + j * rows, line + j, width);
      }
  }
  return panels;
}

/// Copies a block of sums to the images, with the bias, rounding once.
template <class S>
void storeBlock(const ConvShape &s, const ColumnBlock &b, int64_t channel, int64_t channels, const GemmAcc<S> *sums,
                const S *bias, S *y) {
  using T = GemmAcc<S>;
  int64_t length = b.end - b.begin;
  for (int64_t o = 0; o < channels; ++o) {
    T add = bias ? T(bias[channel + o]) : T(0);
    for (int64_t e = 0; e < b.images; ++e) {
      S *to = y + ((b.image + e) * s.outChannels + channel + o) * s.outPlane() + b.begin;
      const T *from = sums + o * b.columns() + e * length;
      if (bias)
        for (int64_t i = 0; i < length; ++i)
          to[i] = S(T(from[i] + add));
      else
        std::copy(from, from + length, to);
    }
  }
}

/// Output channels [first, first + count) of group g for one block of columns.
template <class S>
void forwardBlock(const ConvShape &s, const ColumnBlock &b, int64_t g, int64_t first, int64_t count, const S *x,
                  const S *w, const S *bias, S *y) {
  using T = GemmAcc<S>;
  const auto &code = coreCode<S>();
  int64_t taps = s.taps(), columns = b.columns(), channel = g * s.outPerGroup() + first;
  CoreArgs<S, T> core{};
  core.m = count, core.n = columns, core.k = taps;
  core.a = w + channel * taps, core.aRow = taps, core.aCol = 1;
  core.alpha = 1, core.beta = 0;
  bool direct = std::is_same_v<S, T> && b.images == 1;
  bool pointwise = direct && s.kernelHeight == 1 && s.kernelWidth == 1 && s.strideHeight == 1 && s.strideWidth == 1 &&
                   s.padTop == 0 && s.padLeft == 0 && s.outPlane() == s.inPlane();
  if (pointwise) {
    core.b = x + (b.image * s.inChannels + g * s.inPerGroup()) * s.inPlane() + b.begin;
    core.bRow = s.inPlane(), core.bCol = 1;
  } else {
    core.packedB = makePanels<S>(s, b, g * s.inPerGroup(), x), core.packedN = columns;
  }
  core.cCol = 1;
  if constexpr (std::is_same_v<S, T>)
    if (direct) {
      core.c = y + (b.image * s.outChannels + channel) * s.outPlane() + b.begin, core.cRow = s.outPlane();
      code.tiles(core);
      for (int64_t o = 0; bias && o < count; ++o)
        for (int64_t i = 0; i < columns; ++i)
          core.c[o * core.cRow + i] = T(core.c[o * core.cRow + i] + bias[channel + o]);
      return;
    }
  core.c = static_cast<T *>(scratch(kScratchSums, count * columns * sizeof(T))), core.cRow = columns;
  code.tiles(core);
  storeBlock<S>(s, b, channel, count, core.c, bias, y);
}

template <class S> void forward(const ConvShape &s, const S *x, const S *w, const S *bias, S *y) {
  using T = GemmAcc<S>;
  const auto &code = coreCode<S>();
  int64_t taps = s.taps(), outputs = s.outPerGroup();
  if (taps == 0) {
    for (int64_t i = 0, total = s.batch * s.outChannels; i < total; ++i)
      std::fill_n(y + i * s.outPlane(), s.outPlane(), bias ? bias[i % s.outChannels] : S(T(0)));
    return;
  }
  if (hasFewChannels(s))
    return fewForward<S>(s, x, w, bias, y);
  int64_t unit = code.panelCols;
  int64_t wanted = std::clamp<int64_t>(blockRows(taps, sizeof(T)) / unit * unit, 2 * unit, 1024);
  ColumnCut cut = cutColumns(s, wanted, unit);
  int64_t blockWork = std::max<int64_t>(1, cut.images * cut.columns * taps * outputs);
  // Few blocks: the output channels are cut too, and each part makes its own columns.
  int64_t threads = parallelShares(std::max<int64_t>(1, cut.count * s.groups * blockWork / kTaskWork), 1);
  int64_t parts = std::clamp<int64_t>(threads / (cut.count * s.groups), 1, ceilDiv(outputs, code.panelRows));
  int64_t channels = ceilDiv(outputs, parts);
  parts = ceilDiv(outputs, channels);
  parallelFor(cut.count * s.groups * parts, std::max<int64_t>(1, kTaskWork * parts / blockWork),
              [&](int64_t begin, int64_t end) {
                for (int64_t t = begin; t < end; ++t) {
                  int64_t first = t % parts * channels, g = t / parts % s.groups;
                  forwardBlock<S>(s, cut.block(s, t / parts / s.groups), g, first, std::min(channels, outputs - first),
                                  x, w, bias, y);
                }
              });
}

} // namespace

void setConvOutputSize(ConvShape &s) {
  auto size = [](int64_t in, int64_t pad, int64_t dilation, int64_t kernel, int64_t stride) {
    int64_t span = in + 2 * pad - dilation * (kernel - 1) - 1;
    return span < 0 ? 0 : span / stride + 1;
  };
  s.outHeight = size(s.height, s.padTop, s.dilationHeight, s.kernelHeight, s.strideHeight);
  s.outWidth = size(s.width, s.padLeft, s.dilationWidth, s.kernelWidth, s.strideWidth);
}

template <class T> void convForward(const ConvShape &s, const T *x, const T *w, const T *bias, T *y) {
  using S = StorageOf<T>;
  if (s.batch <= 0 || s.outChannels <= 0 || s.outPlane() <= 0)
    return;
  forward<S>(s, reinterpret_cast<const S *>(x), reinterpret_cast<const S *>(w), reinterpret_cast<const S *>(bias),
             reinterpret_cast<S *>(y));
}

#define DLC_X(T) template void convForward(const ConvShape &, const T *, const T *, const T *, T *);
DLC_GEMM_TYPES(DLC_X)
#undef DLC_X

} // namespace dlc::kernels
