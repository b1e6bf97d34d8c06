// Metas of ops that copy elements to other places, and of joining.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

void cloneMeta(const CloneArgs<TensorMeta> &a, MetaResult &r) {
  if (a.memory_format == "preserve_format")
    return give(r, likeMeta(a.self, a.self.dtype));
  if (a.memory_format == "channels_last") {
    requireRank("clone", "self", a.self, 4);
    return give(r, denseMeta(a.self.dtype, a.self.sizes, channelsLastStrides(a.self.sizes)));
  }
  giveDense(r, a.self.dtype, a.self.sizes);
}

void copyMeta(const CopyArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(expandsTo(a.src.sizes, a.self.sizes), Runtime, "copy_: `src` of sizes ", listStr(a.src.sizes),
              " does not broadcast to `self` of sizes ", listStr(a.self.sizes),
              "\nmake the sizes equal, or those of `src` 1");
  give(r, likeMeta(a.self, a.self.dtype));
}

void fillMeta(const FillArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.value.sizes.empty(), Runtime, "fill_: `value` is ", describe(a.value),
              ", but must be a number or a 0-d tensor\nuse copy_() for a tensor of values");
  give(r, likeMeta(a.self, a.self.dtype));
}

void flipMeta(const FlipArgs<TensorMeta> &a, MetaResult &r) {
  if (!a.dims.empty())
    dimMask("flip", a.dims, a.self);
  give(r, likeMeta(a.self, a.self.dtype));
}

void triangleMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  const TensorMeta &self = *args[0].value;
  DLC_REQUIRE(self.dim() >= 2, Runtime, op.name, ": `self` is ", describe(self),
              ", which has fewer than 2 dimensions\npass a matrix or a batch of them");
  giveDense(r, self.dtype, self.sizes);
}

namespace {
void checkPadMode(const TensorMeta &self, Span<const Dim> pad, Str mode) {
  size_t n = pad.size() / 2;
  DLC_REQUIRE(n <= 3 && self.dim() > static_cast<int64_t>(n) - 1 && self.dim() <= static_cast<int64_t>(n) + 2 &&
                  self.dim() >= static_cast<int64_t>(n) + 1,
              NotImplemented, "pad: mode '", mode,
              "' pads the last 1 to 3 dimensions of a tensor with 1 or 2 more; `self` has sizes ", listStr(self.sizes),
              " and `pad` is ", listStr(pad), "\nreshape first, or use mode 'constant'");
  for (size_t i = 0; i < n; ++i) {
    const Dim &size = self.sizes[self.dim() - 1 - i];
    for (const Dim &p : {pad[2 * i], pad[2 * i + 1]}) {
      bool fits = mode == "reflect" ? p < size : mode == "circular" ? p <= size : size > 0 || p.value() <= 0;
      DLC_REQUIRE(fits, Runtime, "pad: mode '", mode, "' can't pad dimension ",
                  self.dim() - 1 - static_cast<int64_t>(i), " of size ", size, " by ", p, "\nuse a smaller pad");
    }
  }
}
} // namespace

void padMeta(const PadArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.pad.size() % 2 == 0 && static_cast<int64_t>(a.pad.size()) <= 2 * a.self.dim(), Runtime, "pad: `pad` ",
              listStr(a.pad), " does not list pairs for at most the ", a.self.dim(), " dimensions of `self` of sizes ",
              listStr(a.self.sizes), "\ngive (before, after) for the last dimensions, last one first");
  DLC_REQUIRE(a.mode == "constant" || a.mode == "reflect" || a.mode == "replicate" || a.mode == "circular",
              NotImplemented, "pad: `mode` is '", a.mode, "'\nuse 'constant', 'reflect', 'replicate' or 'circular'");
  if (a.mode != "constant") {
    DLC_REQUIRE(!a.value, Runtime, "pad: `value` has no meaning in mode '", a.mode, "'\nleave it out");
    checkPadMode(a.self, a.pad, a.mode);
  }
  Dims sizes = a.self.sizes;
  for (size_t i = 0; i < a.pad.size() / 2; ++i) {
    Dim &s = sizes[sizes.size() - 1 - i];
    Dim out = s + a.pad[2 * i] + a.pad[2 * i + 1];
    DLC_REQUIRE(out.value() >= 0, Runtime, "pad: dimension ", sizes.size() - 1 - i, " of size ", s, " padded by ",
                a.pad[2 * i], " and ", a.pad[2 * i + 1], " would have a negative size\ncrop less");
    s = out;
  }
  give(r,
       denseMeta(a.self.dtype, sizes, isChannelsLast(a.self) ? channelsLastStrides(sizes) : contiguousStrides(sizes)));
}

void padBackwardMeta(const PadBackwardArgs<TensorMeta> &a, MetaResult &r) {
  giveDense(r, a.grad.dtype, dimsOf(a.input_sizes));
}
void unfoldBackwardMeta(const UnfoldBackwardArgs<TensorMeta> &a, MetaResult &r) {
  giveDense(r, a.grad.dtype, dimsOf(a.input_sizes));
}
void asStridedBackwardMeta(const AsStridedBackwardArgs<TensorMeta> &a, MetaResult &r) {
  giveDense(r, a.grad.dtype, dimsOf(a.input_sizes));
}

namespace {
void requireSource(const char *op, const TensorMeta &src, const Dims &part) {
  DLC_REQUIRE(expandsTo(src.sizes, part), Runtime, op, ": `src` has sizes ", listStr(src.sizes),
              " but the place it goes to has sizes ", listStr(part), "\nmake the sizes equal");
}
} // namespace

void sliceScatterMeta(const SliceScatterArgs<TensorMeta> &a, MetaResult &r) {
  MetaResult part;
  sliceMeta({a.self, a.dim, a.start, a.end, a.step}, part);
  requireSource("slice_scatter", a.src, part.outs[0].sizes);
  give(r, likeMeta(a.self, a.self.dtype));
}
void selectScatterMeta(const SelectScatterArgs<TensorMeta> &a, MetaResult &r) {
  MetaResult part;
  selectMeta({a.self, a.dim, a.index}, part);
  requireSource("select_scatter", a.src, part.outs[0].sizes);
  give(r, likeMeta(a.self, a.self.dtype));
}
void diagonalScatterMeta(const DiagonalScatterArgs<TensorMeta> &a, MetaResult &r) {
  MetaResult part;
  diagonalMeta({a.self, a.offset, a.dim1, a.dim2}, part);
  requireSource("diagonal_scatter", a.src, part.outs[0].sizes);
  give(r, likeMeta(a.self, a.self.dtype));
}
void asStridedScatterMeta(const AsStridedScatterArgs<TensorMeta> &a, MetaResult &r) {
  MetaResult part;
  asStridedMeta({a.self, a.size, a.stride, a.storage_offset}, part);
  requireSource("as_strided_scatter", a.src, part.outs[0].sizes);
  Dim last = a.storage_offset.value_or(Dim(0));
  for (size_t i = 0; i < a.size.size(); ++i)
    last += (a.size[i] - 1) * a.stride[i];
  DLC_REQUIRE(product(part.outs[0].sizes).value() == 0 || last < a.self.numel(), Runtime, "as_strided_scatter: sizes ",
              listStr(a.size), ", strides ", listStr(a.stride), " and offset reach element ", last,
              " of `self`, which has ", a.self.numel(), "\nstay inside of `self`");
  giveDense(r, a.self.dtype, a.self.sizes);
}

void catMeta(const CatArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(!a.tensors.empty(), Value, "cat: `tensors` is empty\npass at least one tensor");
  // An empty 1-d tensor is skipped whatever the others' shapes.
  const TensorMeta *first = nullptr;
  Metas kept;
  Promoter dtype;
  for (const TensorMeta &t : a.tensors) {
    DLC_REQUIRE(t.dim() > 0, Runtime,
                "cat: `tensors` holds a tensor without dimensions\nuse stack(), or unsqueeze(0) first");
    dtype.add(t);
    if (t.dim() == 1 && t.sizes[0].same(0))
      continue;
    if (!first)
      first = &t;
    kept.push_back(&t);
  }
  if (!first)
    return giveDense(r, dtype.type(), {0});
  int64_t d = wrapDim("cat", "dim", a.dim, *first);
  Dims sizes = first->sizes;
  for (size_t k = 1; k < kept.size(); ++k) {
    const Dims &s = kept[k]->sizes;
    bool fits = s.size() == sizes.size();
    for (size_t i = 0; fits && i < s.size(); ++i)
      fits = static_cast<int64_t>(i) == d || sameDim(s[i], first->sizes[i]);
    DLC_REQUIRE(fits, Runtime, "cat: `tensors` of sizes ", listStr(first->sizes), " and ", listStr(s),
                " can't be joined along dimension ", d, "\nall other sizes must agree");
    sizes[d] += s[d];
  }
  bool image = true;
  for (const TensorMeta *m : kept)
    image = image && isChannelsLast(*m);
  give(r, denseMeta(dtype.type(), sizes, image ? channelsLastStrides(sizes) : contiguousStrides(sizes)));
}

} // namespace dlc::ops
