// Rules of softmax, normalisation, attention, dropout and losses. Half-precision inputs are computed in f32.
#pragma once
#include "runtime/rules/DecomposeBasic.h"
#include <cmath>

namespace dlc::rules {

inline DType computeType(DType t) { return t == DType::F16 || t == DType::BF16 ? DType::F32 : t; }

template <class V> V softmaxRule(const SoftmaxArgs<V> &a) {
  DType t = a.dtype.value_or(dtypeOf(a.self));
  V x = castTo(castTo(a.self, t), computeType(t));
  V e = exp(x - amax(x, dimList(a.dim), true));
  return castTo(e / sum(e, dimList(a.dim), true), t);
}
template <class V> V logSoftmaxRule(const LogSoftmaxArgs<V> &a) {
  DType t = a.dtype.value_or(dtypeOf(a.self));
  V x = castTo(castTo(a.self, t), computeType(t));
  V shifted = x - amax(x, dimList(a.dim), true);
  return castTo(shifted - log(sum(exp(shifted), dimList(a.dim), true)), t);
}
template <class V> V softmaxBackwardRule(const SoftmaxBackwardArgs<V> &a) {
  DType t = dtypeOf(a.grad), c = computeType(t);
  V g = castTo(a.grad, c), y = castTo(a.output, c);
  V p = g * y;
  return castTo(p - y * sum(p, dimList(a.dim), true), t);
}
template <class V> V logSoftmaxBackwardRule(const LogSoftmaxBackwardArgs<V> &a) {
  DType t = dtypeOf(a.grad), c = computeType(t);
  V g = castTo(a.grad, c), y = castTo(a.output, c);
  return castTo(g - exp(y) * sum(g, dimList(a.dim), true), t);
}

/// The last `n` of `rank` dimensions, or the ones before.
inline Sizes lastDims(int64_t rank, size_t n) {
  Sizes dims;
  for (int64_t i = rank - static_cast<int64_t>(n); i < rank; ++i)
    dims.push_back(i);
  return dims;
}
inline Sizes firstDims(int64_t n) {
  Sizes dims;
  for (int64_t i = 0; i < n; ++i)
    dims.push_back(i);
  return dims;
}
/// Sum over `dims`; none is no sum.
template <class V> V sumOver(const V &x, const Sizes &dims, bool keepdim = false) {
  return dims.empty() ? x : sum(x, optionalDims(dims), keepdim);
}

template <class V> std::array<V, 3> layerNormRule(const LayerNormArgs<V> &a) {
  DType t = dtypeOf(a.self);
  Sizes dims = lastDims(rankOf(a.self), a.normalized_shape.size());
  V x = castTo(a.self, computeType(t));
  V average = mean(x, optionalDims(dims), true);
  V d = x - average;
  V rstd = rsqrt(mean(d * d, optionalDims(dims), true) + a.eps);
  V y = d * rstd;
  if (a.weight)
    y = y * *a.weight;
  if (a.bias)
    y = y + *a.bias;
  return {castTo(y, t), average, rstd};
}
template <class V> std::array<V, 3> layerNormBackwardRule(const LayerNormBackwardArgs<V> &a) {
  DType t = dtypeOf(a.self);
  int64_t rank = rankOf(a.self);
  size_t n = a.normalized_shape.size();
  Sizes inner = lastDims(rank, n), outer = firstDims(rank - static_cast<int64_t>(n));
  Dims shape;
  for (int64_t s : a.normalized_shape)
    shape.push_back(s);
  V g = castTo(a.grad, computeType(t)), xhat = (castTo(a.self, computeType(t)) - a.mean) * a.rstd;
  V gw = a.weight ? g * *a.weight : g;
  V dx = (gw - mean(gw, optionalDims(inner), true) - xhat * mean(gw * xhat, optionalDims(inner), true)) * a.rstd;
  DType wt = a.weight ? dtypeOf(*a.weight) : t;
  return {castTo(dx, t), a.needs_weight ? castTo(sumOver(g * xhat, outer), wt) : full<V>(shape, 0.0, wt),
          a.needs_bias ? castTo(sumOver(g, outer), wt) : full<V>(shape, 0.0, wt)};
}
template <class V> V rmsNormRule(const RmsNormArgs<V> &a) {
  TensorMeta m = metaOf(a.input);
  Sizes dims = lastDims(m.dim(), a.normalized_shape.size());
  V x = castTo(a.input, computeType(m.dtype));
  double eps = a.eps.value_or(m.dtype == DType::F64    ? 2.220446049250313e-16
                              : m.dtype == DType::F16  ? 9.765625e-4
                              : m.dtype == DType::BF16 ? 7.8125e-3
                                                       : 1.1920928955078125e-7);
  V y = x * rsqrt(mean(x * x, optionalDims(dims), true) + eps);
  if (a.weight)
    y = y * *a.weight;
  return castTo(y, m.dtype);
}

/// All dimensions but the channels.
inline Sizes besideChannels(int64_t rank) {
  Sizes dims{0};
  for (int64_t i = 2; i < rank; ++i)
    dims.push_back(i);
  return dims;
}
/// A vector over channels, shaped to broadcast against (N, C, ...).
template <class V> V perChannel(const V &v, int64_t rank) {
  Dims sizes{sizesOf(v)[0]};
  for (int64_t i = 2; i < rank; ++i)
    sizes.push_back(1);
  return rank > 2 ? view(v, sizes) : v;
}

/// {out, mean, rstd}, then the new running statistics that were given.
template <class V> std::vector<V> batchNormRule(const BatchNormArgs<V> &a) {
  TensorMeta m = metaOf(a.input);
  int64_t rank = m.dim();
  Sizes dims = besideChannels(rank);
  V x = castTo(a.input, computeType(m.dtype));
  std::vector<V> running;
  V average, variance;
  if (a.training) {
    average = mean(x, optionalDims(dims));
    V d = x - perChannel(average, rank);
    variance = mean(d * d, optionalDims(dims));
    if (a.running_mean)
      running.push_back(castTo(*a.running_mean + (average - *a.running_mean) * a.momentum, dtypeOf(*a.running_mean)));
    if (a.running_var) {
      V n = V(Builder<V>::number(reducedCount(m, optionalDims(dims))));
      V next = *a.running_var + (variance * n / (n - 1) - *a.running_var) * a.momentum;
      running.push_back(castTo(next, dtypeOf(*a.running_var)));
    }
  } else {
    average = castTo(*a.running_mean, computeType(m.dtype));
    variance = castTo(*a.running_var, computeType(m.dtype));
    running = {*a.running_mean, *a.running_var};
  }
  V rstd = rsqrt(variance + a.eps);
  V y = (x - perChannel(average, rank)) * perChannel(rstd, rank);
  if (a.weight)
    y = y * perChannel(*a.weight, rank);
  if (a.bias)
    y = y + perChannel(*a.bias, rank);
  std::vector<V> r{castTo(y, m.dtype), average, rstd};
  r.insert(r.end(), running.begin(), running.end());
  return r;
}
template <class V> std::array<V, 3> batchNormBackwardRule(const BatchNormBackwardArgs<V> &a) {
  TensorMeta m = metaOf(a.input);
  int64_t rank = m.dim();
  Sizes dims = besideChannels(rank);
  V g = castTo(a.grad, computeType(m.dtype));
  V xhat = (castTo(a.input, computeType(m.dtype)) - perChannel(a.mean, rank)) * perChannel(a.rstd, rank);
  V dw = sum(g * xhat, optionalDims(dims)), db = sum(g, optionalDims(dims));
  V dx = g;
  if (a.training) {
    Dim n = reducedCount(m, optionalDims(dims));
    dx = g - perChannel(db / n, rank) - xhat * perChannel(dw / n, rank);
  }
  V scale = a.weight ? a.rstd * *a.weight : a.rstd;
  DType wt = a.weight ? dtypeOf(*a.weight) : m.dtype;
  return {castTo(dx * perChannel(scale, rank), m.dtype), castTo(dw, wt), castTo(db, wt)};
}

/// Of layer_norm: the fused gradient, or its rule over a fresh mean and rstd where it may be differentiated again.
template <class V>
std::array<V, 3> layerNormGrad(const V &g, const V &self, Ints shape, const V &average, const V &rstd, const V *weight,
                               double eps, bool needsWeight, bool needsBias) {
  if (!Builder<V>::higherOrder())
    return layer_norm_backward(g, self, shape, average, rstd, weight, needsWeight, needsBias);
  std::array<V, 3> fresh = layerNormRule(LayerNormArgs<V>{self, shape, nullptr, nullptr, eps});
  return layerNormBackwardRule(
      LayerNormBackwardArgs<V>{g, self, shape, fresh[1], fresh[2], weight, needsWeight, needsBias});
}
template <class V>
std::array<V, 3> batchNormGrad(const V &g, const V &input, const V &average, const V &rstd, const V *weight,
                               bool training, double eps, bool needsWeight, bool needsBias) {
  if (!Builder<V>::higherOrder())
    return batch_norm_backward(g, input, average, rstd, weight, training, needsWeight, needsBias);
  if (!training)
    return batchNormBackwardRule(
        BatchNormBackwardArgs<V>{g, input, average, rstd, weight, training, needsWeight, needsBias});
  std::vector<V> fresh =
      batchNormRule(BatchNormArgs<V>{input, nullptr, nullptr, nullptr, nullptr, true, Number(0.0), eps});
  return batchNormBackwardRule(
      BatchNormBackwardArgs<V>{g, input, fresh[1], fresh[2], weight, training, needsWeight, needsBias});
}

template <class V> V dropoutRule(const DropoutArgs<V> &a) {
  DLC_REQUIRE(a.p >= 0 && a.p <= 1, Value, "dropout: `p` is ", a.p, "\nuse a probability from 0 to 1");
  if (!a.training || a.p == 0)
    return a.input;
  if (a.p == 1)
    return a.input * 0.0;
  V keep = rand_like(a.input, nullptr, DType::F32) >= a.p;
  return where(keep, a.input * (1 / (1 - a.p)), 0.0);
}

template <class V> V reduceLoss(const char *op, const V &loss, Str reduction) {
  DLC_REQUIRE(reduction == "mean" || reduction == "sum" || reduction == "none", Value, op, ": `reduction` is '",
              reduction, "'\nuse 'mean', 'sum' or 'none'");
  return reduction == "mean" ? mean(loss) : reduction == "sum" ? sum(loss) : loss;
}

/// Class indices 0 ... C-1 shaped to compare with a target that has a dimension of size 1 for the classes.
template <class V> V classIndices(const Dims &input, int64_t channel) {
  Dims sizes{input[channel]};
  for (size_t i = channel + 1; i < input.size(); ++i)
    sizes.push_back(1);
  V classes = arange<V>(Dim(0), input[channel]);
  return sizes.size() > 1 ? view(classes, sizes) : classes;
}
template <class V> V classWeights(const V &weight, const Dims &input, int64_t channel) {
  Dims sizes{input[channel]};
  for (size_t i = channel + 1; i < input.size(); ++i)
    sizes.push_back(1);
  return sizes.size() > 1 ? view(weight, sizes) : weight;
}
/// The target, with 0 where it is ignored.
template <class V> V checkedTarget(const V &target, const V &keep, const Dim &classes) {
  return checkedClass(castTo(where(keep, target, 0), DType::I64), classes);
}
/// Dense: a comparison with the class index instead of a gather, so that it fuses with the log_softmax before it.
template <class V> std::array<V, 2> nllLossRule(const NllLossArgs<V> &a) {
  TensorMeta m = metaOf(a.self);
  int64_t channel = m.dim() == 1 ? 0 : 1;
  V keep = ne(a.target, Number(a.ignore_index));
  V hit = eq(unsqueeze(checkedTarget(a.target, keep, m.sizes[channel]), channel), classIndices<V>(m.sizes, channel));
  V zero = V(Number(0.0));
  V picked = sum(where(hit, a.self, zero), dimList(channel));
  V w = a.weight ? where(keep, sum(where(hit, classWeights(*a.weight, m.sizes, channel), zero), dimList(channel)), 0.0)
                 : castTo(keep, m.dtype);
  V loss = -where(keep, a.weight ? picked * w : picked, 0.0);
  V total = sum(w);
  return {a.reduction == "mean" ? sum(loss) / total : a.reduction == "sum" ? sum(loss) : loss, total};
}
template <class V> V nllLossBackwardRule(const NllLossBackwardArgs<V> &a) {
  Dims sizes = dimsOf(a.input_sizes);
  int64_t channel = sizes.size() == 1 ? 0 : 1;
  V target = unsqueeze(a.target, channel);
  V hit = logical_and(eq(target, classIndices<V>(sizes, channel)), ne(target, Number(a.ignore_index)));
  V g = -(a.reduction == "mean" ? a.grad / a.total_weight : a.grad);
  if (a.reduction == "none")
    g = unsqueeze(g, channel);
  if (a.weight)
    g = g * classWeights(*a.weight, sizes, channel);
  return castTo(where(hit, g, 0.0), a.dtype);
}

/// The part of the loss that label smoothing spreads over all classes.
template <class V> V smoothedLoss(const CrossEntropyArgs<V> &a, const V &logp, int64_t channel, const Dim &classes) {
  std::array<V, 2> nll = nll_loss(logp, a.target, a.weight, a.ignore_index, a.reduction);
  V all = -sum(a.weight ? logp * classWeights(*a.weight, sizesOf(logp), channel) : logp, dimList(channel));
  all = where(ne(a.target, Number(a.ignore_index)), all, 0.0);
  V smooth = a.reduction == "none" ? all : sum(all);
  if (a.reduction == "mean")
    smooth = smooth / nll[1];
  return nll[0] * (1 - a.label_smoothing) + smooth * a.label_smoothing / classes;
}
template <class V> V crossEntropyRule(const CrossEntropyArgs<V> &a) {
  TensorMeta m = metaOf(a.input), t = metaOf(a.target);
  DLC_REQUIRE(m.dim() >= 1, Runtime, "cross_entropy: `input` has no dimensions\npass (C), (N, C) or (N, C, ...)");
  DLC_REQUIRE(a.label_smoothing >= 0 && a.label_smoothing <= 1, Runtime, "cross_entropy: `label_smoothing` is ",
              a.label_smoothing, "\nuse a number from 0 to 1");
  int64_t channel = m.dim() == 1 ? 0 : 1;
  V logp = log_softmax(a.input, channel);
  if (!isFloat(t.dtype))
    return a.label_smoothing == 0 ? nll_loss(logp, a.target, a.weight, a.ignore_index, a.reduction)[0]
                                  : smoothedLoss(a, logp, channel, m.sizes[channel]);
  DLC_REQUIRE(sameSizes(m.sizes, t.sizes), Runtime, "cross_entropy: `target` of probabilities has sizes ",
              listStr(t.sizes), " but `input` has ", listStr(m.sizes), "\nmake them equal");
  V p = a.target;
  if (a.label_smoothing > 0)
    p = p * (1 - a.label_smoothing) + V(Number(a.label_smoothing)) / m.sizes[channel];
  V terms = logp * p;
  V loss = -sum(a.weight ? terms * classWeights(*a.weight, m.sizes, channel) : terms, dimList(channel));
  if (a.reduction != "mean")
    return reduceLoss("cross_entropy", loss, a.reduction);
  V total = sum(loss);
  return m.dim() == 1 ? total : total / metaOf(loss).numel();
}
template <class V> V mseLossRule(const MseLossArgs<V> &a) {
  V d = a.input - a.target;
  return reduceLoss("mse_loss", d * d, a.reduction);
}
template <class V> V l1LossRule(const L1LossArgs<V> &a) {
  return reduceLoss("l1_loss", abs(a.input - a.target), a.reduction);
}
template <class V> V smoothL1LossRule(const SmoothL1LossArgs<V> &a) {
  DLC_REQUIRE(a.beta >= 0, Runtime, "smooth_l1_loss: `beta` is ", a.beta, "\nuse at least 0");
  V d = abs(a.input - a.target);
  return reduceLoss("smooth_l1_loss", a.beta == 0 ? d : where(d < a.beta, d * d * (0.5 / a.beta), d - 0.5 * a.beta),
                    a.reduction);
}
template <class V> V binaryCrossEntropyRule(const BinaryCrossEntropyArgs<V> &a) {
  V loss = -(a.target * clamp_min(log(a.input), -100.0) + (1 - a.target) * clamp_min(log1p(-a.input), -100.0));
  return reduceLoss("binary_cross_entropy", a.weight ? loss * *a.weight : loss, a.reduction);
}
template <class V> V binaryCrossEntropyWithLogitsRule(const BinaryCrossEntropyWithLogitsArgs<V> &a) {
  V lost = log1p(exp(-abs(a.input))) + clamp_min(-a.input, 0.0); // -log(sigmoid(input))
  V loss = (1 - a.target) * a.input + (a.pos_weight ? lost * ((*a.pos_weight - 1) * a.target + 1) : lost);
  return reduceLoss("binary_cross_entropy_with_logits", a.weight ? loss * *a.weight : loss, a.reduction);
}

} // namespace dlc::rules
