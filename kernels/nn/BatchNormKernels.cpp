// Batch normalisation over dimension 1 and its gradient: one task a channel.
#include "kernels/Kernels.h"
#include "kernels/nn/Rows.h"

namespace dlc::kernels {
namespace {

/// A [N, C, ...] tensor as N x C rows of `area` elements.
struct Channels {
  explicit Channels(const Tensor &t) : n(t.size(0)), c(t.size(1)), area(1) {
    for (int64_t d = 2; d < t.dim(); ++d)
      area *= t.size(d);
  }
  int64_t n, c, area;
  int64_t count() const { return n * area; }
  int64_t at(int64_t i, int64_t channel) const { return (i * c + channel) * area; }
};

template <class T> const T *rowOf(Tensor &held, const Tensor *t) {
  if (!t)
    return nullptr;
  held = asContiguous(*t, dtypeOfType<T>);
  return held.dataAs<T>();
}

/// Sum over a channel of f(element offset): the rows of each sample in the order of Lanes.
template <class T, class F> T sumChannel(const Channels &s, int64_t channel, F f) {
  Lanes<T, SumCombine> lanes;
  constexpr int64_t kTile = 512;
  T tile[kTile];
  int64_t held = 0; // short rows share a tile
  auto flush = [&] {
    lanes.add(tile, held);
    held = 0;
  };
  for (int64_t i = 0; i < s.n; ++i)
    for (int64_t at = 0; at < s.area;) {
      int64_t count = std::min(kTile - held, s.area - at), base = s.at(i, channel) + at;
      for (int64_t j = 0; j < count; ++j)
        tile[held + j] = f(base + j);
      held += count;
      at += count;
      if (held == kTile)
        flush();
    }
  flush();
  return lanes.result();
}

template <class F> void forEachChannel(const Channels &s, F f) {
  parallelFor(s.c, rowGrain(s.count(), 4), [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c)
      f(c);
  });
}

void updateRunning(const Tensor *running, const Tensor &value, double momentum) {
  if (!running)
    return;
  Tensor next = asContiguous(*running, DType::F64), now = asContiguous(value, DType::F64);
  bool same = next.is(*running);
  Tensor result = same ? Tensor::empty(next.sizes(), DType::F64) : next;
  for (int64_t i = 0; i < next.numel(); ++i)
    result.dataAs<double>()[i] = (1 - momentum) * next.dataAs<double>()[i] + momentum * now.dataAs<double>()[i];
  copyInto(*running, result);
}

} // namespace

void batchNormKernel(const BatchNormArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(args.input.dtype());
  Tensor x = asContiguous(args.input, type), unbiased;
  Channels s(x);
  ContiguousOut y(outs[0], type), mean(outs[1], type), rstd(outs[2], type);
  unbiased = Tensor::empty({s.c}, type);
  bool batch = args.training || !args.running_mean || !args.running_var;
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor heldW, heldB, heldM, heldV;
    const T *w = rowOf<T>(heldW, args.weight), *bias = rowOf<T>(heldB, args.bias), *in = x.dataAs<T>();
    const T *runMean = batch ? nullptr : rowOf<T>(heldM, args.running_mean),
            *runVar = batch ? nullptr : rowOf<T>(heldV, args.running_var);
    T count = static_cast<T>(s.count()), eps = static_cast<T>(args.eps);
    forEachChannel(s, [&](int64_t c) {
      T mu, var;
      if (batch) {
        mu = sumChannel<T>(s, c, [&](int64_t i) { return in[i]; }) / count;
        T squares = sumChannel<T>(s, c, [&](int64_t i) { return (in[i] - mu) * (in[i] - mu); });
        var = squares / count;
        unbiased.dataAs<T>()[c] = squares / (count - T(1));
      } else {
        mu = runMean[c];
        var = runVar[c];
      }
      T r = T(1) / std::sqrt(var + eps);
      mean.data<T>()[c] = mu;
      rstd.data<T>()[c] = r;
      T weight = w ? w[c] : T(1), shift = bias ? bias[c] : T(0);
      T *out = y.data<T>();
      for (int64_t i = 0; i < s.n; ++i)
        for (int64_t j = s.at(i, c), last = j + s.area; j < last; ++j)
          out[j] = (in[j] - mu) * r * weight + shift;
    });
  });
  if (args.training) {
    updateRunning(args.running_mean, mean.get(), args.momentum.toDouble());
    updateRunning(args.running_var, unbiased, args.momentum.toDouble());
  }
  y.commit();
  mean.commit();
  rstd.commit();
}

void batchNormBackwardKernel(const BatchNormBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(args.input.dtype());
  Tensor x = asContiguous(args.input, type), grad = asContiguous(args.grad, type), mean = asContiguous(args.mean, type),
         rstd = asContiguous(args.rstd, type);
  Channels s(x);
  ContiguousOut dx(outs[0], type), dw(outs[1], type), db(outs[2], type);
  bool needsWeight = args.needs_weight && outs[1].numel() == s.c, needsBias = args.needs_bias && outs[2].numel() == s.c;
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor heldW;
    const T *w = rowOf<T>(heldW, args.weight), *in = x.dataAs<T>(), *g = grad.dataAs<T>(), *mu = mean.dataAs<T>(),
            *rs = rstd.dataAs<T>();
    T count = static_cast<T>(s.count());
    forEachChannel(s, [&](int64_t c) {
      T m = mu[c], r = rs[c], weight = w ? w[c] : T(1);
      T sumG = sumChannel<T>(s, c, [&](int64_t i) { return g[i]; });
      T sumGx = sumChannel<T>(s, c, [&](int64_t i) { return g[i] * ((in[i] - m) * r); });
      if (needsWeight)
        dw.data<T>()[c] = sumGx;
      if (needsBias)
        db.data<T>()[c] = sumG;
      T scale = weight * r, a = args.training ? sumG / count : T(0), k = args.training ? sumGx / count : T(0);
      T *out = dx.data<T>();
      for (int64_t i = 0; i < s.n; ++i)
        for (int64_t j = s.at(i, c), last = j + s.area; j < last; ++j)
          out[j] = scale * (g[j] - a - (in[j] - m) * r * k);
    });
  });
  dx.commit();
  dw.commit();
  db.commit();
}

} // namespace dlc::kernels
