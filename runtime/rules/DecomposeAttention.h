// Attention: which calls the one-pass op takes, and the explicit form for the others and for second gradients.
#pragma once
#include "runtime/rules/DecomposeNn.h"

namespace dlc::rules {

/// What the op `attention` and its gradient are given beside query, key and value.
struct AttentionScoring {
  bool isCausal;
  Number scale;
  bool divides;
  Number fill;
  bool zeroEmpty;
};

inline Dim headsEach(const Dim &heads, const Dim &shared) { return Dim(heads.concretize() / shared.concretize()); }

/// Each head of (..., heads, positions, features) repeated for the query heads that share it.
template <class V> V repeatHeads(const V &v, const Dim &heads) {
  Dims s = sizesOf(v), split = s, joined = s;
  size_t at = s.size() - 3;
  if (sameDim(s[at], heads))
    return v;
  split.insert(at + 1, headsEach(heads, s[at]));
  joined[at] = heads;
  return reshape(expand(unsqueeze(v, static_cast<int64_t>(at) + 1), split), joined);
}
/// The gradient of repeatHeads.
template <class V> V sumHeads(const V &g, const Dim &heads) {
  Dims s = sizesOf(g);
  if (sameDim(s[1], heads))
    return g;
  return sum(view(g, Dims{s[0], heads, headsEach(s[1], heads), s[2], s[3]}), dimList(2));
}

inline const Dim &positionsOf(const Dims &sizes) { return sizes[sizes.size() - 2]; }

/// Where a key may be seen; absent: everywhere. (queries, keys) or as the mask.
template <class V> std::optional<V> seenKeys(const V &query, const V &key, const V *mask, bool isCausal) {
  std::optional<V> seen;
  if (mask && dtypeOf(*mask) == DType::Bool)
    seen = *mask;
  if (isCausal) {
    V below =
        unsqueeze(arange<V>(Dim(0), positionsOf(sizesOf(query))), 1) >= arange<V>(Dim(0), positionsOf(sizesOf(key)));
    seen = seen ? logical_and(*seen, below) : below;
  }
  return seen;
}

template <class V> V scaledScores(const V &products, const AttentionScoring &a) {
  return a.divides ? products / a.scale : products * a.scale;
}

/// The probabilities of the explicit form, in the type that sums are made in. `key` has the heads of `query`.
template <class V> V attentionWeights(const V &query, const V &key, const V *mask, const AttentionScoring &a) {
  DType t = computeType(dtypeOf(query));
  V scores = scaledScores(matmul(castTo(query, t), transpose(castTo(key, t), -2, -1)), a);
  if (mask && dtypeOf(*mask) != DType::Bool)
    scores = scores + castTo(*mask, t);
  if (std::optional<V> seen = seenKeys(query, key, mask, a.isCausal))
    scores = where(*seen, scores, V(a.fill));
  if (!a.zeroEmpty || positionsOf(sizesOf(key)) == 0)
    return softmax(scores, -1);
  V empty = eq(amax(scores, dimList(-1), true), Number(-INFINITY));
  return where(empty, 0.0, softmax(where(empty, 0.0, scores), -1));
}

/// The gradients of the explicit form for query, key, value, and for the scores; `g` is (batch, heads, queries, ...).
template <class V>
std::array<V, 4> explicitAttentionGrad(const V &g, const V &query, const V &key, const V &value, const V *mask,
                                       const AttentionScoring &a) {
  DType t = computeType(dtypeOf(query));
  Dim heads = sizesOf(query)[1], shared = sizesOf(key)[1];
  V k = castTo(repeatHeads(key, heads), t), v = castTo(repeatHeads(value, heads), t), q = castTo(query, t);
  V gc = castTo(g, t);
  V p = attentionWeights(query, repeatHeads(key, heads), mask, a);
  V ds = softmax_backward(matmul(gc, transpose(v, -2, -1)), p, -1);
  if (std::optional<V> seen = seenKeys(query, key, mask, a.isCausal))
    ds = where(*seen, ds, 0.0);
  V dq = scaledScores(matmul(ds, k), a), dk = scaledScores(matmul(transpose(ds, -2, -1), q), a),
    dv = matmul(transpose(p, -2, -1), gc);
  return {castTo(dq, dtypeOf(query)), castTo(sumHeads(dk, shared), dtypeOf(key)),
          castTo(sumHeads(dv, shared), dtypeOf(value)), ds};
}

/// Of attention: its gradient op, or the explicit form where it may be differentiated again.
template <class V>
std::array<V, 3> attentionGrad(const V &g, const V &query, const V &key, const V &value, const V *mask, const V &out,
                               const V &lse, bool isCausal, const Number &scale, bool divides, const Number &fill,
                               bool zeroEmpty) {
  if (Builder<V>::higherOrder()) {
    std::array<V, 4> r = explicitAttentionGrad(transpose(g, 1, 2), query, key, value, mask,
                                               AttentionScoring{isCausal, scale, divides, fill, zeroEmpty});
    return {r[0], r[1], r[2]};
  }
  std::array<V, 3> r =
      attention_backward(g, query, key, value, mask, out, lse, isCausal, scale, divides, fill, zeroEmpty, scale, 0.0);
  return {transpose(r[0], 1, 2), transpose(r[1], 1, 2), transpose(r[2], 1, 2)};
}
/// For a mask that is added to the scores: theirs, summed where it is broadcast.
template <class V>
V attentionMaskGrad(const V &g, const V &query, const V &key, const V &value, const V &mask, bool isCausal,
                    const Number &scale, bool divides, const Number &fill, bool zeroEmpty) {
  std::array<V, 4> r = explicitAttentionGrad(transpose(g, 1, 2), query, key, value, &mask,
                                             AttentionScoring{isCausal, scale, divides, fill, zeroEmpty});
  return sumToLike(r[3], metaOf(mask));
}

/// `v` with the leading dimensions that a batch and heads take; (batch, positions, features) has one head.
template <class V> V withHeads(const V &v) {
  int64_t rank = rankOf(v);
  return rank == 2 ? unsqueeze(unsqueeze(v, 0), 0) : rank == 3 ? unsqueeze(v, 1) : v;
}
template <class V> V expandTo(const V &v, const Dim &batch, const Dim &heads) {
  Dims s = sizesOf(v);
  return s[0].same(batch) && s[1].same(heads) ? v : expand(v, Dims{batch, heads, s[2], s[3]});
}
/// The common size of a dimension of three operands.
inline Dim commonSize(const Dim &a, const Dim &b, const Dim &c) { return a != 1 ? a : b != 1 ? b : c; }

template <class V> void checkAttention(const ScaledDotProductAttentionArgs<V> &a) {
  const char *op = "scaled_dot_product_attention: ";
  TensorMeta q = metaOf(a.query), k = metaOf(a.key), v = metaOf(a.value);
  DLC_REQUIRE(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2 && sameDim(q.sizes.back(), k.sizes.back()), Runtime, op,
              "`query` of sizes ", listStr(q.sizes), " does not fit `key` of sizes ", listStr(k.sizes),
              "\ntheir last sizes must agree");
  DLC_REQUIRE(sameDim(k.sizes[k.dim() - 2], v.sizes[v.dim() - 2]), Runtime, op, "`key` of sizes ", listStr(k.sizes),
              " does not fit `value` of sizes ", listStr(v.sizes), "\nthey need equally many positions");
  DLC_REQUIRE(q.dtype == k.dtype && q.dtype == v.dtype, Runtime, op, "`query` is ", q.dtype, ", `key` ", k.dtype,
              " and `value` ", v.dtype, "\nconvert them to one dtype");
  DLC_REQUIRE(!a.is_causal || !a.attn_mask, Runtime, op, "both `attn_mask` and `is_causal` are given\nuse one of them");
  if (a.attn_mask) {
    DType m = dtypeOf(*a.attn_mask);
    DLC_REQUIRE(m == DType::Bool || isFloat(m), Runtime, op, "`attn_mask` is ", m,
                "\npass bools (True: may be seen), or floats to add to the scores");
  }
  if (a.enable_gqa)
    DLC_REQUIRE(q.dim() >= 3 && k.dim() == q.dim() && v.dim() == q.dim() &&
                    sameDim(k.sizes[k.dim() - 3], v.sizes[v.dim() - 3]) && k.sizes[k.dim() - 3].concretize() > 0 &&
                    q.sizes[q.dim() - 3].concretize() % k.sizes[k.dim() - 3].concretize() == 0,
                Runtime, op, "`query` of sizes ", listStr(q.sizes), " can't share the heads of `key` of sizes ",
                listStr(k.sizes), " and `value` of sizes ", listStr(v.sizes),
                "\nkey and value need equally many heads, which divide those of query");
}

/// Through the one-pass op: operands of rank 2 to 4.
template <class V> V onePassAttention(const ScaledDotProductAttentionArgs<V> &a, const Number &scale) {
  int64_t rank = rankOf(a.query);
  V q = withHeads(a.query), k = withHeads(a.key), v = withHeads(a.value);
  Dims qs = sizesOf(q), ks = sizesOf(k), vs = sizesOf(v);
  Dim batch = commonSize(qs[0], ks[0], vs[0]);
  bool shares = a.enable_gqa || (ks[1].same(vs[1]) && ks[1] == 1);
  Dim heads = shares ? qs[1] : commonSize(qs[1], ks[1], vs[1]), keyHeads = shares ? ks[1] : heads;
  q = expandTo(q, batch, heads), k = expandTo(k, batch, keyHeads), v = expandTo(v, batch, keyHeads);
  std::optional<V> mask;
  if (a.attn_mask) {
    mask = *a.attn_mask;
    if (dtypeOf(*mask) != DType::Bool)
      mask = castTo(*mask, computeType(dtypeOf(q)));
    while (rankOf(*mask) < rank)
      mask = unsqueeze(*mask, 0);
    mask = withHeads(*mask);
  }
  std::array<V, 2> r = attention(q, k, v, mask, a.is_causal, scale, false, Number(-INFINITY), true);
  if (rank == 4)
    return transpose(r[0], 1, 2);
  V out = squeeze(r[0], dimList(2));
  return rank == 3 ? out : squeeze(out, dimList(0));
}

template <class V> V scaledDotProductAttentionRule(const ScaledDotProductAttentionArgs<V> &a) {
  checkAttention(a);
  TensorMeta q = metaOf(a.query), k = metaOf(a.key), v = metaOf(a.value);
  Number scale(a.scale ? *a.scale : 1 / std::sqrt(static_cast<double>(q.sizes.back().concretize())));
  bool fits = q.dim() <= 4 && k.dim() == q.dim() && v.dim() == q.dim() && isFloat(q.dtype) && a.dropout_p == 0 &&
              (!a.attn_mask || rankOf(*a.attn_mask) <= q.dim());
  if (fits)
    return onePassAttention(a, scale);
  V key = a.key, value = a.value;
  if (a.enable_gqa)
    key = repeatHeads(key, q.sizes[q.dim() - 3]), value = repeatHeads(value, q.sizes[q.dim() - 3]);
  V weights =
      attentionWeights(a.query, key, a.attn_mask, AttentionScoring{a.is_causal, scale, false, Number(-INFINITY), true});
  if (a.dropout_p > 0)
    weights = dropout(weights, a.dropout_p, true);
  return matmul(castTo(weights, q.dtype), value);
}

} // namespace dlc::rules
