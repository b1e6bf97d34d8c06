// Metas of gathering, scattering, sorting and searching. Values of index tensors are checked by the kernels.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

void embeddingMeta(const EmbeddingArgs<TensorMeta> &a, MetaResult &r) {
  requireIndexType("embedding", "input", a.input);
  requireRank("embedding", "weight", a.weight, 2);
  if (a.padding_idx)
    DLC_REQUIRE(*a.padding_idx < a.weight.sizes[0].value() && *a.padding_idx >= -a.weight.sizes[0].value(), Index,
                "embedding: `padding_idx` is ", *a.padding_idx, " but `weight` has ", a.weight.sizes[0],
                " rows\nuse a row of the table");
  Dims sizes = a.input.sizes;
  sizes.push_back(a.weight.sizes[1]);
  giveDense(r, a.weight.dtype, sizes);
}

void embeddingBackwardMeta(const EmbeddingBackwardArgs<TensorMeta> &a, MetaResult &r) {
  giveDense(r, a.grad.dtype, {a.num_weights, a.grad.sizes.back()});
}

namespace {
/// `index` has self's rank and, except along d, sizes of at most `limit`'s.
void requireIndexShape(const char *op, const char *param, const TensorMeta &self, const TensorMeta &index, int64_t d,
                       const TensorMeta &limit) {
  requireIndexType(op, "index", index);
  DLC_REQUIRE(std::max<int64_t>(index.dim(), 1) == std::max<int64_t>(self.dim(), 1), Runtime, op, ": `index` of sizes ",
              listStr(index.sizes), " and `", param, "` of sizes ", listStr(limit.sizes),
              " have different numbers of dimensions\nmake them agree");
  for (int64_t i = 0; i < index.dim() && i < limit.dim(); ++i)
    DLC_REQUIRE(i == d || index.sizes[i].same(limit.sizes[i]) || index.sizes[i] <= limit.sizes[i], Runtime, op,
                ": `index` of sizes ", listStr(index.sizes), " is larger than `", param, "` of sizes ",
                listStr(limit.sizes), " in dimension ", i, "\nmake it at most as large");
}
} // namespace

void gatherMeta(const GatherArgs<TensorMeta> &a, MetaResult &r) {
  int64_t d = wrapDim("gather", "dim", a.dim, a.self);
  requireIndexShape("gather", "self", a.self, a.index, d, a.self);
  giveDense(r, a.self.dtype, a.index.sizes);
}

void scatterMeta(const ScatterArgs<TensorMeta> &a, MetaResult &r) {
  int64_t d = wrapDim("scatter", "dim", a.dim, a.self);
  requireIndexShape("scatter", "self", a.self, a.index, d, a.self);
  if (!a.src.wrapped) {
    requireIndexShape("scatter", "src", a.src, a.index, -1, a.src);
    requireSameDType("scatter", "self", a.self, "src", a.src);
  }
  giveDense(r, a.self.dtype, a.self.sizes);
}

void scatterAddMeta(const ScatterAddArgs<TensorMeta> &a, MetaResult &r) {
  int64_t d = wrapDim("scatter_add", "dim", a.dim, a.self);
  requireIndexShape("scatter_add", "self", a.self, a.index, d, a.self);
  requireIndexShape("scatter_add", "src", a.src, a.index, -1, a.src);
  requireSameDType("scatter_add", "self", a.self, "src", a.src);
  giveDense(r, a.self.dtype, a.self.sizes);
}

namespace {
void requireVector(const char *op, const TensorMeta &index) {
  requireIndexType(op, "index", index);
  DLC_REQUIRE(index.dim() <= 1, Index, op, ": `index` of sizes ", listStr(index.sizes),
              " has more than one dimension\nflatten it, or use gather()");
}
} // namespace

namespace {
/// A 0-d tensor counts as one with a single position.
void requireOneForScalar(const char *op, const TensorMeta &self, const TensorMeta &index) {
  DLC_REQUIRE(self.dim() > 0 || index.numel() == 1, Runtime, op, ": `index` has ", index.numel(),
              " elements but `self` is 0-d\ngive one index, or make `self` 1-d");
}
} // namespace

void indexSelectMeta(const IndexSelectArgs<TensorMeta> &a, MetaResult &r) {
  int64_t d = wrapDim("index_select", "dim", a.dim, a.self);
  requireVector("index_select", a.index);
  requireOneForScalar("index_select", a.self, a.index);
  Dims sizes = a.self.sizes;
  if (!sizes.empty())
    sizes[d] = a.index.numel();
  giveDense(r, a.self.dtype, sizes);
}

void indexAddMeta(const IndexAddArgs<TensorMeta> &a, MetaResult &r) {
  int64_t d = wrapDim("index_add", "dim", a.dim, a.self);
  requireVector("index_add", a.index);
  requireOneForScalar("index_add", a.self, a.index);
  requireSameDType("index_add", "self", a.self, "source", a.source);
  Dims want = a.self.sizes;
  if (!want.empty())
    want[d] = a.index.numel();
  DLC_REQUIRE(sameSizes(want, a.source.sizes) || a.self.dim() == 0, Runtime, "index_add: `source` has sizes ",
              listStr(a.source.sizes), " but `self` of sizes ", listStr(a.self.sizes), " and ", a.index.numel(),
              " indices need ", listStr(want), "\nmake `source` of those sizes");
  giveDense(r, a.self.dtype, a.self.sizes);
}

namespace {
/// The shape of self[indices]: the broadcast index shape stands where the indices are adjacent, else first.
Dims indexedSizes(const char *op, const TensorMeta &self, Span<const TensorMeta> indices) {
  DLC_REQUIRE(static_cast<int64_t>(indices.size()) <= self.dim(), Index, op, ": ", indices.size(),
              " indices for `self` of sizes ", listStr(self.sizes), "\nuse at most one index a dimension");
  Metas tensors;
  int64_t first = -1, last = -1, count = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined)
      continue;
    requireIndexType(op, "indices", indices[i]);
    tensors.push_back(&indices[i]);
    first = first < 0 ? static_cast<int64_t>(i) : first;
    last = static_cast<int64_t>(i);
    ++count;
  }
  if (!count)
    return self.sizes;
  Dims picked;
  try {
    picked = broadcastSizes(op, tensors);
  } catch (const Error &e) {
    throw Error(ErrorKind::Index, e.what());
  }
  bool adjacent = last - first + 1 == count;
  Dims sizes;
  auto put = [&] { sizes.append(picked.begin(), picked.end()); };
  if (!adjacent)
    put();
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (adjacent && i == first)
      put();
    if (i >= static_cast<int64_t>(indices.size()) || !indices[i].defined)
      sizes.push_back(self.sizes[i]);
  }
  return sizes;
}
} // namespace

void indexMeta(const IndexArgs<TensorMeta> &a, MetaResult &r) {
  giveDense(r, a.self.dtype, indexedSizes("index", a.self, a.indices));
}

void indexPutMeta(const IndexPutArgs<TensorMeta> &a, MetaResult &r) {
  Dims place = indexedSizes("index_put", a.self, a.indices);
  DLC_REQUIRE(expandsTo(a.values.sizes, place), Runtime, "index_put: `values` of sizes ", listStr(a.values.sizes),
              " does not broadcast to the indexed part of sizes ", listStr(place),
              "\nmake the sizes equal, or those of `values` 1");
  requireSameDType("index_put", "self", a.self, "values", a.values);
  give(r, likeMeta(a.self, a.self.dtype));
}

void maskedSelectMeta(const MaskedSelectArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.mask.dtype == DType::Bool, Runtime, "masked_select: `mask` is ", describe(a.mask),
              ", not bool\ncompare it with 0 first");
  const TensorMeta *both[] = {&a.self, &a.mask};
  broadcastSizes("masked_select", both);
  giveDense(r, a.self.dtype, {0});
}

void nonzeroMeta(const NonzeroArgs<TensorMeta> &a, MetaResult &r) { giveDense(r, DType::I64, {0, a.self.dim()}); }

void oneHotMeta(const OneHotArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.self.dtype == DType::I64, Runtime, "one_hot: `input` is ", describe(a.self),
              ", not int64\nconvert it with .to(dlc.int64)");
  DLC_REQUIRE(a.num_classes.value() >= 1 || a.num_classes.value() == -1, Runtime, "one_hot: `num_classes` is ",
              a.num_classes, "\nuse at least 1, or -1 for one more than the largest class");
  Dims sizes = a.self.sizes;
  sizes.push_back(a.num_classes); // -1: only the kernel knows
  giveDense(r, DType::I64, sizes);
}

void topkMeta(const TopkArgs<TensorMeta> &a, MetaResult &r) {
  int64_t d = wrapDim("topk", "dim", a.dim, a.self);
  Dim size = a.self.dim() ? a.self.sizes[d] : Dim(1);
  DLC_REQUIRE(a.self.dtype != DType::Bool, NotImplemented,
              "topk: not implemented for bool\nconvert to an integer dtype first");
  DLC_REQUIRE(a.k.value() >= 0 && a.k <= size, Runtime, "topk: `k` is ", a.k, " but dimension ", d,
              " of `self` has size ", size, "\nuse a k from 0 to the size");
  Dims sizes = a.self.sizes;
  if (!sizes.empty())
    sizes[d] = a.k;
  giveDense(r, a.self.dtype, sizes);
  giveDense(r, DType::I64, sizes);
}

void sortMeta(const SortArgs<TensorMeta> &a, MetaResult &r) {
  wrapDim("sort", "dim", a.dim, a.self);
  give(r, likeMeta(a.self, a.self.dtype));
  give(r, likeMeta(a.self, DType::I64));
}

} // namespace dlc::ops
