// Layer normalisation and its gradient. The weight gradients are sums over rows in pieces of fixed length.
#include "kernels/Kernels.h"
#include "kernels/nn/Rows.h"

namespace dlc::kernels {
namespace {

constexpr int64_t kPieceRows = 64;

int64_t widthOf(Ints shape) {
  int64_t n = 1;
  for (int64_t s : shape)
    n *= s;
  return n;
}

/// An optional operand as a row of T, or null.
template <class T> struct OptionalRow {
  OptionalRow(const Tensor *t) {
    if (t)
      held = asContiguous(*t, dtypeOfType<T>);
  }
  const T *data() const { return held.defined() ? held.dataAs<T>() : nullptr; }
  Tensor held;
};

template <class T> void normRow(const T *x, T *y, int64_t n, const T *w, const T *bias, T eps, T &mean, T &rstd) {
  T mu = sumRowOf(x, n) / static_cast<T>(n);
  T var = sumOf<T>(n, [&](int64_t i) { return (x[i] - mu) * (x[i] - mu); }) / static_cast<T>(n);
  T r = T(1) / std::sqrt(var + eps);
  mean = mu;
  rstd = r;
  if (w && bias)
    for (int64_t i = 0; i < n; ++i)
      y[i] = (x[i] - mu) * r * w[i] + bias[i];
  else if (w)
    for (int64_t i = 0; i < n; ++i)
      y[i] = (x[i] - mu) * r * w[i];
  else if (bias)
    for (int64_t i = 0; i < n; ++i)
      y[i] = (x[i] - mu) * r + bias[i];
  else
    for (int64_t i = 0; i < n; ++i)
      y[i] = (x[i] - mu) * r;
}

template <class T> void gradRow(const T *g, const T *x, T *dx, int64_t n, const T *w, T mean, T rstd) {
  auto gw = [&](int64_t i) { return w ? g[i] * w[i] : g[i]; };
  T count = static_cast<T>(n);
  T a = w ? sumOf<T>(n, [&](int64_t i) { return g[i] * w[i]; }) : sumRowOf(g, n);
  T c = w ? sumOf<T>(n, [&](int64_t i) { return g[i] * w[i] * ((x[i] - mean) * rstd); })
          : sumOf<T>(n, [&](int64_t i) { return g[i] * ((x[i] - mean) * rstd); });
  a /= count;
  c /= count;
  if (w)
    for (int64_t i = 0; i < n; ++i)
      dx[i] = rstd * (gw(i) - a - (x[i] - mean) * rstd * c);
  else
    for (int64_t i = 0; i < n; ++i)
      dx[i] = rstd * (g[i] - a - (x[i] - mean) * rstd * c);
}

} // namespace

void layerNormKernel(const LayerNormArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(args.self.dtype());
  Tensor x = asContiguous(args.self, type);
  ContiguousOut y(outs[0], type), mean(outs[1], type), rstd(outs[2], type);
  int64_t n = widthOf(args.normalized_shape), rows = n ? x.numel() / n : mean.get().numel();
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    OptionalRow<T> w(args.weight), bias(args.bias);
    const T *in = x.dataAs<T>();
    parallelFor(rows, rowGrain(n, 2), [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r)
        normRow(in + r * n, y.data<T>() + r * n, n, w.data(), bias.data(), static_cast<T>(args.eps), mean.data<T>()[r],
                rstd.data<T>()[r]);
    });
  });
  y.commit();
  mean.commit();
  rstd.commit();
}

void layerNormBackwardKernel(const LayerNormBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(args.self.dtype());
  Tensor grad = asContiguous(args.grad, type), x = asContiguous(args.self, type), mean = asContiguous(args.mean, type),
         rstd = asContiguous(args.rstd, type);
  ContiguousOut dx(outs[0], type), dw(outs[1], type), db(outs[2], type);
  int64_t n = widthOf(args.normalized_shape), rows = n ? x.numel() / n : 0,
          pieces = std::max<int64_t>(1, (rows + kPieceRows - 1) / kPieceRows);
  bool needsWeight = args.needs_weight && outs[1].numel() == n, needsBias = args.needs_bias && outs[2].numel() == n;
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    OptionalRow<T> w(args.weight);
    const T *g = grad.dataAs<T>(), *in = x.dataAs<T>(), *mu = mean.dataAs<T>(), *rs = rstd.dataAs<T>();
    std::vector<T> partial(static_cast<size_t>(2 * pieces * n), T(0));
    parallelFor(pieces, std::max<int64_t>(1, rowGrain(n, 8) / kPieceRows), [&](int64_t b, int64_t e) {
      for (int64_t piece = b; piece < e; ++piece) {
        T *pw = partial.data() + 2 * piece * n, *pb = pw + n;
        for (int64_t r = piece * kPieceRows, last = std::min(rows, r + kPieceRows); r < last; ++r) {
          const T *gr = g + r * n, *xr = in + r * n;
          T m = mu[r], s = rs[r];
          gradRow(gr, xr, dx.data<T>() + r * n, n, w.data(), m, s);
          if (needsWeight)
            for (int64_t i = 0; i < n; ++i)
              pw[i] += gr[i] * ((xr[i] - m) * s);
          if (needsBias)
            for (int64_t i = 0; i < n; ++i)
              pb[i] += gr[i];
        }
      }
    });
    auto combine = [&](T *to, int64_t at) {
      std::fill(to, to + n, T(0));
      for (int64_t piece = 0; piece < pieces; ++piece)
        for (int64_t i = 0; i < n; ++i)
          to[i] += partial[static_cast<size_t>((2 * piece + at) * n + i)];
    };
    if (needsWeight)
      combine(dw.data<T>(), 0);
    if (needsBias)
      combine(db.data<T>(), 1);
  });
  dx.commit();
  dw.commit();
  db.commit();
}

} // namespace dlc::kernels
