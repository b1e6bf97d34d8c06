// sort and topk along a dimension: by position, always stably, NaN above every number.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "kernels/common/Views.h"
#include <algorithm>
#include <numeric>
#include <vector>

namespace dlc::kernels {
namespace {

template <class T> bool below(T a, T b) {
  bool aNan = a != a, bNan = b != b;
  return aNan || bNan ? !aNan && bNan : a < b;
}

/// Calls f(row in memory order, outer, inner index) for each row along the dimension; a row is gathered into `row`.
template <class T, class F> void forEachRow(const T *x, const DimSplit &s, F f) {
  parallelFor(s.outer * s.inner, std::max<int64_t>(1, 2048 / std::max<int64_t>(1, s.n)), [&](int64_t b, int64_t e) {
    std::vector<T> row(static_cast<size_t>(s.n));
    std::vector<int64_t> order(static_cast<size_t>(s.n));
    for (int64_t r = b; r < e; ++r) {
      int64_t base = r / s.inner * s.n * s.inner + r % s.inner;
      for (int64_t i = 0; i < s.n; ++i)
        row[i] = x[base + i * s.inner];
      std::iota(order.begin(), order.end(), 0);
      f(row.data(), order, r / s.inner, r % s.inner);
    }
  });
}

/// The first k of each row in the wanted order; all of them sort.
void order(const Tensor &self, int64_t dim, int64_t k, bool descending, bool partial, const Tensor &values,
           const Tensor &indices) {
  DType type = computeType(self.dtype());
  Tensor x = asContiguous(self, type);
  DimSplit s(x.sizes(), dim);
  ContiguousOut v(values, type), i(indices, DType::I64);
  if (x.numel() == 0 || k == 0)
    return;
  int64_t *at = i.data<int64_t>();
  visitCompute(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    E *to = static_cast<E *>(v.get().data());
    forEachRow(static_cast<const E *>(x.data()), s, [&](const E *row, std::vector<int64_t> &pos, int64_t o, int64_t c) {
      auto before = [row, descending](int64_t a, int64_t b) {
        return descending ? below(row[b], row[a]) : below(row[a], row[b]);
      };
      auto strictly = [&](int64_t a, int64_t b) { return before(a, b) || (!before(b, a) && a < b); };
      if (partial)
        std::partial_sort(pos.begin(), pos.begin() + k, pos.end(), strictly);
      else
        std::sort(pos.begin(), pos.end(), strictly);
      for (int64_t j = 0; j < k; ++j) {
        to[(o * k + j) * s.inner + c] = row[pos[j]];
        at[(o * k + j) * s.inner + c] = pos[j];
      }
    });
  });
  v.commit();
  i.commit();
}

} // namespace

void sortKernel(const SortArgs<Tensor> &args, Span<Tensor> outs) {
  int64_t n = args.self.dim() ? args.self.size(args.dim) : 1;
  order(args.self, args.dim, n, args.descending, false, outs[0], outs[1]);
}

void topkKernel(const TopkArgs<Tensor> &args, Span<Tensor> outs) {
  order(args.self, args.dim, args.k.value(), args.largest, true, outs[0], outs[1]);
}

} // namespace dlc::kernels
