// Kernels that only move elements: copies, flips, triangles, concatenation, and the scatters that views turn into.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "kernels/common/Views.h"
#include <cstring>

namespace dlc::kernels {

void cloneKernel(const CloneArgs<Tensor> &args, Span<Tensor> outs) { copyInto(outs[0], args.self); }
void copyKernel(const CopyArgs<Tensor> &args, Span<Tensor> outs) { copyUnlessSame(outs[0], args.src); }
void castKernel(const CastArgs<Tensor> &args, Span<Tensor> outs) { copyInto(outs[0], args.self); }
void fillKernel(const FillArgs<Tensor> &args, Span<Tensor> outs) { copyInto(outs[0], args.value); }

void flipKernel(const FlipArgs<Tensor> &args, Span<Tensor> outs) {
  const Tensor &self = args.self;
  if (self.numel() == 0)
    return;
  Sizes strides = self.strides();
  int64_t offset = 0;
  for (int64_t d : args.dims) {
    if (self.dim() == 0)
      break;
    d = wrapDim(d, self.dim());
    offset += (self.size(d) - 1) * strides[d];
    strides[d] = -strides[d];
  }
  copyInto(outs[0], viewAs(self, self.sizes(), strides, offset));
}

namespace {

/// Keeps columns j of row i with low <= j - i <= high, zeroes the rest.
void triangle(const Tensor &self, const Tensor &out, int64_t low, int64_t high) {
  int64_t bytes = static_cast<int64_t>(itemSize(self.dtype()));
  Tensor x = asContiguous(self);
  ContiguousOut result(out, self.dtype());
  int64_t rows = x.size(-2), cols = x.size(-1);
  if (x.numel() == 0)
    return;
  const char *src = x.dataAs<char>();
  char *dst = result.data<char>();
  parallelFor(x.numel() / cols, std::max<int64_t>(1, 16384 / cols), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      int64_t i = r % rows;
      int64_t from = std::clamp<int64_t>(low == INT64_MIN ? 0 : i + low, 0, cols);
      int64_t to = std::clamp<int64_t>(high == INT64_MAX ? cols : i + high + 1, from, cols);
      char *row = dst + r * cols * bytes;
      std::memset(row, 0, from * bytes);
      std::memmove(row + from * bytes, src + (r * cols + from) * bytes, (to - from) * bytes);
      std::memset(row + to * bytes, 0, (cols - to) * bytes);
    }
  });
  result.commit();
}

} // namespace

void trilKernel(const TrilArgs<Tensor> &args, Span<Tensor> outs) {
  triangle(args.self, outs[0], INT64_MIN, args.diagonal);
}
void triuKernel(const TriuArgs<Tensor> &args, Span<Tensor> outs) {
  triangle(args.self, outs[0], args.diagonal, INT64_MAX);
}

void sliceScatterKernel(const SliceScatterArgs<Tensor> &args, Span<Tensor> outs) {
  copyUnlessSame(outs[0], args.self);
  copyInto(sliced(outs[0], wrapDim(args.dim, args.self.dim()), args.start, args.end, args.step.value()), args.src);
}

void selectScatterKernel(const SelectScatterArgs<Tensor> &args, Span<Tensor> outs) {
  copyUnlessSame(outs[0], args.self);
  int64_t dim = wrapDim(args.dim, args.self.dim()), index = args.index.value();
  copyInto(selected(outs[0], dim, index < 0 ? index + args.self.size(dim) : index), args.src);
}

void diagonalScatterKernel(const DiagonalScatterArgs<Tensor> &args, Span<Tensor> outs) {
  copyUnlessSame(outs[0], args.self);
  copyInto(diagonalOf(outs[0], args.offset, args.dim1, args.dim2), args.src);
}

void asStridedScatterKernel(const AsStridedScatterArgs<Tensor> &args, Span<Tensor> outs) {
  ContiguousOut result(outs[0], args.self.dtype());
  copyUnlessSame(result.get(), args.self);
  copyInto(viewAs(result.get(), valuesOf(args.size), valuesOf(args.stride),
                  args.storage_offset ? args.storage_offset->value() : 0),
           args.src);
  result.commit();
}

void catKernel(const CatArgs<Tensor> &args, Span<Tensor> outs) {
  const Tensor &out = outs[0];
  int64_t dim = wrapDim(args.dim, out.dim()), at = 0;
  for (const Tensor &t : args.tensors) {
    if (t.dim() == 1 && t.size(0) == 0) // skipped whatever the rank of the others, as PyTorch does
      continue;
    copyInto(narrowed(out, dim, at, t.size(dim)), t);
    at += t.size(dim);
  }
}

} // namespace dlc::kernels
