// Negative log likelihood and its gradient: picks one element a row.
#include "kernels/Kernels.h"
#include "kernels/nn/Rows.h"

namespace dlc::kernels {
namespace {

/// [C], [N, C] or [N, C, d...] as N x C x area.
struct Classes {
  explicit Classes(Ints sizes) {
    if (sizes.size() == 1) {
      c = sizes[0];
      return;
    }
    n = sizes[0];
    c = sizes[1];
    for (size_t d = 2; d < sizes.size(); ++d)
      area *= sizes[d];
  }
  int64_t n = 1, c = 1, area = 1;
  int64_t targets() const { return n * area; }
  /// Of target k's class t.
  int64_t at(int64_t k, int64_t t) const { return (k / area * c + t) * area + k % area; }
};

/// Classes as int64; IndexError on one that is neither ignored nor below `classes`.
Tensor checkedTarget(const char *op, const Tensor &target, int64_t classes, int64_t ignore) {
  Tensor t = asContiguous(target, DType::I64);
  const int64_t *p = t.dataAs<int64_t>();
  for (int64_t i = 0; i < t.numel(); ++i)
    DLC_REQUIRE(p[i] == ignore || (p[i] >= 0 && p[i] < classes), Index, op, ": Target ", p[i], " is out of bounds for ",
                classes, " classes\nGive targets from 0 to ", classes - 1, ", or ignore_index.");
  return t;
}

} // namespace

void nllLossKernel(const NllLossArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(args.self.dtype());
  Tensor x = asContiguous(args.self, type);
  Classes s(x.sizes());
  Tensor target = checkedTarget("nll_loss", args.target, s.c, args.ignore_index);
  ContiguousOut out(outs[0], type), total(outs[1], type);
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor weights = args.weight ? asContiguous(*args.weight, type) : Tensor();
    const T *in = x.dataAs<T>(), *w = args.weight ? weights.dataAs<T>() : nullptr;
    const int64_t *t = target.dataAs<int64_t>();
    auto weightOf = [&](int64_t k) { return t[k] == args.ignore_index ? T(0) : w ? w[t[k]] : T(1); };
    auto lossOf = [&](int64_t k) { return t[k] == args.ignore_index ? T(0) : -(in[s.at(k, t[k])] * weightOf(k)); };
    T weight = sumOf<T>(s.targets(), weightOf);
    *total.data<T>() = args.reduction == "none" ? T(0) : weight;
    if (args.reduction == "none") {
      for (int64_t k = 0; k < s.targets(); ++k)
        out.data<T>()[k] = lossOf(k);
      return;
    }
    T sum = sumOf<T>(s.targets(), lossOf);
    *out.data<T>() = args.reduction == "mean" ? sum / weight : sum;
  });
  out.commit();
  total.commit();
}

void nllLossBackwardKernel(const NllLossBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(outs[0].dtype());
  ContiguousOut dx(outs[0], type);
  Classes s(outs[0].sizes());
  Tensor grad = asContiguous(args.grad, type), total = asContiguous(args.total_weight, type);
  Tensor target = checkedTarget("nll_loss_backward", args.target, s.c, args.ignore_index);
  fillWith(dx.get(), 0);
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor weights = args.weight ? asContiguous(*args.weight, type) : Tensor();
    const T *w = args.weight ? weights.dataAs<T>() : nullptr, *g = grad.dataAs<T>();
    const int64_t *t = target.dataAs<int64_t>();
    bool each = args.reduction == "none";
    T scale = each ? T(1) : args.reduction == "mean" ? g[0] / *total.dataAs<T>() : g[0];
    for (int64_t k = 0; k < s.targets(); ++k)
      if (t[k] != args.ignore_index)
        dx.data<T>()[s.at(k, t[k])] = -((each ? g[k] : scale) * (w ? w[t[k]] : T(1)));
  });
  dx.commit();
}

} // namespace dlc::kernels
