// Padding in its four modes, and the gradients that add overlapping positions up.
#include "kernels/Kernels.h"
#include "kernels/common/Accumulate.h"
#include "kernels/common/Types.h"
#include "kernels/common/Views.h"
#include <vector>

namespace dlc::kernels {
namespace {

/// Padding before and after dimension d; the list starts with the last dimension.
std::pair<int64_t, int64_t> padOf(Ints pad, int64_t d, int64_t rank) {
  size_t at = static_cast<size_t>(2 * (rank - 1 - d));
  return at + 1 < pad.size() ? std::make_pair(pad[at], pad[at + 1]) : std::make_pair<int64_t, int64_t>(0, 0);
}

/// The views of the padded and the unpadded tensor that correspond in constant mode.
std::pair<Tensor, Tensor> innerViews(Tensor padded, Tensor plain, Ints pad) {
  for (int64_t d = 0; d < plain.dim(); ++d) {
    auto [before, after] = padOf(pad, d, plain.dim());
    int64_t from = std::max<int64_t>(0, -before), to = plain.size(d) - std::max<int64_t>(0, -after);
    int64_t n = std::max<int64_t>(0, to - from);
    padded = narrowed(padded, d, std::max<int64_t>(0, before), n);
    plain = narrowed(plain, d, from, n);
  }
  return {padded, plain};
}

/// Where position i of a padded dimension comes from.
int64_t sourceOf(int64_t i, int64_t before, int64_t n, Str mode) {
  int64_t at = i - before;
  if (mode == "replicate")
    return std::clamp<int64_t>(at, 0, n - 1);
  if (mode == "circular")
    return ((at % n) + n) % n;
  if (at < 0)
    at = -at;
  return at >= n ? 2 * (n - 1) - at : at;
}

/// Calls f(offset in padded, offset in plain) in elements for every position of the padded tensor, in order.
template <class F> void forEachPadded(const Tensor &padded, const Tensor &plain, Ints pad, Str mode, F f) {
  int64_t rank = padded.dim();
  if (padded.numel() == 0)
    return;
  std::vector<std::vector<int64_t>> from(rank);
  for (int64_t d = 0; d < rank; ++d)
    for (int64_t i = 0; i < padded.size(d); ++i)
      from[d].push_back(sourceOf(i, padOf(pad, d, rank).first, plain.size(d), mode) * plain.stride(d));
  std::vector<int64_t> index(rank, 0);
  const std::vector<int64_t> &inner = from[rank - 1];
  int64_t rows = padded.numel() / padded.size(-1), step = padded.stride(-1);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t to = 0, at = 0;
    for (int64_t d = 0; d + 1 < rank; ++d) {
      to += index[d] * padded.stride(d);
      at += from[d][index[d]];
    }
    for (int64_t i = 0; i < padded.size(-1); ++i)
      f(to + i * step, at + inner[i]);
    for (int64_t d = rank - 2; d >= 0 && ++index[d] == padded.size(d); --d)
      index[d] = 0;
  }
}

} // namespace

void padKernel(const PadArgs<Tensor> &args, Span<Tensor> outs) {
  Sizes pad = valuesOf(args.pad);
  if (args.mode == "constant") {
    fillWith(outs[0], args.value ? *args.value : Number(0));
    auto [padded, plain] = innerViews(outs[0], args.self, pad);
    return copyInto(padded, plain);
  }
  visitBytes(itemSize(args.self.dtype()), [&](auto tag) {
    using U = typename decltype(tag)::type;
    U *to = outs[0].dataAs<U>();
    const U *from = args.self.dataAs<U>();
    forEachPadded(outs[0], args.self, pad, args.mode, [&](int64_t o, int64_t i) { to[o] = from[i]; });
  });
}

void padBackwardKernel(const PadBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  Sizes pad = valuesOf(args.pad);
  if (args.mode == "constant") {
    fillWith(outs[0], 0);
    auto [padded, plain] = innerViews(args.grad, outs[0], pad);
    return copyInto(plain, padded);
  }
  DType type = computeType(outs[0].dtype());
  ContiguousOut result(outs[0], type);
  Tensor grad = asContiguous(args.grad, type);
  fillWith(result.get(), 0);
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *to = result.data<T>();
    const T *from = grad.dataAs<T>();
    forEachPadded(grad, result.get(), pad, args.mode, [&](int64_t g, int64_t i) { to[i] += from[g]; });
  });
  result.commit();
}

void unfoldBackwardKernel(const UnfoldBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(outs[0].dtype());
  ContiguousOut result(outs[0], type);
  fillWith(result.get(), 0);
  int64_t rank = result.get().dim(), step = args.step.value(), size = args.size.value();
  if (rank == 0)
    accumulateInto(result.get(), selected(args.grad, 0, 0));
  for (int64_t w = 0; rank && w < size; ++w) {
    int64_t dim = wrapDim(args.dim, rank), windows = args.grad.size(dim);
    accumulateInto(narrowed(result.get(), dim, w, windows, step), selected(args.grad, rank, w));
  }
  result.commit();
}

void asStridedBackwardKernel(const AsStridedBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = computeType(outs[0].dtype());
  ContiguousOut result(outs[0], type);
  Tensor grad = asContiguous(args.grad, type);
  fillWith(result.get(), 0);
  Sizes size = valuesOf(args.size), stride = valuesOf(args.stride);
  int64_t base = args.storage_offset ? args.storage_offset->value() : 0, rank = static_cast<int64_t>(size.size());
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *to = result.data<T>();
    const T *from = grad.dataAs<T>();
    std::vector<int64_t> index(rank, 0);
    for (int64_t i = 0, n = grad.numel(); i < n; ++i) {
      int64_t at = base;
      for (int64_t d = 0; d < rank; ++d)
        at += index[d] * stride[d];
      to[at] += from[i]; // positions may repeat: in order, by one thread
      for (int64_t d = rank - 1; d >= 0 && ++index[d] == size[d]; --d)
        index[d] = 0;
    }
  });
  result.commit();
}

} // namespace dlc::kernels
