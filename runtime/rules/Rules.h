// Helpers of gradient rules and decompositions. A rule is a template over the kind of value V and is written with the
// functional API, so that the same code serves eager tensors, recorded values and the IR.
#pragma once
#include "runtime/op/Functional.h"
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::rules {
using namespace dlc::ops;

template <class V> Dims sizesOf(const V &v) { return metaOf(v).sizes; }
template <class V> DType dtypeOf(const V &v) { return metaOf(v).dtype; }
template <class V> int64_t rankOf(const V &v) { return metaOf(v).dim(); }

/// A one-element list of dimensions that lives as long as the expression it is used in.
class DimListOf {
public:
  explicit DimListOf(int64_t d) : dim_(d) {}
  operator Ints() const { return Ints(&dim_, 1); }
  operator std::optional<Ints>() const { return Ints(&dim_, 1); }

private:
  int64_t dim_;
};
inline DimListOf dimList(int64_t d) { return DimListOf(d); }
inline std::optional<Ints> optionalDims(const Sizes &s) { return Ints(s.data(), s.size()); }

/// The dimensions of `m` that a reduction goes over.
inline Sizes reducedDims(const TensorMeta &m, const std::optional<Ints> &dim) {
  Sizes dims;
  uint64_t mask = dimMask("reduce", dim, m);
  for (int64_t i = 0; i < m.dim(); ++i)
    if (mask >> i & 1)
      dims.push_back(i);
  return dims;
}
inline Dim reducedCount(const TensorMeta &m, const std::optional<Ints> &dim) {
  Dim n = 1;
  for (int64_t d : reducedDims(m, dim))
    n *= m.sizes[d];
  return n;
}

template <class V> V castTo(const V &v, DType t) { return dtypeOf(v) == t ? v : cast(v, t); }
template <class V> V zerosOf(const V &like, const TensorMeta &m) {
  (void)like;
  return full<V>(m.sizes, m.dtype == DType::Bool ? Number(false) : isFloat(m.dtype) ? Number(0.0) : Number(0), m.dtype);
}
/// x * n, without the product when n is 1.
template <class V> V scaled(const V &x, const Number &n) { return n.isConst(1) ? x : x * n; }

/// Undoes broadcasting and promotion: sums `g` over the dimensions that `m` was expanded along.
template <class V> V sumToLike(const V &g, const TensorMeta &m) {
  if (!isDefined(g))
    return g;
  TensorMeta gm = metaOf(g);
  int64_t extra = gm.dim() - m.dim();
  Sizes dims;
  for (int64_t i = 0; i < gm.dim(); ++i)
    if (i < extra || (!m.sizes[i - extra].same(gm.sizes[i]) && m.sizes[i - extra] == 1 && gm.sizes[i] != 1))
      dims.push_back(i);
  V r = g;
  if (!dims.empty()) {
    r = sum(g, optionalDims(dims), true);
    if (extra > 0)
      r = view(r, m.sizes);
  }
  return castTo(r, m.dtype);
}

/// The result of a reduction, brought back to the operand's rank.
template <class V> V unreduced(const V &g, const TensorMeta &m, const std::optional<Ints> &dim, bool keepdim) {
  V r = g;
  if (!keepdim)
    for (int64_t d : reducedDims(m, dim))
      r = unsqueeze(r, d);
  return r;
}
template <class V> V expandReduced(const V &g, const TensorMeta &m, const std::optional<Ints> &dim, bool keepdim) {
  return castTo(expand(unreduced(g, m, dim, keepdim), m.sizes), isFloat(m.dtype) ? m.dtype : dtypeOf(g));
}

/// The permutation that undoes `dims`; lives as long as the expression.
inline Sizes inversePermutation(Ints dims) {
  Sizes inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    inverse[dims[i] < 0 ? dims[i] + dims.size() : dims[i]] = static_cast<int64_t>(i);
  return inverse;
}
inline Dims lastTwo(const Dims &s) { return Dims(s.end() - 2, s.end()); }

// Access to flattened tensor inputs, for the generated gradient functions.

template <class V> size_t flatIndex(Span<const Arg<V>> args, size_t param) {
  size_t n = 0;
  for (size_t i = 0; i < param; ++i)
    n += args[i].values().size();
  return n;
}
template <class V> bool wantedAt(Span<const Arg<V>> args, Span<const bool> wanted, size_t param) {
  return !args[param].values().empty() && wanted[flatIndex(args, param)];
}
template <class V> Span<const bool> wantedRange(Span<const Arg<V>> args, Span<const bool> wanted, size_t param) {
  return wanted.slice(flatIndex(args, param), args[param].values().size());
}
inline bool anyOf(Span<const bool> s) {
  for (bool b : s)
    if (b)
      return true;
  return false;
}
template <class V> void assignRange(Span<const Arg<V>> args, Span<V> out, size_t param, std::vector<V> &r) {
  size_t at = flatIndex(args, param);
  for (size_t i = 0; i < r.size(); ++i)
    out[at + i] = std::move(r[i]);
}

inline void deliver(Span<Tensor> outs, Tensor t) { outs[0] = std::move(t); }
template <size_t N> void deliver(Span<Tensor> outs, std::array<Tensor, N> r) {
  for (size_t i = 0; i < outs.size(); ++i)
    outs[i] = std::move(r[i]);
}
inline void deliver(Span<Tensor> outs, std::vector<Tensor> r) {
  for (size_t i = 0; i < outs.size() && i < r.size(); ++i)
    outs[i] = std::move(r[i]);
}

} // namespace dlc::rules
