// Between Attention.cpp and the code of each instruction set: one task, and the tables of functions.
#pragma once
#include "kernels/lib/Attention.h"
#include "kernels/lib/GemmCore.h"

namespace dlc::kernels::detail {

/// Queries and keys of a block: its scores stay in the first two caches. They fix the order of sums.
constexpr int64_t kQueryBlock = 32, kKeyBlock = 256;
/// Up to this many queries of a key head, keys are streamed as they lie instead of being packed.
constexpr int64_t kStreamedRows = 4;

template <class S> struct AttentionCode {
  /// Rows [begin, end) of key head `h` of batch `b`; a row is a query of one of the query heads that share it.
  void (*forward)(const AttentionForward<S> &, int64_t b, int64_t h, int64_t begin, int64_t end);
  /// All rows of key head `h` of batch `b`.
  void (*backward)(const AttentionBackward<S> &, int64_t b, int64_t h);
};
struct AttentionTable {
  AttentionCode<float> f32;
  AttentionCode<double> f64;
  AttentionCode<Half> f16;
  AttentionCode<BFloat16> bf16;
};
const AttentionTable &avx2Attention();
const AttentionTable &avx512Attention();

} // namespace dlc::kernels::detail
