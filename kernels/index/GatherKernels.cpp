// Gathers and scatters along one dimension: embedding, index_select, index_add, gather, scatter, scatter_add, one_hot.
// Scatters that add run in the order of the indices, threads split what is independent of it.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "kernels/common/Views.h"
#include "kernels/index/Indices.h"
#include <cstring>
#include <vector>

namespace dlc::kernels {
namespace {

/// out[o, i, :] = in[o, index[i], :] over blocks of `bytes`.
void gatherBlocks(const char *in, char *out, const int64_t *index, int64_t outer, int64_t n, int64_t count,
                  int64_t bytes) {
  parallelFor(outer * count, std::max<int64_t>(1, 65536 / std::max<int64_t>(bytes, 1)), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const char *src = in + (k / count * n + index[k % count]) * bytes;
      char *dst = out + k * bytes;
      switch (bytes) { // the usual sizes of single elements, without a call
      case 4:
        std::memcpy(dst, src, 4);
        break;
      case 8:
        std::memcpy(dst, src, 8);
        break;
      default:
        std::memcpy(dst, src, bytes);
      }
    }
  });
}

/// out[o, index[i], c] += scale * src[o, i, c]; `skip` is an index that adds nothing.
template <class T>
void addBlocks(T *out, const T *src, const int64_t *index, int64_t outer, int64_t n, int64_t count, int64_t inner,
               T scale, int64_t skip) {
  int64_t width = inner >= 64 ? 64 : inner; // columns of a task
  int64_t tasksPerRow = inner ? (inner + width - 1) / width : 0;
  parallelFor(outer * tasksPerRow, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, count * width)),
              [&](int64_t b, int64_t e) {
                for (int64_t task = b; task < e; ++task) {
                  int64_t o = task / tasksPerRow, at = task % tasksPerRow * width, w = std::min(width, inner - at);
                  for (int64_t i = 0; i < count; ++i) {
                    if (index[i] == skip)
                      continue;
                    T *to = out + (o * n + index[i]) * inner + at;
                    const T *from = src + (o * count + i) * inner + at;
                    for (int64_t c = 0; c < w; ++c)
                      to[c] = static_cast<T>(to[c] + static_cast<T>(scale * from[c]));
                  }
                }
              });
}

void selectRows(const char *op, const char *argument, const Tensor &self, int64_t dim, const Tensor &index,
                const Tensor &out) {
  Tensor x = asContiguous(self);
  DimSplit s(x.sizes(), dim);
  Tensor at = checkedIndices(op, argument, index, dim, s.n);
  ContiguousOut result(out, self.dtype());
  gatherBlocks(x.dataAs<char>(), result.data<char>(), at.dataAs<int64_t>(), s.outer, s.n, at.numel(),
               s.inner * static_cast<int64_t>(itemSize(x.dtype())));
  result.commit();
}

} // namespace

void embeddingKernel(const EmbeddingArgs<Tensor> &args, Span<Tensor> outs) {
  selectRows("embedding", "input", args.weight, 0, args.input, outs[0]);
}

void indexSelectKernel(const IndexSelectArgs<Tensor> &args, Span<Tensor> outs) {
  selectRows("index_select", "index", args.self, wrapDim(args.dim, args.self.dim()), args.index, outs[0]);
}

void embeddingBackwardKernel(const EmbeddingBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(outs[0].dtype());
  ContiguousOut result(outs[0], type);
  fillWith(result.get(), 0);
  Tensor grad = asContiguous(args.grad, type);
  int64_t rows = args.num_weights.value(), inner = outs[0].size(1);
  Tensor at = checkedIndices("embedding_backward", "indices", args.indices, 0, rows);
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t skip = args.padding_idx ? (*args.padding_idx < 0 ? *args.padding_idx + rows : *args.padding_idx) : -1;
    addBlocks<T>(result.data<T>(), grad.dataAs<T>(), at.dataAs<int64_t>(), 1, rows, at.numel(), inner, T(1), skip);
  });
  result.commit();
}

void indexAddKernel(const IndexAddArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(args.self.dtype());
  ContiguousOut result(outs[0], type);
  copyUnlessSame(result.get(), args.self);
  Tensor source = asContiguous(args.source, type);
  int64_t dim = wrapDim(args.dim, args.self.dim());
  DimSplit s(args.self.sizes(), dim);
  Tensor at = checkedIndices("index_add", "index", args.index, dim, s.n);
  visitCompute(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    addBlocks<E>(static_cast<E *>(result.get().data()), static_cast<const E *>(source.data()), at.dataAs<int64_t>(),
                 s.outer, s.n, at.numel(), s.inner, args.alpha.as<E>(), -1);
  });
  result.commit();
}

namespace {

/// Byte offsets of every position of the given dimensions, row-major.
std::vector<int64_t> offsetsOf(Ints sizes, Ints strides, int64_t bytes) {
  std::vector<int64_t> offsets = {0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(sizes[d]));
    for (int64_t base : offsets)
      for (int64_t i = 0; i < sizes[d]; ++i)
        next.push_back(base + i * strides[d] * bytes);
    offsets.swap(next);
  }
  return offsets;
}

/// The positions [o, j, c] of an index tensor laid over a larger strided one.
struct Overlay {
  Overlay() = default;
  Overlay(const Tensor &t, Ints indexSizes, int64_t dim, int64_t bytes) {
    if (t.dim() == 0)
      return;
    size_t d = static_cast<size_t>(dim);
    outer = offsetsOf(indexSizes.slice(0, d), Ints(t.strides()).slice(0, d), bytes);
    inner = offsetsOf(indexSizes.slice(d + 1, indexSizes.size() - d - 1),
                      Ints(t.strides()).slice(d + 1, indexSizes.size() - d - 1), bytes);
    step = t.stride(dim) * bytes;
  }
  std::vector<int64_t> outer = {0}, inner = {0};
  int64_t step = 0;
};

/// Calls f(position in index, o, j, c) for each element; threads split o only.
template <class F> void forEachIndexed(const DimSplit &s, F f) {
  if (s.n * s.inner == 0)
    return;
  parallelFor(s.outer, std::max<int64_t>(1, 8192 / (s.n * s.inner)), [&](int64_t b, int64_t e) {
    for (int64_t o = b; o < e; ++o)
      for (int64_t j = 0; j < s.n; ++j)
        for (int64_t c = 0; c < s.inner; ++c)
          f((o * s.n + j) * s.inner + c, o, j, c);
  });
}

} // namespace

void gatherKernel(const GatherArgs<Tensor> &args, Span<Tensor> outs) {
  int64_t dim = wrapDim(args.dim, args.self.dim());
  int64_t bound = args.self.dim() ? args.self.size(dim) : 1;
  Tensor at = checkedIndices("gather", "index", args.index, dim, bound, ErrorKind::Runtime);
  ContiguousOut result(outs[0], args.self.dtype());
  DimSplit s(args.index.sizes(), dim);
  visitBytes(itemSize(args.self.dtype()), [&](auto tag) {
    using U = typename decltype(tag)::type;
    Overlay over(args.self, args.index.sizes(), dim, sizeof(U));
    const int64_t *index = at.dataAs<int64_t>();
    const char *from = args.self.dataAs<char>();
    U *to = static_cast<U *>(result.get().data());
    const int64_t *outer = over.outer.data(), *inner = over.inner.data(), step = over.step;
    forEachIndexed(s, [=](int64_t k, int64_t o, int64_t, int64_t c) {
      to[k] = *reinterpret_cast<const U *>(from + outer[o] + index[k] * step + inner[c]);
    });
  });
  result.commit();
}

namespace {

/// out = self, then out[o, index, c] = combine(out[...], src[o, j, c]).
template <class Combine>
void scatterInto(const char *op, const Tensor &self, int64_t dim, const Tensor &index, const Tensor &src,
                 const Tensor &out, DType type, Combine combine) {
  dim = wrapDim(dim, self.dim());
  int64_t bound = self.dim() ? self.size(dim) : 1;
  Tensor at = checkedIndices(op, "index", index, dim, bound, ErrorKind::Runtime);
  ContiguousOut result(out, type);
  copyUnlessSame(result.get(), self);
  // A number, or a tensor at least as large as the index.
  Tensor values = asContiguous(src, type);
  bool isNumber = src.dim() == 0 && index.dim() != 0;
  DimSplit s(index.sizes(), dim);
  int64_t bytes = static_cast<int64_t>(itemSize(type));
  Overlay over(result.get(), index.sizes(), dim, bytes), from;
  if (!isNumber)
    from = Overlay(values, index.sizes(), dim, bytes);
  const int64_t *p = at.dataAs<int64_t>();
  char *to = result.data<char>();
  const char *v = values.dataAs<char>();
  if (isNumber) {
    from.outer.assign(over.outer.size(), 0);
    from.inner.assign(over.inner.size(), 0);
  }
  const int64_t *outer = over.outer.data(), *inner = over.inner.data(), step = over.step;
  const int64_t *outer2 = from.outer.data(), *inner2 = from.inner.data(), step2 = from.step;
  forEachIndexed(s, [=](int64_t k, int64_t o, int64_t j, int64_t c) {
    combine(to + outer[o] + p[k] * step + inner[c], v + outer2[o] + j * step2 + inner2[c]);
  });
  result.commit();
}

} // namespace

void scatterKernel(const ScatterArgs<Tensor> &args, Span<Tensor> outs) {
  visitBytes(itemSize(args.self.dtype()), [&](auto tag) {
    using U = typename decltype(tag)::type;
    scatterInto("scatter", args.self, args.dim, args.index, args.src, outs[0], args.self.dtype(),
                [](char *to, const char *v) { std::memcpy(to, v, sizeof(U)); });
  });
}

void scatterAddKernel(const ScatterAddArgs<Tensor> &args, Span<Tensor> outs) {
  visitCompute(args.self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    scatterInto("scatter_add", args.self, args.dim, args.index, args.src, outs[0], computeType(args.self.dtype()),
                [](char *to, const char *v) {
                  T &x = *reinterpret_cast<T *>(to);
                  x = static_cast<T>(x + *reinterpret_cast<const T *>(v));
                });
  });
}

void oneHotKernel(const OneHotArgs<Tensor> &args, Span<Tensor> outs) {
  Tensor x = asContiguous(args.self, DType::I64);
  const int64_t *p = x.dataAs<int64_t>();
  int64_t n = x.numel(), classes = args.num_classes.value(), most = -1;
  for (int64_t i = 0; i < n; ++i) {
    DLC_REQUIRE(p[i] >= 0, Runtime, "one_hot: class ", p[i], " is negative\nGive classes from 0.");
    most = std::max(most, p[i]);
  }
  if (classes < 0) {
    classes = most + 1;
    Sizes sizes = x.sizes();
    sizes.push_back(classes);
    if (!outs[0].defined() || outs[0].sizes() != sizes)
      outs[0] = Tensor::empty(sizes, DType::I64);
  }
  DLC_REQUIRE(most < classes, Runtime, "one_hot: class ", most, " does not fit num_classes = ", classes,
              "\nGive num_classes above the largest class.");
  ContiguousOut result(outs[0], DType::I64);
  fillWith(result.get(), 0);
  for (int64_t i = 0; i < n; ++i)
    result.data<int64_t>()[i * classes + p[i]] = 1;
  result.commit();
}

} // namespace dlc::kernels
