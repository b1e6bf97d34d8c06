// Metas of views: sizes, strides and offset of the result within self's storage.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

namespace {
TensorMeta viewOf(const TensorMeta &self, Dims sizes, Dims strides, Dim offset) {
  TensorMeta m = denseMeta(self.dtype, sizes, strides);
  m.offset = offset;
  return m;
}
} // namespace

void viewMeta(const ViewArgs<TensorMeta> &a, MetaResult &r) {
  Dims sizes = inferSizes("view", a.size, a.self);
  std::optional<Dims> strides = viewStrides(a.self, sizes);
  DLC_REQUIRE(strides, Runtime, "view: `self` of sizes ", listStr(a.self.sizes), " and strides ",
              listStr(a.self.strides), " can't be seen as ", listStr(sizes), " without a copy\nuse reshape()");
  give(r, viewOf(a.self, sizes, *strides, a.self.offset));
}

void transposeMeta(const TransposeArgs<TensorMeta> &a, MetaResult &r) {
  int64_t i = wrapDim("transpose", "dim0", a.dim0, a.self), j = wrapDim("transpose", "dim1", a.dim1, a.self);
  TensorMeta m = viewOf(a.self, a.self.sizes, a.self.strides, a.self.offset);
  if (m.dim() > 0) {
    std::swap(m.sizes[i], m.sizes[j]);
    std::swap(m.strides[i], m.strides[j]);
  }
  give(r, std::move(m));
}

void permuteMeta(const PermuteArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(static_cast<int64_t>(a.dims.size()) == a.self.dim(), Runtime, "permute: `dims` ", listStr(a.dims),
              " does not list the ", a.self.dim(), " dimensions of `self` of sizes ", listStr(a.self.sizes),
              "\nname each dimension once");
  uint64_t seen = 0;
  Dims sizes, strides;
  for (int64_t d : a.dims) {
    int64_t i = wrapDim("permute", "dims", d, a.self);
    DLC_REQUIRE(!(seen >> i & 1), Runtime, "permute: dimension ", d, " appears more than once in `dims` ",
                listStr(a.dims), "\nname each dimension once");
    seen |= uint64_t(1) << i;
    sizes.push_back(a.self.sizes[i]);
    strides.push_back(a.self.strides[i]);
  }
  give(r, viewOf(a.self, sizes, strides, a.self.offset));
}

void expandMeta(const ExpandArgs<TensorMeta> &a, MetaResult &r) {
  size_t rank = a.size.size(), old = a.self.sizes.size();
  DLC_REQUIRE(rank >= old, Runtime, "expand: `size` ", listStr(a.size), " has fewer dimensions than `self` of sizes ",
              listStr(a.self.sizes), "\ngive a size for each dimension, new ones first");
  Dims sizes(rank), strides(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim &want = a.size[i];
    if (i < rank - old) {
      DLC_REQUIRE(want.value() >= 0, Runtime, "expand: size ", want.value(), " of the new dimension ", i, " in ",
                  listStr(a.size), " is negative\n-1 is only for dimensions that exist");
      sizes[i] = want;
      strides[i] = 0;
      continue;
    }
    const Dim &have = a.self.sizes[i - (rank - old)];
    bool keep =
        want.same(-1) || want.same(have) || (want.value() == have.value() && want == have) || want.value() == -1;
    DLC_REQUIRE(keep || have == 1, Runtime, "expand: dimension ", i, " of `self` of sizes ", listStr(a.self.sizes),
                " has size ", have, " and can't become ", want, "\nonly dimensions of size 1 expand");
    DLC_REQUIRE(keep || want.value() >= 0, Runtime, "expand: size ", want.value(), " in ", listStr(a.size),
                " is negative\nuse -1 to keep a size");
    sizes[i] = keep ? have : want;
    strides[i] = keep ? a.self.strides[i - (rank - old)] : Dim(0);
  }
  give(r, viewOf(a.self, sizes, strides, a.self.offset));
}

void squeezeMeta(const SqueezeArgs<TensorMeta> &a, MetaResult &r) {
  uint64_t mask = dimMask("squeeze", a.dim, a.self);
  if (a.dim && a.dim->empty())
    mask = 0;
  Dims sizes, strides;
  for (size_t i = 0; i < a.self.sizes.size(); ++i) {
    if ((mask >> i & 1) && a.self.sizes[i] == 1)
      continue;
    sizes.push_back(a.self.sizes[i]);
    strides.push_back(a.self.strides[i]);
  }
  give(r, viewOf(a.self, sizes, strides, a.self.offset));
}

void unsqueezeMeta(const UnsqueezeArgs<TensorMeta> &a, MetaResult &r) {
  int64_t d = wrapDimOfRank("unsqueeze", "dim", a.dim, a.self.dim() + 1);
  TensorMeta m = viewOf(a.self, a.self.sizes, a.self.strides, a.self.offset);
  Dim stride = d < m.dim() ? m.sizes[d] * m.strides[d] : Dim(1);
  m.sizes.insert(d, 1);
  m.strides.insert(d, stride);
  give(r, std::move(m));
}

void selectMeta(const SelectArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.self.dim() > 0, Index, "select: `self` has no dimensions\nuse item() for the value of a 0-d tensor");
  int64_t d = wrapDim("select", "dim", a.dim, a.self);
  Dim i = wrapIndex("select", a.index, a.self.sizes[d], d);
  TensorMeta m = viewOf(a.self, a.self.sizes, a.self.strides, a.self.offset + i * a.self.strides[d]);
  m.sizes.erase(d);
  m.strides.erase(d);
  give(r, std::move(m));
}

void sliceMeta(const SliceArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.self.dim() > 0, Runtime, "slice: `self` has no dimensions\na 0-d tensor can't be sliced");
  int64_t d = wrapDim("slice", "dim", a.dim, a.self);
  SliceBounds b = sliceBounds("slice", a.self.sizes[d], a.start, a.end, a.step);
  TensorMeta m = viewOf(a.self, a.self.sizes, a.self.strides, a.self.offset + b.start * a.self.strides[d]);
  m.sizes[d] = b.length;
  m.strides[d] = m.strides[d] * a.step;
  give(r, std::move(m));
}

void unfoldMeta(const UnfoldArgs<TensorMeta> &a, MetaResult &r) {
  int64_t d = wrapDim("unfold", "dimension", a.dimension, a.self);
  Dim size = a.self.dim() ? a.self.sizes[d] : Dim(1), stride = a.self.dim() ? a.self.strides[d] : Dim(1);
  DLC_REQUIRE(a.size.value() >= 0 && a.size <= size, Runtime, "unfold: windows of `size` ", a.size,
              " do not fit dimension ", d, " of size ", size, "\nuse a size from 0 to ", size);
  DLC_REQUIRE(a.step.value() > 0, Runtime, "unfold: `step` is ", a.step, "\nuse a positive step");
  TensorMeta m = viewOf(a.self, a.self.sizes, a.self.strides, a.self.offset);
  if (m.dim() > 0) {
    m.sizes[d] = floorDiv(size - a.size, a.step) + 1;
    m.strides[d] = stride * a.step;
  }
  m.sizes.push_back(a.size);
  m.strides.push_back(stride);
  give(r, std::move(m));
}

void asStridedMeta(const AsStridedArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.size.size() == a.stride.size(), Runtime, "as_strided: ", a.size.size(), " sizes but ", a.stride.size(),
              " strides\ngive one stride a size");
  for (size_t i = 0; i < a.size.size(); ++i)
    DLC_REQUIRE(a.size[i].value() >= 0 && a.stride[i].value() >= 0, Runtime, "as_strided: sizes ", listStr(a.size),
                " and strides ", listStr(a.stride), " must not be negative\nuse flip() to reverse");
  Dim offset = a.storage_offset.value_or(a.self.offset);
  DLC_REQUIRE(offset.value() >= 0, Runtime, "as_strided: `storage_offset` is ", offset,
              "\nuse an offset of at least 0");
  give(r, viewOf(a.self, dimsOf(a.size), dimsOf(a.stride), offset));
}

void diagonalMeta(const DiagonalArgs<TensorMeta> &a, MetaResult &r) {
  int64_t i = wrapDim("diagonal", "dim1", a.dim1, a.self), j = wrapDim("diagonal", "dim2", a.dim2, a.self);
  DLC_REQUIRE(i != j && a.self.dim() > 1, Runtime, "diagonal: `dim1` and `dim2` are the same dimension ", i,
              " of `self` of sizes ", listStr(a.self.sizes), "\nname two dimensions");
  TensorMeta m = viewOf(a.self, a.self.sizes, a.self.strides, a.self.offset);
  Dim rows = m.sizes[i], cols = m.sizes[j];
  Dim n = a.offset >= 0 ? minDim(rows, cols - a.offset) : minDim(rows + a.offset, cols);
  n = maxDim(n, 0);
  if (n.isConst() || !symbolicHost() ? n.value() > 0 : n > 0) // nothing but facts in a session with symbols
    m.offset = m.offset + (a.offset >= 0 ? Dim(a.offset) * m.strides[j] : Dim(-a.offset) * m.strides[i]);
  Dim stride = m.strides[i] + m.strides[j];
  for (int64_t d : {std::max(i, j), std::min(i, j)}) {
    m.sizes.erase(d);
    m.strides.erase(d);
  }
  m.sizes.push_back(n);
  m.strides.push_back(stride);
  give(r, std::move(m));
}

void detachMeta(const DetachArgs<TensorMeta> &a, MetaResult &r) {
  give(r, viewOf(a.self, a.self.sizes, a.self.strides, a.self.offset));
}

// Lists of views: only their number is needed, the rules make them.

void splitMeta(const SplitArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.self.dim() > 0, Runtime, "split: `self` has no dimensions\na 0-d tensor can't be split");
  int64_t d = wrapDim("split", "dim", a.dim, a.self), n = a.self.sizes[d].concretize(),
          each = a.split_size.concretize();
  DLC_REQUIRE(each >= 0 && (each > 0 || n == 0), Runtime, "split: `split_size` is ", each, " for dimension ", d,
              " of size ", n, "\nuse a positive size");
  r.outs.resize(std::max<int64_t>(1, each ? (n + each - 1) / each : 1));
}

void splitWithSizesMeta(const SplitWithSizesArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.self.dim() > 0, Runtime, "split: `self` has no dimensions\na 0-d tensor can't be split");
  int64_t d = wrapDim("split", "dim", a.dim, a.self);
  Dim total = 0;
  for (const Dim &s : a.split_sizes) {
    DLC_REQUIRE(s.value() >= 0, Runtime, "split: size ", s, " in ", listStr(a.split_sizes),
                " is negative\nuse sizes of at least 0");
    total += s;
  }
  DLC_REQUIRE(sameDim(total, a.self.sizes[d]), Runtime, "split: sizes ", listStr(a.split_sizes), " add up to ", total,
              " but dimension ", d, " of `self` has size ", a.self.sizes[d], "\nmake the sizes add up to it");
  r.outs.resize(a.split_sizes.size());
}

void chunkMeta(const ChunkArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.self.dim() > 0, Runtime, "chunk: `self` has no dimensions\na 0-d tensor can't be split");
  DLC_REQUIRE(a.chunks > 0, Runtime, "chunk: `chunks` is ", a.chunks, "\nuse a positive number of chunks");
  int64_t d = wrapDim("chunk", "dim", a.dim, a.self), n = a.self.sizes[d].concretize();
  int64_t each = (n + a.chunks - 1) / a.chunks;
  r.outs.resize(each ? (n + each - 1) / each : a.chunks);
}

void unbindMeta(const UnbindArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.self.dim() > 0, Runtime, "unbind: `self` has no dimensions\na 0-d tensor can't be split");
  r.outs.resize(a.self.sizes[wrapDim("unbind", "dim", a.dim, a.self)].concretize());
}

} // namespace dlc::ops
