// x[i, :, j], its assignment, and what depends on the data's truth: masked_select and nonzero.
#include "kernels/Kernels.h"
#include "kernels/common/Geometry.h"
#include "kernels/common/Types.h"
#include "kernels/common/Views.h"
#include "kernels/index/Indices.h"
#include <cstring>
#include <vector>

namespace dlc::kernels {
namespace {

/// Row-major positions of the true elements, one row of coordinates each: [count, max(dim, 1) or 0].
Tensor positionsOf(const Tensor &t) {
  Tensor truth = asContiguous(t, DType::Bool);
  const uint8_t *p = static_cast<const uint8_t *>(truth.data());
  int64_t n = truth.numel(), rank = t.dim(), count = 0;
  for (int64_t i = 0; i < n; ++i)
    count += p[i] != 0;
  Tensor out = Tensor::empty({count, rank}, DType::I64);
  int64_t *to = out.dataAs<int64_t>();
  for (int64_t i = 0; i < n && rank; ++i) {
    if (!p[i])
      continue;
    int64_t rest = i;
    for (int64_t d = rank; d-- > 0; rest /= t.size(d))
      to[d] = rest % t.size(d);
    to += rank;
  }
  return out;
}

/// An indexing of self by tensors, holes being full slices: the chosen positions are offset[k] + any position of the
/// other dimensions.
struct Indexing {
  Sizes indexSizes;             // broadcast shape of the index tensors
  std::vector<int64_t> offsets; // of each of its elements, in elements of self
  Sizes restSizes, restStrides; // dimensions that are not indexed
  int64_t before = 0;           // how many of these come first in the result
  Sizes resultSizes() const {
    Sizes s(restSizes.begin(), restSizes.begin() + before);
    s.append(indexSizes.begin(), indexSizes.end());
    s.append(restSizes.begin() + before, restSizes.end());
    return s;
  }
};

/// Masks become one index tensor a dimension of theirs.
std::vector<Tensor> withoutMasks(const Tensor &self, Span<const Tensor> indices) {
  std::vector<Tensor> flat;
  for (const Tensor &t : indices) {
    if (!t.defined() || (t.dtype() != DType::Bool && t.dtype() != DType::U8)) {
      flat.push_back(t);
      continue;
    }
    int64_t at = static_cast<int64_t>(flat.size());
    for (int64_t d = 0; d < t.dim(); ++d)
      DLC_REQUIRE(at + d < self.dim() && t.size(d) == self.size(at + d), Index, "index: the shape of the mask ",
                  listStr(t.sizes()), " at dimension ", d, " does not match the shape of the indexed tensor ",
                  listStr(self.sizes()), "\nGive a mask of the sizes that it indexes.");
    Tensor positions = positionsOf(t);
    for (int64_t d = 0; d < t.dim(); ++d)
      flat.push_back(selected(positions, 1, d));
  }
  return flat;
}

Sizes broadcastIndices(const std::vector<Tensor> &indices) {
  Sizes sizes;
  for (const Tensor &t : indices) {
    if (!t.defined())
      continue;
    while (static_cast<int64_t>(sizes.size()) < t.dim())
      sizes.insert(0, 1);
    for (int64_t d = 1; d <= t.dim(); ++d) {
      int64_t &have = sizes[sizes.size() - d], want = t.size(-d);
      DLC_REQUIRE(have == want || have == 1 || want == 1, Index,
                  "index: shape mismatch: indexing tensors cannot be broadcast together: ", listStr(sizes), " and ",
                  listStr(t.sizes()), "\nGive index tensors of compatible shapes.");
      have = have == 1 ? want : have;
    }
  }
  return sizes;
}

Indexing analyse(const char *op, const Tensor &self, Span<const Tensor> given) {
  std::vector<Tensor> indices = withoutMasks(self, given);
  DLC_REQUIRE(static_cast<int64_t>(indices.size()) <= self.dim(), Index, op,
              ": too many indices for a tensor of dimension ", self.dim(), "\nGive at most one index a dimension.");
  Indexing x;
  x.indexSizes = broadcastIndices(indices);
  int64_t count = 1, first = -1, last = -1, used = 0;
  for (int64_t s : x.indexSizes)
    count *= s;
  x.offsets.assign(static_cast<size_t>(count), 0);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d >= static_cast<int64_t>(indices.size()) || !indices[d].defined()) {
      x.restSizes.push_back(self.size(d));
      x.restStrides.push_back(self.stride(d));
      continue;
    }
    first = first < 0 ? d : first;
    last = d;
    ++used;
    Tensor full = Tensor::empty(x.indexSizes, DType::I64);
    copyInto(full, indices[d]);
    const int64_t *p = full.dataAs<int64_t>();
    int64_t n = self.size(d);
    for (int64_t k = 0; k < count; ++k) {
      int64_t i = p[k] < 0 ? p[k] + n : p[k];
      DLC_REQUIRE(i >= 0 && i < n, Index, op, ": index ", p[k], " is out of bounds for dimension ", d, " with size ", n,
                  "\nGive indices from ", -n, " to ", n - 1, ".");
      x.offsets[k] += i * self.stride(d);
    }
  }
  // Adjacent indices keep their place, others go to the front.
  x.before = used && last - first + 1 == used ? first : 0;
  return x;
}

/// A view of a tensor of the result's shape with the index dimensions as one, first; `t` is row-major.
struct ResultView {
  ResultView(const Tensor &t, const Indexing &x) {
    int64_t lead = x.before, k = static_cast<int64_t>(x.indexSizes.size());
    for (int64_t d = 0; d < t.dim(); ++d)
      if (d < lead || d >= lead + k)
        restStrides.push_back(t.stride(d));
    step = 1;
    for (int64_t d = lead + k; d < t.dim(); ++d)
      step *= t.size(d);
  }
  Sizes restStrides;
  int64_t step;
};

/// Calls f(self element offset, result element offset, count, self stride, result stride) for runs of elements, those
/// of one index after those of the earlier ones.
template <class F> void forEachRun(const Indexing &x, const ResultView &r, bool parallel, F f) {
  Geometry g(x.restSizes);
  if (g.numel == 0)
    return;
  g.add(x.restSizes, r.restStrides, 1);
  g.add(x.restSizes, x.restStrides, 1);
  g.finish();
  auto body = [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      RowCursor cursor(g, 0);
      for (int64_t row = 0; row < g.rows(); ++row, cursor.next())
        f(x.offsets[k] + cursor.offset(1), k * r.step + cursor.offset(0), g.sizes[0], g.strides[1][0], g.strides[0][0]);
    }
  };
  int64_t count = static_cast<int64_t>(x.offsets.size());
  if (parallel)
    parallelFor(count, std::max<int64_t>(1, 8192 / g.numel), body);
  else
    body(0, count);
}

} // namespace

void indexKernel(const IndexArgs<Tensor> &args, Span<Tensor> outs) {
  const Tensor &self = args.self;
  Indexing x = analyse("index", self, args.indices);
  Sizes sizes = x.resultSizes();
  if (!outs[0].defined() || outs[0].sizes() != sizes) // a mask: only now is the size known
    outs[0] = Tensor::empty(sizes, self.dtype());
  ContiguousOut result(outs[0], self.dtype());
  visitBytes(itemSize(self.dtype()), [&](auto tag) {
    using U = typename decltype(tag)::type;
    const U *from = static_cast<const U *>(self.data());
    U *to = static_cast<U *>(result.get().data());
    forEachRun(x, ResultView(result.get(), x), true, [&](int64_t s, int64_t r, int64_t n, int64_t ss, int64_t rs) {
      if (ss == 1 && rs == 1 && n > 4)
        std::memcpy(to + r, from + s, static_cast<size_t>(n) * sizeof(U));
      else
        for (int64_t i = 0; i < n; ++i)
          to[r + i * rs] = from[s + i * ss];
    });
  });
  result.commit();
}

namespace {

template <class T, class F> void putInto(const Tensor &out, const Tensor &full, const Indexing &x, F combine) {
  const T *from = static_cast<const T *>(full.data());
  T *to = static_cast<T *>(out.data());
  // One thread: an index may occur twice, then the last one wins, and sums are taken in order.
  forEachRun(x, ResultView(full, x), false, [&](int64_t s, int64_t r, int64_t n, int64_t ss, int64_t rs) {
    for (int64_t i = 0; i < n; ++i)
      combine(to[s + i * ss], from[r + i * rs]);
  });
}

} // namespace

void indexPutKernel(const IndexPutArgs<Tensor> &args, Span<Tensor> outs) {
  DType own = args.self.dtype(), type = args.accumulate ? computeType(own) : own;
  // Halves accumulate in f32; everything else is written where it belongs, whatever the strides.
  Tensor out = type == own ? outs[0] : Tensor::empty(outs[0].sizes(), type);
  copyUnlessSame(out, args.self);
  Indexing x = analyse("index_put", out, args.indices);
  Tensor full = Tensor::empty(x.resultSizes(), type);
  copyInto(full, args.values);
  if (args.accumulate)
    visitCompute(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      putInto<T>(out, full, x, [](T &to, T v) { to = static_cast<T>(to + v); });
    });
  else
    visitBytes(itemSize(type), [&](auto tag) {
      using U = typename decltype(tag)::type;
      putInto<U>(out, full, x, [](U &to, U v) { to = v; });
    });
  if (type != own)
    copyInto(outs[0], out);
}

void nonzeroKernel(const NonzeroArgs<Tensor> &args, Span<Tensor> outs) { outs[0] = positionsOf(args.self); }

void maskedSelectKernel(const MaskedSelectArgs<Tensor> &args, Span<Tensor> outs) {
  Sizes sizes;
  int64_t rank = std::max(args.self.dim(), args.mask.dim());
  for (int64_t d = rank; d >= 1; --d) {
    int64_t a = d <= args.self.dim() ? args.self.size(-d) : 1, b = d <= args.mask.dim() ? args.mask.size(-d) : 1;
    sizes.push_back(a == 1 ? b : a);
  }
  Tensor mask = Tensor::empty(sizes, DType::Bool), values = Tensor::empty(sizes, args.self.dtype());
  copyInto(mask, args.mask);
  copyInto(values, args.self);
  const uint8_t *keep = static_cast<const uint8_t *>(mask.data());
  int64_t n = mask.numel(), count = 0;
  for (int64_t i = 0; i < n; ++i)
    count += keep[i] != 0;
  outs[0] = Tensor::empty({count}, args.self.dtype());
  visitBytes(itemSize(args.self.dtype()), [&](auto tag) {
    using U = typename decltype(tag)::type;
    const U *from = static_cast<const U *>(values.data());
    U *to = static_cast<U *>(outs[0].data());
    for (int64_t i = 0; i < n; ++i)
      if (keep[i])
        *to++ = from[i];
  });
}

} // namespace dlc::kernels
