// Softmax, log_softmax and their gradients, a row at a time: three passes over memory that stays in the first cache.
#include "kernels/Kernels.h"
#include "kernels/nn/Rows.h"

namespace dlc::kernels {
namespace {

template <class T> void softmaxRow(const T *x, T *y, int64_t n) {
  T top = maxOfRow(x, n);
  scalar::NativeBuilder b;
  T total = sumOfTiles<T>(n, [&](T *tile, int64_t at, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      tile[i] = scalar::exp_(b, x[at + i] - top);
    std::copy(tile, tile + count, y + at);
  });
  for (int64_t i = 0; i < n; ++i)
    y[i] = y[i] / total;
}

template <class T> void logSoftmaxRow(const T *x, T *y, int64_t n) {
  T top = maxOfRow(x, n);
  scalar::NativeBuilder b;
  T total = sumOf<T>(n, [&](int64_t i) { return scalar::exp_(b, x[i] - top); });
  T logTotal = scalar::log_(b, total);
  for (int64_t i = 0; i < n; ++i)
    y[i] = (x[i] - top) - logTotal;
}

template <class T> void softmaxBackwardRow(const T *g, const T *out, T *dx, int64_t n) {
  T dot = sumOf<T>(n, [&](int64_t i) { return g[i] * out[i]; });
  for (int64_t i = 0; i < n; ++i)
    dx[i] = (g[i] - dot) * out[i];
}

template <class T> void logSoftmaxBackwardRow(const T *g, const T *out, T *dx, int64_t n) {
  T total = sumRowOf(g, n);
  scalar::NativeBuilder b;
  for (int64_t i = 0; i < n; ++i)
    dx[i] = g[i] - scalar::exp_(b, out[i]) * total;
}

/// Applies f(inputs of a row, output row, n) along `dim` of up to two inputs of one shape. Rows that are not contiguous
/// are gathered first.
template <class F> void alongDim(const Tensor &first, const Tensor *second, int64_t dim, const Tensor &out, F f) {
  DType type = computeType(out.dtype());
  // An explicit dtype is applied to the input, so it passes through the result's precision.
  Tensor a = asContiguous(asContiguous(first, out.dtype()), type), b2;
  if (second)
    b2 = asContiguous(*second, type);
  ContiguousOut result(out, type);
  DimSplit s(a.sizes(), dim);
  if (a.numel() == 0)
    return;
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x = a.dataAs<T>(), *z = second ? b2.dataAs<T>() : nullptr;
    T *y = result.template data<T>();
    int64_t step = s.n * s.inner;
    if (s.inner == 1) {
      parallelFor(s.outer, rowGrain(s.n), [&](int64_t b, int64_t e) {
        for (int64_t o = b; o < e; ++o)
          f(x + o * step, z ? z + o * step : nullptr, y + o * step, s.n);
      });
      return;
    }
    parallelFor(s.outer * s.inner, rowGrain(s.n, 8), [&](int64_t b, int64_t e) {
      std::vector<T> rows(static_cast<size_t>(3 * s.n));
      T *p = rows.data(), *q = p + s.n, *r = q + s.n;
      for (int64_t row = b; row < e; ++row) {
        int64_t base = row / s.inner * step + row % s.inner;
        for (int64_t i = 0; i < s.n; ++i) {
          p[i] = x[base + i * s.inner];
          if (z)
            q[i] = z[base + i * s.inner];
        }
        f(static_cast<const T *>(p), static_cast<const T *>(q), r, s.n);
        for (int64_t i = 0; i < s.n; ++i)
          y[base + i * s.inner] = r[i];
      }
    });
  });
  result.commit();
}

} // namespace

void softmaxKernel(const SoftmaxArgs<Tensor> &args, Span<Tensor> outs) {
  alongDim(args.self, nullptr, args.dim, outs[0], [](auto *x, auto *, auto *y, int64_t n) { softmaxRow(x, y, n); });
}
void logSoftmaxKernel(const LogSoftmaxArgs<Tensor> &args, Span<Tensor> outs) {
  alongDim(args.self, nullptr, args.dim, outs[0], [](auto *x, auto *, auto *y, int64_t n) { logSoftmaxRow(x, y, n); });
}
void softmaxBackwardKernel(const SoftmaxBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  alongDim(args.grad, &args.output, args.dim, outs[0],
           [](auto *g, auto *out, auto *dx, int64_t n) { softmaxBackwardRow(g, out, dx, n); });
}
void logSoftmaxBackwardKernel(const LogSoftmaxBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  alongDim(args.grad, &args.output, args.dim, outs[0],
           [](auto *g, auto *out, auto *dx, int64_t n) { logSoftmaxBackwardRow(g, out, dx, n); });
}

} // namespace dlc::kernels
