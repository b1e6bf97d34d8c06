// Cuts attention into tasks. Each row's sums have a fixed order, so the cut may follow the number of threads.
#include "kernels/lib/Attention.h"
#include "kernels/lib/AttentionCore.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <cstring>

namespace dlc::kernels {
namespace {

using namespace detail;

/// Products of two numbers below which a task is not worth handing out (about 5 us).
constexpr int64_t kTaskWork = 200000;

template <class S> const AttentionCode<S> &code() {
  const AttentionTable &t = std::strcmp(gemmIsa(), "avx512") == 0 ? avx512Attention() : avx2Attention();
  if constexpr (std::is_same_v<S, float>)
    return t.f32;
  else if constexpr (std::is_same_v<S, double>)
    return t.f64;
  else if constexpr (std::is_same_v<S, Half>)
    return t.f16;
  else
    return t.bf16;
}

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// About the multiplications of a row, with what its exponentials cost.
template <class S> int64_t workOfRow(const AttentionArgs<S> &x) {
  return std::max<int64_t>(1, x.keys * (x.dim + x.valueDim + 8) / (x.causal ? 2 : 1));
}

} // namespace

template <class S> void attention(const AttentionForward<S> &x) {
  int64_t rows = x.kvHeads ? x.heads / x.kvHeads * x.queries : 0, groups = x.batch * x.kvHeads;
  if (rows == 0 || groups == 0)
    return;
  // Each task packs the keys of its head again, so it should have many rows.
  int64_t threads = parallelShares(groups * ceilDiv(rows, kQueryBlock), 1), parts = 1;
  if (groups < 4 * threads)
    parts = std::min(ceilDiv(4 * threads, groups), ceilDiv(rows, 2 * kQueryBlock));
  int64_t size = ceilDiv(ceilDiv(rows, parts), kQueryBlock) * kQueryBlock;
  parts = ceilDiv(rows, size);
  int64_t grain = std::max<int64_t>(1, kTaskWork / std::max<int64_t>(1, std::min(size, rows) * workOfRow(x)));
  parallelFor(groups * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t g = t / parts, from = t % parts * size;
      code<S>().forward(x, g / x.kvHeads, g % x.kvHeads, from, std::min(rows, from + size));
    }
  });
}

template <class S> void attentionBackward(const AttentionBackward<S> &x) {
  int64_t rows = x.kvHeads ? x.heads / x.kvHeads * x.queries : 0;
  int64_t grain = std::max<int64_t>(1, kTaskWork / std::max<int64_t>(1, 3 * rows * workOfRow(x)));
  parallelFor(x.batch * x.kvHeads, grain, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g)
      code<S>().backward(x, g / x.kvHeads, g % x.kvHeads);
  });
}

#define DLC_X(S)                                                                                                       \
  template void attention(const AttentionForward<S> &);                                                                \
  template void attentionBackward(const AttentionBackward<S> &);
DLC_X(float)
DLC_X(double)
DLC_X(Half)
DLC_X(BFloat16)
#undef DLC_X

} // namespace dlc::kernels
