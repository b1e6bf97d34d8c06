// Gradient rules that are longer than a line: arithmetic, reductions, moves, indexing, pooling.
#pragma once
#include "runtime/rules/Rules.h"
#include <cmath>

namespace dlc::rules {

/// The gradient of b in a @ b, in the layout of b: that of a linear layer's weight is row-major as the weight is.
template <class V> V rightFactorGrad(const V &a, const V &b, const V &g) {
  TensorMeta m = metaOf(b);
  bool columns = m.strides.size() == 2 && m.strides[0].same(Dim(1)) && !m.strides[1].same(Dim(1));
  return columns ? t(mm(t(g), a)) : mm(t(a), g);
}

template <class V> V divGradSelf(const V &g, const V &other, const std::optional<Str> &mode) {
  return mode ? zeros_like(g) : g / other;
}
template <class V> V divGradOther(const V &g, const V &self, const V &other, const std::optional<Str> &mode) {
  return mode ? zeros_like(g) : -(g * ((self / other) / other));
}

template <class V> V powGradSelf(const V &g, const V &self, const V &exponent) {
  if (std::optional<double> n = Builder<V>::constant(exponent)) {
    if (*n == 0)
      return zeros_like(g);
    return *n == 1 ? g : *n == 2 ? g * (self * 2) : g * (pow(self, Number(*n - 1)) * *n);
  }
  return where(eq(exponent, 0), 0, g * (exponent * pow(self, exponent - 1)));
}
template <class V> V powGradExponent(const V &g, const V &self, const V &exponent, const V &out) {
  V zero = logical_and(eq(self, 0), exponent >= 0);
  return g * where(zero, 0, out * log(self));
}

/// g * other / (self^2 + other^2) for the numerator `num`, 0 at the origin.
template <class V> V atan2Grad(const V &g, const V &self, const V &other, const V &num) {
  V r = self * self + other * other;
  return where(eq(r, 0), 0, g * (num / r));
}

template <class V>
std::array<V, 3> clampGrad(const V &g, const V &self, const V *min, const V *max, Span<const bool> needs) {
  std::array<V, 3> r;
  if (needs[0]) {
    V inside = min && max ? logical_and(self >= *min, self <= *max) : min ? self >= *min : self <= *max;
    r[0] = where(inside, g, 0);
  }
  if (needs[1])
    r[1] = where(max ? logical_and(*min < *max, self < *min) : self < *min, g, 0);
  if (needs[2])
    r[2] = where(min ? logical_or(self > *max, *max < *min) : self > *max, g, 0);
  return r;
}

/// Of maximum and minimum: nothing for the operand that loses, half of it in a tie.
template <class V> V extremumGrad(const V &g, const V &self, const V &other, const V &loses) {
  return where(loses, 0, where(eq(self, other), g / 2, g));
}

template <class V> V geluGradGrad(const V &g, const V &grad, const V &x, Str approximate) {
  if (approximate != "tanh")
    return g * grad * (exp(x * x * -0.5) * 0.39894228040143267794) * (2 - x * x);
  const double c = 0.79788456080286535588, a = 0.044715;
  V t = tanh((x + x * x * x * a) * c);
  V u1 = (x * x * (3 * a) + 1) * c;
  V s = 1 - t * t;
  return g * grad * (s * u1 + x * s * (x * (6 * a * c) - t * u1 * u1 * 2) * 0.5);
}
template <class V> V siluGradGrad(const V &g, const V &grad, const V &x) {
  V s = sigmoid(x);
  return g * grad * (s * (1 - s) * (x * (1 - s * 2) + 2));
}
template <class V> V mishGrad(const V &g, const V &x) {
  V t = tanh(softplus(x));
  return g * (t + x * (1 - t * t) * sigmoid(x));
}

/// Products of all other elements along the last dimension.
template <class V> V productsOfOthers(const V &x) {
  int64_t d = rankOf(x) - 1;
  Dim n = sizesOf(x)[d];
  V one = full_like(slice(x, d, Dim(0), minDim(n, 1)), 1);
  V fromLeft = cat<V>(std::vector<V>{one, slice(cumprod(x, d), d, Dim(0), n - 1)}, d);
  V fromRight = cumprod(flip(slice(x, d, Dim(1), n), dimList(d)), d);
  fromRight = flip(cat<V>(std::vector<V>{one, fromRight}, d), dimList(d));
  return fromLeft * fromRight;
}
template <class V> V prodGrad(const V &g, const V &self, const V &out, const std::optional<Ints> &dim, bool keepdim) {
  TensorMeta m = metaOf(self);
  V wide = unreduced(g, m, dim, keepdim);
  if (m.dim() == 0 || m.numel() == 0)
    return expand(castTo(wide, m.dtype), m.sizes);
  // The reduced dimensions go to the end and become one.
  Sizes order, reduced = reducedDims(m, dim);
  for (int64_t i = 0; i < m.dim(); ++i)
    if (std::find(reduced.begin(), reduced.end(), i) == reduced.end())
      order.push_back(i);
  size_t kept = order.size();
  order.append(reduced.begin(), reduced.end());
  V moved = permute(self, order);
  Dims sizes = sizesOf(moved), flat(sizes.begin(), sizes.begin() + kept);
  flat.push_back(reducedCount(m, dim));
  V others = view(contiguous(productsOfOthers(reshape(moved, flat))), sizes);
  return castTo(wide * permute(others, inversePermutation(order)), m.dtype);
}

/// Of amax and amin: shared equally among the elements that reach the extreme.
template <class V>
V extremeGrad(const V &g, const V &self, const V &out, const std::optional<Ints> &dim, bool keepdim) {
  TensorMeta m = metaOf(self);
  V hit = castTo(eq(self, unreduced(out, m, dim, keepdim)), m.dtype);
  Sizes dims = reducedDims(m, dim);
  return hit * (unreduced(g, m, dim, keepdim) / (dims.empty() ? hit : sum(hit, optionalDims(dims), true)));
}
template <class V> V logsumexpGrad(const V &g, const V &self, const V &out, Ints dim, bool keepdim) {
  TensorMeta m = metaOf(self);
  return unreduced(g, m, dim, keepdim) * exp(self - unreduced(out, m, dim, keepdim));
}
template <class V>
V normGrad(const V &g, const V &self, const V &out, double p, const std::optional<Ints> &dim, bool keepdim) {
  TensorMeta m = metaOf(self);
  V wide = unreduced(g, m, dim, keepdim), norm = unreduced(out, m, dim, keepdim);
  if (p == 0)
    return zeros_like(self);
  if (p == 1)
    return wide * sign(self);
  if (std::isinf(p))
    return sign(self) * extremeGrad(g, abs(self), out, dim, keepdim);
  V direction = p == 2 ? self / norm : self * pow(abs(self), Number(p - 2)) / pow(norm, Number(p - 1));
  return where(eq(norm, 0), 0, wide * direction);
}

/// Exact also where elements are 0: before the first zero the quotient rule, at it the product of the others, 0 after.
template <class V> V cumprodGrad(const V &g, const V &self, const V &out, int64_t dim) {
  auto fromEnd = [&](const V &x) { return flip(cumsum(flip(x, dimList(dim)), dim), dimList(dim)); };
  V zero = eq(self, 0);
  V zeros = cumsum(castTo(zero, DType::I64), dim);
  V first = logical_and(zero, eq(zeros, 1));
  V without = cumprod(where(first, 1, self), dim);
  return castTo(where(first, fromEnd(g * without), where(zeros >= 1, 0, fromEnd(g * out) / self)), dtypeOf(self));
}

template <class V> std::vector<V> catGrad(const V &g, Span<const V> tensors, int64_t dim, Span<const bool> needs) {
  TensorMeta gm = metaOf(g);
  int64_t d = dim < 0 ? dim + gm.dim() : dim;
  Dim at = 0;
  std::vector<V> r(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorMeta m = metaOf(tensors[i]);
    if (m.dim() != gm.dim()) { // an empty vector that was skipped
      r[i] = needs[i] ? zerosOf(g, m) : V();
      continue;
    }
    Dim end = at + m.sizes[d];
    if (needs[i])
      r[i] = castTo(slice(g, d, at, end), m.dtype);
    at = end;
  }
  return r;
}

template <class V> V embeddingGradGrad(const V &g, const V &indices, const std::optional<int64_t> &padding) {
  V r = embedding(indices, g);
  return padding ? where(unsqueeze(eq(indices, Number(*padding)), -1), 0, r) : r;
}
template <class V> V indexPutGradSelf(const V &g, Span<const V> indices, const TensorMeta &values, bool accumulate) {
  return accumulate ? g : index_put(g, indices, zerosOf(g, values));
}
template <class V> V maskedSelectGrad(const V &g, const TensorMeta &self, const V &mask) {
  TensorMeta mm = metaOf(mask);
  const TensorMeta *both[] = {&self, &mm};
  TensorMeta wide = self;
  wide.sizes = broadcastSizes("masked_select", both);
  std::vector<V> where = unbind(nonzero(expand(mask, wide.sizes)), 1);
  return sumToLike(index_put(zerosOf(g, wide), where, g), self);
}

template <class V> V convBiasGrad(const V &g) {
  Sizes dims{-1, -2};
  if (rankOf(g) == 4)
    dims.push_back(0);
  return sum(g, optionalDims(dims));
}
template <class V> V maxPoolGradGrad(const V &g, const V &indices) {
  Dims sizes = sizesOf(indices);
  return view(gather(flatten(g, -2), -1, flatten(indices, -2)), sizes);
}

template <class V> V softmaxGradOutput(const V &g, const V &grad, const V &output, int64_t dim) {
  return g * (grad - sum(grad * output, dimList(dim), true)) - grad * sum(g * output, dimList(dim), true);
}
template <class V>
V nllGradGrad(const V &g, const V &target, const V *weight, const V &totalWeight, int64_t ignore, Str reduction) {
  (void)totalWeight;
  return nll_loss(g, target, weight, ignore, reduction)[0];
}

} // namespace dlc::rules
