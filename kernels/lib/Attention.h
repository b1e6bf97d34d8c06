// Attention in one pass: softmax(scale * Q * K^T + mask) * V a block of queries and keys at a time, and its gradients,
// so that no queries x keys matrix is ever stored. MLIR-free; takes operands of any strides.
#pragma once
#include "kernels/lib/Gemm.h"

namespace dlc::kernels {

/// Elements of a (batch, heads, positions, features) operand; strides in elements, 0 where it is broadcast.
template <class S> struct AttentionOperand {
  S *data = nullptr;
  int64_t batch = 0, head = 0, row = 0, col = 0;
  S *at(int64_t b, int64_t h, int64_t r) const { return data + b * batch + h * head + r * row; }
};

/// S: the storage type; the sums are GemmAcc<S>.
template <class S> struct AttentionArgs {
  using T = GemmAcc<S>;
  /// Query head h reads key and value head h / (heads / kvHeads).
  int64_t batch = 0, heads = 0, kvHeads = 0, queries = 0, keys = 0, dim = 0, valueDim = 0;
  AttentionOperand<const S> q, k, v;
  /// At most one is set: keys that may be seen, or what is added to the scores. Over (batch, head, query, key).
  AttentionOperand<const bool> seen;
  AttentionOperand<const T> bias;
  /// Query i sees keys 0 ... i.
  bool causal = false;
  double scale = 1;
  /// The score of keys that may not be seen.
  double fill = 0;
  /// A query that sees no key (all scores -inf) gives zeros, not NaN.
  bool zeroEmpty = false;
};

/// `out` of (batch, heads, queries, valueDim); `lse`, the logarithm of each sum of exponentials, is contiguous.
template <class S> struct AttentionForward : AttentionArgs<S> {
  AttentionOperand<S> out;
  GemmAcc<S> *lse = nullptr;
};

/// From the gradient of `out`, its value and `lse`, the gradients of q, k and v.
template <class S> struct AttentionBackward : AttentionArgs<S> {
  AttentionOperand<const S> grad, out;
  const GemmAcc<S> *lse = nullptr;
  /// The gradient of the scores is `gradFill` where they were replaced, and then multiplied by `gradScale`.
  double gradScale = 1, gradFill = 0;
  AttentionOperand<S> dq, dk, dv;
};

/// On the thread pool; the results have the same bits for any number of threads. S: float, double, Half, BFloat16.
template <class S> void attention(const AttentionForward<S> &args);
template <class S> void attentionBackward(const AttentionBackward<S> &args);

} // namespace dlc::kernels
