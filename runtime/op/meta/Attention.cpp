// Metas of attention in one pass: results have the heads after the positions.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

namespace {
DType sumsType(DType t) { return t == DType::F64 ? t : DType::F32; }

void requireFits(bool fits, const char *param, const TensorMeta &m, const TensorMeta &query) {
  DLC_REQUIRE(fits, Runtime, "attention: `", param, "` of sizes ", listStr(m.sizes), " does not fit `query` of sizes ",
              listStr(query.sizes), "\noperands are (batch, heads, positions, features)");
}
} // namespace

void attentionMeta(const AttentionArgs<TensorMeta> &a, MetaResult &r) {
  const TensorMeta &q = a.query, &k = a.key, &v = a.value;
  DLC_REQUIRE(isFloat(q.dtype), NotImplemented, "attention: `query` is ", describe(q),
              ", but a float dtype is needed\nconvert it with .float()");
  requireFits(q.dim() == 4, "query", q, q);
  requireSameDType("attention", "query", q, "key", k);
  requireSameDType("attention", "query", q, "value", v);
  requireFits(k.dim() == 4 && sameDim(k.sizes[0], q.sizes[0]) && sameDim(k.sizes[3], q.sizes[3]), "key", k, q);
  requireFits(v.dim() == 4 && sameDim(v.sizes[0], q.sizes[0]) && sameDim(v.sizes[1], k.sizes[1]) &&
                  sameDim(v.sizes[2], k.sizes[2]),
              "value", v, q);
  if (!k.sizes[1].same(q.sizes[1])) {
    int64_t heads = q.sizes[1].concretize(), shared = k.sizes[1].concretize();
    requireFits(shared > 0 ? heads % shared == 0 : heads == 0, "key", k, q);
  }
  if (a.mask) {
    Dims scores{q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]};
    requireFits(a.mask->dim() == 4 && expandsTo(a.mask->sizes, scores), "mask", *a.mask, q);
    DLC_REQUIRE(a.mask->dtype == DType::Bool || a.mask->dtype == sumsType(q.dtype), Runtime, "attention: `mask` is ",
                a.mask->dtype, "\nuse bool, or ", sumsType(q.dtype));
  }
  giveDense(r, q.dtype, Dims{q.sizes[0], q.sizes[2], q.sizes[1], v.sizes[3]});
  giveDense(r, sumsType(q.dtype), Dims{q.sizes[0], q.sizes[1], q.sizes[2]});
}

void attentionBackwardMeta(const AttentionBackwardArgs<TensorMeta> &a, MetaResult &r) {
  auto give = [&](const TensorMeta &m) { giveDense(r, m.dtype, Dims{m.sizes[0], m.sizes[2], m.sizes[1], m.sizes[3]}); };
  give(a.query);
  give(a.key);
  give(a.value);
}

} // namespace dlc::ops
