// The gradients of a convolution. For the input: a product gives a block of the column matrix's gradient, which is
// added back to where the columns came from. For the weight: a product of the output's gradient with the columns.
#include "kernels/lib/Conv.h"
#include "kernels/lib/ConvColumns.h"
#include "runtime/core/ThreadPool.h"
#include <vector>

namespace dlc::kernels {
namespace {

using namespace detail;

/// Channels that one task takes: enough rows of columns for an efficient product. Depends on the shape alone, as it
/// decides the order of sums.
int64_t channelsPerTask(const ConvShape &s) {
  constexpr int64_t kRows = 256;
  return std::clamp<int64_t>(kRows / std::max<int64_t>(1, s.kernelHeight * s.kernelWidth), 1,
                             std::max<int64_t>(1, s.inPerGroup()));
}

/// Adds a row of the column matrix's gradient to a padded plane.
template <class T>
void addColumnRow(const ConvShape &s, const PlaneLayout &l, int64_t kh, int64_t kw, int64_t begin, int64_t end,
                  const T *__restrict in, T *__restrict plane) {
  const int64_t step = s.strideHeight * l.rowSize;
  plane += l.at(s, 0, kh, kw);
  forEachRun(s, begin, end, [&](int64_t oh, int64_t ow, int64_t length) {
    T *to = plane + oh * step + ow;
    int64_t i = 0;
    for (; i + kRunLanes<T> <= length; i += kRunLanes<T>)
#pragma unroll
      for (int lane = 0; lane < kRunLanes<T>; ++lane)
        to[i + lane] = T(to[i + lane] + in[i + lane]);
    for (; i < length; ++i)
      to[i] = T(to[i] + in[i]);
    in += length;
  });
}

/// The input channels [first, first + count) of group g of one image.
template <class S>
void inputPart(const ConvShape &s, int64_t image, int64_t g, int64_t first, int64_t count, const S *dy, const S *w,
               S *dx) {
  using T = GemmAcc<S>;
  const PlaneLayout layout(s);
  int64_t area = s.kernelHeight * s.kernelWidth, rows = count * area, channel = g * s.inPerGroup() + first;
  int64_t plane = PlaneLayout::rows(s, s.outHeight) * layout.rowSize;
  T *sums = static_cast<T *>(scratch(kScratchRows, count * plane * sizeof(T)));
  std::fill_n(sums, count * plane, T(0));
  int64_t step = std::clamp<int64_t>(blockRows(rows, sizeof(T)) / 64 * 64, 64, 1024);
  T *columns = static_cast<T *>(scratch(kScratchColumns, rows * std::min(step, s.outPlane()) * sizeof(T)));
  for (int64_t begin = 0; begin < s.outPlane(); begin += step) {
    int64_t end = std::min(begin + step, s.outPlane());
    CoreArgs<S, T> core{};
    core.m = rows, core.n = end - begin, core.k = s.outPerGroup();
    core.a = w + g * s.outPerGroup() * s.taps() + first * area, core.aRow = 1, core.aCol = s.taps();
    core.b = dy + (image * s.outChannels + g * s.outPerGroup()) * s.outPlane() + begin;
    core.bRow = s.outPlane(), core.bCol = 1;
    core.c = columns, core.cRow = core.n, core.cCol = 1;
    core.alpha = 1, core.beta = 0;
    coreCode<S>().tiles(core);
    for (int64_t p = 0; p < rows; ++p)
      addColumnRow(s, layout, p % area / s.kernelWidth, p % s.kernelWidth, begin, end, columns + p * core.n,
                   sums + p / area * plane);
  }
  for (int64_t c = 0; c < count; ++c)
    unpadPlane(s, layout, sums + c * plane, dx + (image * s.inChannels + channel + c) * s.inPlane());
}

template <class S> void backwardInput(const ConvShape &s, const S *dy, const S *w, S *dx) {
  if (hasFewChannels(s))
    return fewBackwardInput<S>(s, dy, w, dx);
  int64_t count = channelsPerTask(s), perGroup = ceilDiv(s.inPerGroup(), count);
  parallelFor(s.batch * s.groups * perGroup, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t first = t % perGroup * count;
      inputPart<S>(s, t / perGroup / s.groups, t / perGroup % s.groups, first, std::min(count, s.inPerGroup() - first),
                   dy, w, dx);
    }
  });
}

/// Which part of the weight's gradient: channels [first, first + count) of group g, images [image, imageEnd).
struct WeightPart {
  int64_t g, first, count, image, imageEnd;
};

/// The output's gradient of one group for a block of columns, contiguous in the type of the sums.
template <class S>
void gatherGradient(const ConvShape &s, const ColumnBlock &b, int64_t g, const S *dy, GemmAcc<S> *out) {
  int64_t length = b.end - b.begin;
  for (int64_t o = 0; o < s.outPerGroup(); ++o)
    for (int64_t e = 0; e < b.images; ++e) {
      const S *from = dy + ((b.image + e) * s.outChannels + g * s.outPerGroup() + o) * s.outPlane() + b.begin;
      out = std::copy(from, from + length, out);
    }
}

/// Sets the part of dw (which has rows of s.taps()).
template <class S>
void weightPart(const ConvShape &s, const WeightPart &part, const S *x, const S *dy, GemmAcc<S> *dw) {
  using T = GemmAcc<S>;
  int64_t area = s.kernelHeight * s.kernelWidth, rows = part.count * area;
  ConvShape images = s;
  images.batch = part.imageEnd - part.image;
  int64_t wanted = std::clamp<int64_t>(blockRows(rows, sizeof(T)) / 64 * 64, 64, 2 * kSliceRows);
  ColumnCut cut = cutColumns(images, wanted, 16);
  for (int64_t index = 0; index < cut.count; ++index) {
    ColumnBlock b = cut.block(images, index);
    b.image += part.image;
    ColumnRows<T> source(s, b);
    int64_t used = rows * b.columns() + kRunLanes<T>;
    T *columns = static_cast<T *>(scratch(kScratchColumns, used * sizeof(T) + source.bytes()));
    for (int64_t p = 0, c = 0; c < part.count; ++c) {
      source.load(x, part.g * s.inPerGroup() + part.first + c, columns + used);
      for (int64_t kh = 0; kh < s.kernelHeight; ++kh)
        for (int64_t kw = 0; kw < s.kernelWidth; ++kw, ++p)
          source.row(kh, kw, columns + p * b.columns());
    }
    T *gradient = static_cast<T *>(scratch(kScratchRows, s.outPerGroup() * b.columns() * sizeof(T)));
    gatherGradient<S>(s, b, part.g, dy, gradient);
    GemmArgs<T> product;
    product.m = s.outPerGroup(), product.n = rows, product.k = b.columns();
    product.a = gradient, product.aRow = b.columns();
    product.b = columns, product.bRow = 1, product.bCol = b.columns();
    product.c = dw + part.g * s.outPerGroup() * s.taps() + part.first * area, product.cRow = s.taps();
    product.beta = index == 0 ? 0 : 1;
    gemm(product);
  }
}

/// Parts of the batch whose gradients are summed apart, and then in order: only where the channels give too few tasks.
/// Depends on the shape alone.
int64_t imageChunks(const ConvShape &s, int64_t tasks, size_t bytes) {
  constexpr int64_t kTasks = 16, kWork = 300000, kMost = 8;
  constexpr int64_t kBytes = int64_t(16) << 20;
  int64_t work = s.batch * s.outPlane() * s.outChannels * s.taps() / kWork;
  int64_t chunks = std::min({kTasks / tasks, work, s.batch, kMost, kBytes / std::max<int64_t>(1, bytes)});
  return std::max<int64_t>(1, chunks);
}

template <class S> void backwardWeight(const ConvShape &s, const S *x, const S *dy, S *dw) {
  if (hasFewChannels(s))
    return fewBackwardWeight<S>(s, x, dy, dw);
  using T = GemmAcc<S>;
  int64_t size = s.outChannels * s.taps(), count = channelsPerTask(s), perGroup = ceilDiv(s.inPerGroup(), count);
  int64_t chunks = imageChunks(s, s.groups * perGroup, size * sizeof(T)), images = ceilDiv(s.batch, chunks);
  chunks = ceilDiv(s.batch, images);
  std::vector<T> partial;
  T *sums = nullptr;
  if constexpr (std::is_same_v<S, T>)
    sums = dw;
  if (!sums || chunks > 1) {
    partial.resize(size * chunks);
    sums = partial.data();
  }
  parallelFor(s.groups * perGroup * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t first = t % perGroup * count, chunk = t / perGroup / s.groups;
      weightPart<S>(s,
                    {t / perGroup % s.groups, first, std::min(count, s.inPerGroup() - first), chunk * images,
                     std::min(s.batch, (chunk + 1) * images)},
                    x, dy, sums + chunk * size);
    }
  });
  if (partial.empty())
    return;
  for (int64_t i = 0; i < size; ++i) {
    T sum = sums[i];
    for (int64_t c = 1; c < chunks; ++c)
      sum = T(sum + sums[c * size + i]);
    dw[i] = S(sum);
  }
}

} // namespace

template <class T> void convBackwardInput(const ConvShape &s, const T *dy, const T *w, T *dx) {
  using S = StorageOf<T>;
  int64_t size = s.batch * s.inChannels * s.inPlane();
  if (size <= 0)
    return;
  if (s.outChannels <= 0 || s.outPlane() <= 0 || s.taps() <= 0) {
    std::fill_n(dx, size, T());
    return;
  }
  backwardInput<S>(s, reinterpret_cast<const S *>(dy), reinterpret_cast<const S *>(w), reinterpret_cast<S *>(dx));
}

template <class T> void convBackwardWeight(const ConvShape &s, const T *x, const T *dy, T *dw) {
  using S = StorageOf<T>;
  int64_t size = s.outChannels * s.taps();
  if (size <= 0)
    return;
  if (s.batch <= 0 || s.outPlane() <= 0) {
    std::fill_n(dw, size, T());
    return;
  }
  backwardWeight<S>(s, reinterpret_cast<const S *>(x), reinterpret_cast<const S *>(dy), reinterpret_cast<S *>(dw));
}

#define DLC_X(T)                                                                                                       \
  template void convBackwardInput(const ConvShape &, const T *, const T *, T *);                                       \
  template void convBackwardWeight(const ConvShape &, const T *, const T *, T *);
DLC_GEMM_TYPES(DLC_X)
#undef DLC_X

} // namespace dlc::kernels
