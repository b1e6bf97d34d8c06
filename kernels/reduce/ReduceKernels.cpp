// The kernels of the reduce family, argmax and argmin, and scans.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "kernels/reduce/Lanes.h"
#include "kernels/reduce/Reduce.h"

namespace dlc::kernels {

namespace {
Ints dimsOf(const std::optional<Ints> &dim) { return dim ? *dim : Ints(); }
} // namespace

void sumKernel(const SumArgs<Tensor> &args, Span<Tensor> outs) {
  reduceInto(outs[0], args.self, dimsOf(args.dim), ReduceOp::Sum);
}
void meanKernel(const MeanArgs<Tensor> &args, Span<Tensor> outs) {
  reduceInto(outs[0], args.self, dimsOf(args.dim), ReduceOp::Mean);
}
void prodKernel(const ProdArgs<Tensor> &args, Span<Tensor> outs) {
  reduceInto(outs[0], args.self, dimsOf(args.dim), ReduceOp::Prod);
}
void amaxKernel(const AmaxArgs<Tensor> &args, Span<Tensor> outs) {
  reduceInto(outs[0], args.self, args.dim, ReduceOp::Max);
}
void aminKernel(const AminArgs<Tensor> &args, Span<Tensor> outs) {
  reduceInto(outs[0], args.self, args.dim, ReduceOp::Min);
}
void allKernel(const AllArgs<Tensor> &args, Span<Tensor> outs) {
  reduceInto(outs[0], args.self, dimsOf(args.dim), ReduceOp::All);
}
void anyKernel(const AnyArgs<Tensor> &args, Span<Tensor> outs) {
  reduceInto(outs[0], args.self, dimsOf(args.dim), ReduceOp::Any);
}

namespace {

/// The first position of the extremum of a row; the first NaN if there is one.
template <class T, class C> int64_t argOfRow(const T *x, int64_t n) {
  Lanes<T, C> lanes;
  lanes.add(x, n);
  T best = lanes.result();
  bool isNan = best != best;
  for (int64_t i = 0; i < n; ++i)
    if (isNan ? x[i] != x[i] : x[i] == best)
      return i;
  return 0;
}

/// The same down each of `inner` columns.
template <class T, class C> void argOfColumns(const T *x, int64_t n, int64_t inner, int64_t *index) {
  for (int64_t c = 0; c < inner; ++c) {
    T best = x[c];
    int64_t at = 0;
    for (int64_t i = 1; i < n; ++i) {
      T v = x[i * inner + c];
      // Keep the earlier one unless v is better, or the first NaN.
      bool keep = C::apply(best, v) == best || best != best;
      best = keep ? best : v;
      at = keep ? at : i;
    }
    index[c] = at;
  }
}

template <class C> void argReduce(const Tensor &self, const std::optional<int64_t> &dim, const Tensor &out) {
  Tensor x = asContiguous(self, computeType(self.dtype()));
  DimSplit s(x.sizes(), dim ? *dim : 0);
  if (!dim)
    s.outer = 1, s.inner = 1, s.n = x.numel();
  ContiguousOut result(out, DType::I64);
  int64_t *index = result.data<int64_t>();
  visitCompute(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    const E *p = static_cast<const E *>(x.data());
    parallelFor(s.outer, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.n * s.inner)), [&](int64_t b, int64_t e) {
      for (int64_t o = b; o < e; ++o)
        if (s.inner == 1)
          index[o] = argOfRow<E, C>(p + o * s.n, s.n);
        else
          argOfColumns<E, C>(p + o * s.n * s.inner, s.n, s.inner, index + o * s.inner);
    });
  });
  result.commit();
}

} // namespace

void argmaxKernel(const ArgmaxArgs<Tensor> &args, Span<Tensor> outs) {
  argReduce<MaxCombine>(args.self, args.dim, outs[0]);
}
void argminKernel(const ArgminArgs<Tensor> &args, Span<Tensor> outs) {
  argReduce<MinCombine>(args.self, args.dim, outs[0]);
}

namespace {

/// Running combination along a dimension, in order.
template <class C> void scan(const Tensor &self, int64_t dim, const Tensor &out) {
  DType type = computeType(out.dtype());
  Tensor x = asContiguous(self, out.dtype());
  x = asContiguous(x, type);
  DimSplit s(x.sizes(), dim);
  ContiguousOut result(out, type);
  if (x.numel() == 0)
    return;
  visitCompute(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = typename LaneType<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>, true>::type;
    const E *in = static_cast<const E *>(x.data());
    E *to = static_cast<E *>(result.get().data());
    parallelFor(s.outer, std::max<int64_t>(1, 16384 / (s.n * s.inner)), [&](int64_t b, int64_t e) {
      for (int64_t o = b; o < e; ++o) {
        const E *row = in + o * s.n * s.inner;
        E *dst = to + o * s.n * s.inner;
        E last = C::template identity<E>();
        for (int64_t i = 0; s.inner == 1 && i < s.n; ++i)
          dst[i] = last = C::apply(last, row[i]);
        if (s.inner == 1)
          continue;
        for (int64_t c = 0; c < s.inner; ++c)
          dst[c] = C::apply(last, row[c]);
        for (int64_t i = 1; i < s.n; ++i)
          for (int64_t c = 0; c < s.inner; ++c)
            dst[i * s.inner + c] = C::apply(dst[(i - 1) * s.inner + c], row[i * s.inner + c]);
      }
    });
  });
  result.commit();
}

} // namespace

void cumsumKernel(const CumsumArgs<Tensor> &args, Span<Tensor> outs) { scan<SumCombine>(args.self, args.dim, outs[0]); }
void cumprodKernel(const CumprodArgs<Tensor> &args, Span<Tensor> outs) {
  scan<ProdCombine>(args.self, args.dim, outs[0]);
}

} // namespace dlc::kernels
