// Tensors from numbers: full, arange, linspace, eye.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"

namespace dlc::kernels {

/// Uninitialised memory is what was asked for.
void emptyKernel(const EmptyArgs<Tensor> &, Span<Tensor>) {}
void emptyLikeKernel(const EmptyLikeArgs<Tensor> &, Span<Tensor>) {}

void fullKernel(const FullArgs<Tensor> &args, Span<Tensor> outs) { fillWith(outs[0], args.fill_value); }
void fullLikeKernel(const FullLikeArgs<Tensor> &args, Span<Tensor> outs) { fillWith(outs[0], args.fill_value); }

namespace {
/// out[i] = f(i), computed as int64 or double and then converted.
template <class T, class F> void generate(const Tensor &out, F f) {
  ContiguousOut result(out, dtypeOfType<T>);
  T *p = result.data<T>();
  parallelFor(out.numel(), 16384, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      p[i] = f(i);
  });
  result.commit();
}
} // namespace

void arangeKernel(const ArangeArgs<Tensor> &args, Span<Tensor> outs) {
  int64_t start = args.start.value(), step = args.step.value();
  generate<int64_t>(outs[0], [=](int64_t i) { return start + i * step; });
}
void arangeFloatKernel(const ArangeFloatArgs<Tensor> &args, Span<Tensor> outs) {
  double start = args.start, step = args.step;
  generate<double>(outs[0], [=](int64_t i) { return start + static_cast<double>(i) * step; });
}

void linspaceKernel(const LinspaceArgs<Tensor> &args, Span<Tensor> outs) {
  int64_t n = args.steps.value();
  double start = args.start.toDouble(), end = args.end.toDouble(),
         step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  // Each half is counted from its own end, so that both ends are exact.
  generate<double>(outs[0], [=](int64_t i) {
    return i < n / 2 || n == 1 ? start + step * static_cast<double>(i) : end - step * static_cast<double>(n - 1 - i);
  });
}

void eyeKernel(const EyeArgs<Tensor> &args, Span<Tensor> outs) {
  fillWith(outs[0], 0);
  const Tensor &out = outs[0];
  int64_t n = std::min(out.size(0), out.size(1));
  fillWith(viewAs(out, {n}, {out.stride(0) + out.stride(1)}), 1);
}

} // namespace dlc::kernels
