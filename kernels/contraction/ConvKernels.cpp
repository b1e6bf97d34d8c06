// conv2d and its gradients: operands as contiguous NCHW for kernels/lib/Conv.h. A 3-d input is a batch of one.
#include "kernels/Kernels.h"
#include "kernels/common/Types.h"
#include "kernels/lib/Conv.h"

namespace dlc::kernels {
namespace {

/// Entry i of a list that may hold one value for both dimensions.
int64_t at(Ints v, size_t i) { return v.size() == 1 ? v[0] : v[i]; }

ConvShape shapeOf(Ints in, Ints weight, Ints out, Ints stride, Ints padding, Ints dilation, int64_t groups) {
  size_t lead = in.size() - 3;
  ConvShape s;
  s.batch = lead ? in[0] : 1;
  s.inChannels = in[lead], s.height = in[lead + 1], s.width = in[lead + 2];
  s.outChannels = weight[0], s.kernelHeight = weight[2], s.kernelWidth = weight[3];
  s.outHeight = out[lead + 1], s.outWidth = out[lead + 2];
  s.strideHeight = at(stride, 0), s.strideWidth = at(stride, 1);
  s.padTop = at(padding, 0), s.padLeft = at(padding, 1);
  s.dilationHeight = at(dilation, 0), s.dilationWidth = at(dilation, 1);
  s.groups = groups;
  return s;
}

template <class F> void visitConv(DType t, F f) {
  visitDType(t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>)
      f(tag);
  });
}

} // namespace

void conv2dKernel(const Conv2dArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = args.input.dtype();
  Tensor x = asContiguous(args.input), w = asContiguous(args.weight, type),
         bias = args.bias ? asContiguous(*args.bias, type) : Tensor();
  ContiguousOut y(outs[0], type);
  ConvShape s = shapeOf(x.sizes(), w.sizes(), y.get().sizes(), args.stride, args.padding, args.dilation, args.groups);
  visitConv(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    convForward<T>(s, x.dataAs<T>(), w.dataAs<T>(), args.bias ? bias.dataAs<T>() : nullptr, y.template data<T>());
  });
  y.commit();
}

void conv2dBackwardInputKernel(const Conv2dBackwardInputArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = args.grad.dtype();
  Tensor dy = asContiguous(args.grad), w = asContiguous(args.weight, type);
  ContiguousOut dx(outs[0], type);
  ConvShape s = shapeOf(dx.get().sizes(), w.sizes(), dy.sizes(), args.stride, args.padding, args.dilation, args.groups);
  visitConv(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    convBackwardInput<T>(s, dy.dataAs<T>(), w.dataAs<T>(), dx.template data<T>());
  });
  dx.commit();
}

void conv2dBackwardWeightKernel(const Conv2dBackwardWeightArgs<Tensor> &args, Span<Tensor> outs) {
  DType type = args.grad.dtype();
  Tensor dy = asContiguous(args.grad), x = asContiguous(args.input, type);
  ContiguousOut dw(outs[0], type);
  ConvShape s = shapeOf(x.sizes(), dw.get().sizes(), dy.sizes(), args.stride, args.padding, args.dilation, args.groups);
  visitConv(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    convBackwardWeight<T>(s, x.dataAs<T>(), dy.dataAs<T>(), dw.template data<T>());
  });
  dw.commit();
}

} // namespace dlc::kernels
