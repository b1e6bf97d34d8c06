// Pooling of channels-last images: a few vectors of channels at a time, in registers over a window.
#include "kernels/Kernels.h"
#include "kernels/common/ChannelsLast.h"
#include "kernels/common/Types.h"
#include "kernels/contraction/PoolAxis.h"
#include "runtime/core/ThreadPool.h"
#include <cstring>
#include <limits>

namespace dlc::kernels {
namespace {

constexpr int kLanes = 8;
typedef float Vec __attribute__((ext_vector_type(kLanes)));
Vec load(const float *p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float *p, Vec v) { std::memcpy(p, &v, sizeof v); }

/// N vectors of channels of one output pixel; `x` is the first position of the window.
template <int N>
void maxPixel(const float *x, int64_t rows, int64_t rowStep, int64_t columns, int64_t columnStep, float *y) {
  Vec best[N];
  for (Vec &v : best)
    v = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < rows; ++i, x += rowStep) {
    const float *p = x;
    for (int64_t j = 0; j < columns; ++j, p += columnStep)
#pragma unroll
      for (int n = 0; n < N; ++n) {
        Vec v = load(p + n * kLanes);
        best[n] = ((v > best[n]) | (v != v)) ? v : best[n];
      }
  }
  for (int n = 0; n < N; ++n)
    store(y + n * kLanes, best[n]);
}

void maxPool(const Tensor &x, const Axis &h, const Axis &w, const Tensor &y) {
  int64_t channels = x.size(1), work = h.kernel * w.kernel * w.out * channels;
  const float *in = x.dataAs<float>();
  float *out = y.dataAs<float>();
  parallelFor(x.size(0) * h.out, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, work)), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      auto rows = h.window(r % h.out);
      const float *top = in + (r / h.out * h.in + rows.from) * w.in * channels;
      for (int64_t ow = 0; ow < w.out; ++ow) {
        auto cols = w.window(ow);
        const float *from = top + cols.from * channels;
        float *to = out + (r * w.out + ow) * channels;
        int64_t rowStep = h.dilation * w.in * channels, columnStep = w.dilation * channels, c = 0;
        for (; c + 4 * kLanes <= channels; c += 4 * kLanes)
          maxPixel<4>(from + c, rows.count, rowStep, cols.count, columnStep, to + c);
        for (; c + kLanes <= channels; c += kLanes)
          maxPixel<1>(from + c, rows.count, rowStep, cols.count, columnStep, to + c);
        for (; c < channels; ++c) {
          float best = -std::numeric_limits<float>::infinity();
          for (int64_t i = 0; i < rows.count; ++i)
            for (int64_t j = 0; j < cols.count; ++j) {
              float v = from[c + i * rowStep + j * columnStep];
              best = v > best || v != v ? v : best;
            }
          to[c] = best;
        }
      }
    }
  });
}

/// Rows [begin, end) of output pixels with the positions of the largest elements within their plane.
void maxRowsWithIndices(const Tensor &x, const Axis &h, const Axis &w, const Tensor &y, const Tensor &index,
                        int64_t begin, int64_t end) {
  constexpr int kBlock = 32;
  int64_t channels = x.size(1);
  for (int64_t r = begin; r < end; ++r)
    for (int64_t ow = 0; ow < w.out; ++ow) {
      auto rows = h.window(r % h.out), cols = w.window(ow);
      const float *image = x.dataAs<float>() + r / h.out * h.in * w.in * channels;
      int64_t out = (r * w.out + ow) * channels;
      for (int64_t c = 0; c < channels; c += kBlock) {
        int n = static_cast<int>(std::min<int64_t>(kBlock, channels - c));
        float best[kBlock];
        int32_t where[kBlock];
        std::fill_n(best, kBlock, -std::numeric_limits<float>::infinity());
        std::fill_n(where, kBlock, static_cast<int32_t>(rows.from * w.in + cols.from));
        for (int64_t i = 0; i < rows.count; ++i)
          for (int64_t j = 0; j < cols.count; ++j) {
            auto at = static_cast<int32_t>((rows.from + i * h.dilation) * w.in + cols.from + j * w.dilation);
            const float *p = image + at * channels + c;
            for (int k = 0; k < n; ++k) {
              bool better = (p[k] > best[k]) | (p[k] != p[k]);
              best[k] = better ? p[k] : best[k];
              where[k] = better ? at : where[k];
            }
          }
        std::copy_n(best, n, y.dataAs<float>() + out + c);
        std::copy_n(where, n, index.dataAs<int64_t>() + out + c);
      }
    }
}

} // namespace

bool maxPoolLast(const MaxPool2dArgs<Tensor> &args, Span<Tensor> outs) {
  const Tensor &x = args.input;
  if (x.dtype() != DType::F32 || !isChannelsLast(x) || !isChannelsLast(outs[0]) || !isChannelsLast(outs[1]) ||
      x.size(1) < 4 || x.size(2) * x.size(3) > INT32_MAX)
    return false;
  Axis h = axisOf(x, outs[0], 0, args.kernel_size, args.stride, args.padding, at(args.dilation, 0));
  Axis w = axisOf(x, outs[0], 1, args.kernel_size, args.stride, args.padding, at(args.dilation, 1));
  int64_t work = h.kernel * w.kernel * w.out * x.size(1);
  parallelFor(x.size(0) * h.out, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, work)),
              [&](int64_t b, int64_t e) { maxRowsWithIndices(x, h, w, outs[0], outs[1], b, e); });
  return true;
}

bool maxPoolLastBackward(const MaxPool2dBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  const Tensor &g = args.grad, &dx = outs[0];
  if (dx.dtype() != DType::F32 || g.dtype() != DType::F32 || !isChannelsLast(g) || !isChannelsLast(args.indices) ||
      !isChannelsLast(dx) || dx.size(1) < 4)
    return false;
  int64_t channels = dx.size(1), from = g.size(2) * g.size(3) * channels, to = dx.size(2) * dx.size(3) * channels;
  parallelFor(dx.size(0), std::max<int64_t>(1, 8192 / std::max<int64_t>(1, from)), [&](int64_t b, int64_t e) {
    for (int64_t n = b; n < e; ++n) {
      float *d = dx.dataAs<float>() + n * to;
      const float *grad = g.dataAs<float>() + n * from;
      const int64_t *index = args.indices.dataAs<int64_t>() + n * from;
      std::fill_n(d, to, 0.0f);
      for (int64_t i = 0; i < from; i += channels)
        for (int64_t c = 0; c < channels; ++c)
          d[index[i + c] * channels + c] += grad[i + c];
    }
  });
  return true;
}

void maxPool2dValuesKernel(const MaxPool2dValuesArgs<Tensor> &args, Span<Tensor> outs) {
  if (args.input.dtype() == DType::F32 && isChannelsLast(args.input) && isChannelsLast(outs[0])) {
    Axis h = axisOf(args.input, outs[0], 0, args.kernel_size, args.stride, args.padding, at(args.dilation, 0));
    Axis w = axisOf(args.input, outs[0], 1, args.kernel_size, args.stride, args.padding, at(args.dilation, 1));
    return maxPool(args.input, h, w, outs[0]);
  }
  Tensor both[2] = {outs[0], Tensor::empty(outs[0].sizes(), DType::I64)};
  maxPool2dKernel({args.input, args.kernel_size, args.stride, args.padding, args.dilation, args.ceil_mode},
                  Span<Tensor>(both, 2));
}

} // namespace dlc::kernels
