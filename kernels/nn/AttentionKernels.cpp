// Attention in one pass: covers of kernels/lib/Attention.h, which takes any strides.
#include "kernels/lib/Attention.h"
#include "kernels/Kernels.h"
#include "kernels/common/Copy.h"
#include "kernels/common/Types.h"

namespace dlc::kernels {
namespace {

/// Dimensions 0 to 3 of `t` in the given order; a size of 1 is read again and again.
template <class S, class Element> AttentionOperand<S> operandOf(const Tensor &t, int head, int row) {
  auto stride = [&](int d) { return t.size(d) == 1 ? 0 : t.stride(d); };
  return {t.dataAs<Element>(), stride(0), stride(head), stride(row), t.size(3) == 1 ? 1 : t.stride(3)};
}
/// (batch, heads, positions, features)
template <class S> AttentionOperand<const S> input(const Tensor &t) { return operandOf<const S, S>(t, 1, 2); }
/// (batch, positions, heads, features)
template <class S> AttentionOperand<const S> swapped(const Tensor &t) { return operandOf<const S, S>(t, 2, 1); }
template <class S> AttentionOperand<S> result(const Tensor &t) { return operandOf<S, S>(t, 2, 1); }

double scaleOf(const Number &scale, bool divides) { return divides ? 1 / scale.toDouble() : scale.toDouble(); }

template <class S, class Args> void fillArgs(const Args &a, AttentionArgs<S> &x) {
  x.batch = a.query.size(0), x.heads = a.query.size(1), x.kvHeads = a.key.size(1);
  x.queries = a.query.size(2), x.keys = a.key.size(2), x.dim = a.query.size(3), x.valueDim = a.value.size(3);
  x.q = input<S>(a.query), x.k = input<S>(a.key), x.v = input<S>(a.value);
  if (a.mask && a.mask->dtype() == DType::Bool) {
    x.seen = input<bool>(*a.mask);
    x.seen.col = a.mask->size(3) == 1 && x.keys != 1 ? 0 : a.mask->stride(3);
  } else if (a.mask) {
    x.bias = input<GemmAcc<S>>(*a.mask);
    x.bias.col = a.mask->size(3) == 1 && x.keys != 1 ? 0 : a.mask->stride(3);
  }
  x.causal = a.is_causal, x.zeroEmpty = a.zero_empty;
  x.scale = scaleOf(a.scale, a.divides), x.fill = a.fill.toDouble();
}

template <class F> void visitAttention(DType t, F f) {
  switch (t) {
  case DType::F64:
    return f(TypeTag<double>{});
  case DType::F16:
    return f(TypeTag<Half>{});
  case DType::BF16:
    return f(TypeTag<BFloat16>{});
  default:
    return f(TypeTag<float>{});
  }
}

} // namespace

void attentionKernel(const ops::AttentionArgs<Tensor> &args, Span<Tensor> outs) {
  visitAttention(args.query.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    AttentionForward<S> x;
    fillArgs(args, x);
    ContiguousOut lse(outs[1], outs[1].dtype());
    x.out = result<S>(outs[0]);
    x.lse = lse.template data<GemmAcc<S>>();
    attention<S>(x);
    lse.commit();
  });
}

void attentionBackwardKernel(const ops::AttentionBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  visitAttention(args.query.dtype(), [&](auto tag) {
    using S = typename decltype(tag)::type;
    AttentionBackward<S> x;
    fillArgs(args, x);
    Tensor lse = asContiguous(args.lse);
    x.gradScale = scaleOf(args.grad_scale, args.divides), x.gradFill = args.grad_fill.toDouble();
    x.grad = swapped<S>(args.grad), x.out = swapped<S>(args.out);
    x.lse = lse.dataAs<GemmAcc<S>>();
    x.dq = result<S>(outs[0]), x.dk = result<S>(outs[1]), x.dv = result<S>(outs[2]);
    attentionBackward<S>(x);
  });
}

} // namespace dlc::kernels
