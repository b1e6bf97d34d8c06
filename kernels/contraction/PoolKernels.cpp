// Pooling over the last two dimensions and its gradients, a plane at a time. Windows are clipped to the plane.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "kernels/contraction/PoolAxis.h"
#include "kernels/reduce/Reduce.h"
#include <limits>

namespace dlc::kernels {
namespace {

/// Calls f(index of the plane) for every plane of `t`, in parallel.
template <class F> void forEachPlane(const Tensor &t, int64_t cost, F f) {
  int64_t plane = t.size(-1) * t.size(-2), planes = plane ? t.numel() / plane : 0;
  parallelFor(planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, plane * cost)), [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p)
      f(p);
  });
}

template <class T> void maxPlane(const T *x, const Axis &h, const Axis &w, T *y, int64_t *index) {
  for (int64_t oh = 0; oh < h.out; ++oh) {
    auto rows = h.window(oh);
    for (int64_t ow = 0; ow < w.out; ++ow) {
      auto cols = w.window(ow);
      T best = -std::numeric_limits<T>::infinity();
      int64_t where = rows.from * w.in + cols.from;
      for (int64_t i = 0, pos = where; i < rows.count; ++i, pos += h.dilation * w.in)
        for (int64_t j = 0, p = pos; j < cols.count; ++j, p += w.dilation) {
          T v = x[p];
          bool better = v > best || v != v;
          best = better ? v : best;
          where = better ? p : where;
        }
      y[oh * w.out + ow] = best;
      index[oh * w.out + ow] = where;
    }
  }
}

/// The same where no window leaves the plane and columns are `Stride` apart: all outputs of a row at once.
template <int Stride, class T> void maxPlaneInside(const T *x, const Axis &h, const Axis &w, T *y, int64_t *index) {
  constexpr int64_t kColumns = 64;
  T best[kColumns];
  int32_t where[kColumns];
  for (int64_t oh = 0; oh < h.out; ++oh)
    for (int64_t first = 0; first < w.out; first += kColumns) {
      int64_t n = std::min(kColumns, w.out - first);
      for (int64_t i = 0; i < h.kernel; ++i)
        for (int64_t j = 0; j < w.kernel; ++j) {
          int64_t base = (oh * h.stride + i) * w.in + first * Stride + j;
          const T *row = x + base;
          bool start = i == 0 && j == 0;
          for (int64_t c = 0; c < n; ++c) {
            T v = row[c * Stride];
            bool better = start || v > best[c] || v != v;
            best[c] = better ? v : best[c];
            where[c] = better ? static_cast<int32_t>(base + c * Stride) : where[c];
          }
        }
      for (int64_t c = 0; c < n; ++c) {
        y[oh * w.out + first + c] = best[c];
        index[oh * w.out + first + c] = where[c];
      }
    }
}

template <class T> void maxOfPlane(const T *x, const Axis &h, const Axis &w, T *y, int64_t *index) {
  bool inside = h.dilation == 1 && w.dilation == 1 && h.in * w.in < INT32_MAX;
  for (const Axis *a : {&h, &w})
    inside &= a->pad == 0 && (a->out - 1) * a->stride + a->kernel <= a->in;
  if (inside && w.stride == 1)
    return maxPlaneInside<1>(x, h, w, y, index);
  if (inside && w.stride == 2)
    return maxPlaneInside<2>(x, h, w, y, index);
  maxPlane(x, h, w, y, index);
}

} // namespace

void maxPool2dKernel(const MaxPool2dArgs<Tensor> &args, Span<Tensor> outs) {
  if (maxPoolLast(args, outs))
    return;
  DType type = computeType(args.input.dtype());
  Tensor x = asContiguous(args.input, type);
  ContiguousOut y(outs[0], type), index(outs[1], DType::I64);
  Axis h = axisOf(x, outs[0], 0, args.kernel_size, args.stride, args.padding, at(args.dilation, 0));
  Axis w = axisOf(x, outs[0], 1, args.kernel_size, args.stride, args.padding, at(args.dilation, 1));
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachPlane(y.get(), h.kernel * w.kernel, [&](int64_t p) {
      int64_t to = p * h.out * w.out;
      maxOfPlane(x.dataAs<T>() + p * h.in * w.in, h, w, y.template data<T>() + to, index.data<int64_t>() + to);
    });
  });
  y.commit();
  index.commit();
}

void maxPool2dBackwardKernel(const MaxPool2dBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  if (maxPoolLastBackward(args, outs))
    return;
  DType type = computeType(outs[0].dtype());
  Tensor grad = asContiguous(args.grad, type), index = asContiguous(args.indices, DType::I64);
  ContiguousOut dx(outs[0], type);
  int64_t from = grad.size(-1) * grad.size(-2), to = outs[0].size(-1) * outs[0].size(-2);
  fillWith(dx.get(), 0);
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachPlane(grad, 2, [&](int64_t p) {
      const T *g = grad.dataAs<T>() + p * from;
      const int64_t *at = index.dataAs<int64_t>() + p * from;
      T *d = dx.template data<T>() + p * to;
      for (int64_t i = 0; i < from; ++i)
        d[at[i]] += g[i];
    });
  });
  dx.commit();
}

namespace {

/// By what the sum of a window is divided: the window's size with its padding, without, or a number.
int64_t divisorOf(const Axis &h, const Axis &w, int64_t oh, int64_t ow, bool countPad,
                  const std::optional<int64_t> &override) {
  if (override)
    return *override;
  if (!countPad)
    return h.window(oh).count * w.window(ow).count;
  auto padded = [](const Axis &a, int64_t o) {
    return std::min(o * a.stride - a.pad + a.kernel, a.in + a.pad) - (o * a.stride - a.pad);
  };
  return padded(h, oh) * padded(w, ow);
}

} // namespace

void avgPool2dKernel(const AvgPool2dArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(args.input.dtype());
  Tensor x = asContiguous(args.input, type);
  ContiguousOut y(outs[0], type);
  Axis h = axisOf(x, outs[0], 0, args.kernel_size, args.stride, args.padding, 1);
  Axis w = axisOf(x, outs[0], 1, args.kernel_size, args.stride, args.padding, 1);
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachPlane(y.get(), h.kernel * w.kernel, [&](int64_t p) {
      const T *in = x.dataAs<T>() + p * h.in * w.in;
      T *out = y.template data<T>() + p * h.out * w.out;
      for (int64_t oh = 0; oh < h.out; ++oh)
        for (int64_t ow = 0; ow < w.out; ++ow) {
          auto rows = h.window(oh), cols = w.window(ow);
          T sum = 0;
          for (int64_t i = 0; i < rows.count; ++i)
            for (int64_t j = 0; j < cols.count; ++j)
              sum += in[(rows.from + i) * w.in + cols.from + j];
          out[oh * w.out + ow] =
              sum / static_cast<T>(divisorOf(h, w, oh, ow, args.count_include_pad, args.divisor_override));
        }
    });
  });
  y.commit();
}

void avgPool2dBackwardKernel(const AvgPool2dBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(outs[0].dtype());
  Tensor grad = asContiguous(args.grad, type);
  ContiguousOut dx(outs[0], type);
  fillWith(dx.get(), 0);
  Axis h = axisOf(outs[0], grad, 0, args.kernel_size, args.stride, args.padding, 1);
  Axis w = axisOf(outs[0], grad, 1, args.kernel_size, args.stride, args.padding, 1);
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachPlane(grad, h.kernel * w.kernel, [&](int64_t p) {
      const T *g = grad.dataAs<T>() + p * h.out * w.out;
      T *d = dx.template data<T>() + p * h.in * w.in;
      for (int64_t oh = 0; oh < h.out; ++oh)
        for (int64_t ow = 0; ow < w.out; ++ow) {
          auto rows = h.window(oh), cols = w.window(ow);
          T each = g[oh * w.out + ow] /
                   static_cast<T>(divisorOf(h, w, oh, ow, args.count_include_pad, args.divisor_override));
          for (int64_t i = 0; i < rows.count; ++i)
            for (int64_t j = 0; j < cols.count; ++j)
              d[(rows.from + i) * w.in + cols.from + j] += each;
        }
    });
  });
  dx.commit();
}

namespace {

/// Adaptive pooling: output o averages positions [o * in / out, ceil((o + 1) * in / out)).
struct Bins {
  int64_t in, out;
  int64_t from(int64_t o) const { return o * in / out; }
  int64_t to(int64_t o) const { return ((o + 1) * in + out - 1) / out; }
};

template <class F> void forEachBin(const Bins &h, const Bins &w, F f) {
  for (int64_t oh = 0; oh < h.out; ++oh)
    for (int64_t ow = 0; ow < w.out; ++ow)
      f(oh * w.out + ow, h.from(oh), h.to(oh), w.from(ow), w.to(ow));
}

} // namespace

void adaptiveAvgPool2dKernel(const AdaptiveAvgPool2dArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(args.input.dtype());
  Tensor x = asContiguous(args.input, type);
  ContiguousOut y(outs[0], type);
  Bins h{x.size(-2), outs[0].size(-2)}, w{x.size(-1), outs[0].size(-1)};
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachPlane(y.get(), 4, [&](int64_t p) {
      const T *in = x.dataAs<T>() + p * h.in * w.in;
      T *out = y.template data<T>() + p * h.out * w.out;
      if (h.out == 1 && w.out == 1) {
        out[0] = sumRow(in, h.in * w.in) / static_cast<T>(h.in * w.in);
        return;
      }
      forEachBin(h, w, [&](int64_t o, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
        T sum = 0;
        for (int64_t i = h0; i < h1; ++i)
          for (int64_t j = w0; j < w1; ++j)
            sum += in[i * w.in + j];
        out[o] = sum / static_cast<T>((h1 - h0) * (w1 - w0));
      });
    });
  });
  y.commit();
}

void adaptiveAvgPool2dBackwardKernel(const AdaptiveAvgPool2dBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(outs[0].dtype());
  Tensor grad = asContiguous(args.grad, type);
  ContiguousOut dx(outs[0], type);
  fillWith(dx.get(), 0);
  Bins h{outs[0].size(-2), grad.size(-2)}, w{outs[0].size(-1), grad.size(-1)};
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachPlane(grad, 4, [&](int64_t p) {
      const T *g = grad.dataAs<T>() + p * h.out * w.out;
      T *d = dx.template data<T>() + p * h.in * w.in;
      forEachBin(h, w, [&](int64_t o, int64_t h0, int64_t h1, int64_t w0, int64_t w1) {
        T each = g[o] / static_cast<T>((h1 - h0) * (w1 - w0));
        for (int64_t i = h0; i < h1; ++i)
          for (int64_t j = w0; j < w1; ++j)
            d[i * w.in + j] += each;
      });
    });
  });
  dx.commit();
}

} // namespace dlc::kernels
