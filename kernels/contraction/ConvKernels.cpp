// conv2d and its gradients: operands as contiguous NCHW for kernels/lib/Conv.h. A 3-d input is a batch of one.
#include "kernels/Kernels.h"
#include "kernels/common/ChannelsLast.h"
#include "kernels/common/Types.h"
#include "kernels/lib/ConvLast.h"

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

ConvActivation activationOf(Str name) {
  static constexpr std::string_view kNames[] = {"none", "relu", "relu6", "hardswish", "hardsigmoid"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i])
      return static_cast<ConvActivation>(i);
  fail(ErrorKind::Internal, "conv2d_packed: no activation ", name);
}

} // namespace

void conv2dPackKernel(const Conv2dPackArgs<Tensor> &args, Span<Tensor> outs) {
  Tensor w = asContiguous(args.weight, DType::F32);
  ConvShape s;
  s.groups = args.groups, s.inChannels = w.size(1) * s.groups, s.outChannels = w.size(0);
  s.kernelHeight = w.size(2), s.kernelWidth = w.size(3);
  DLC_CHECK(outs[0].numel() == convLastPackedSize(s), "conv2d_pack: ", outs[0].numel(), " elements for ",
            convLastPackedSize(s));
  convLastPack(s, args.planar, w.dataAs<float>(), outs[0].dataAs<float>());
}

void conv2dPackedKernel(const Conv2dPackedArgs<Tensor> &args, Span<Tensor> outs) {
  ConvShape s = shapeOf(args.input.sizes(), args.weight_sizes, outs[0].sizes(), args.stride, args.padding,
                        args.dilation, args.groups);
  DLC_CHECK(args.packed.numel() == convLastPackedSize(s), "conv2d_packed: a weight packed for another shape");
  Tensor x = args.planar ? asContiguous(args.input) : asChannelsLast(args.input), residual;
  ChannelsLastOut y(outs[0]);
  ConvEpilogue e;
  e.activation = activationOf(args.activation);
  Tensor scale = args.scale ? asContiguous(*args.scale) : Tensor(),
         shift = args.shift ? asContiguous(*args.shift) : Tensor();
  e.scale = args.scale ? scale.dataAs<float>() : nullptr;
  e.shift = args.shift ? shift.dataAs<float>() : nullptr;
  if (args.residual)
    residual = asChannelsLast(*args.residual), e.residual = residual.dataAs<float>();
  convLastForward(s, args.planar, x.dataAs<float>(), args.packed.dataAs<float>(), e, y.get().dataAs<float>());
  y.commit();
}

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
  ContiguousOut dw(outs[0], type);
  ConvShape s = shapeOf(args.input.sizes(), dw.get().sizes(), args.grad.sizes(), args.stride, args.padding,
                        args.dilation, args.groups);
  if (type == DType::F32 && args.input.dtype() == type && isChannelsLast(args.input) && isChannelsLast(args.grad) &&
      convLastHasWeightGradient(s)) {
    convLastBackwardWeight(s, args.input.dataAs<float>(), args.grad.dataAs<float>(), dw.data<float>());
    return dw.commit();
  }
  Tensor dy = asContiguous(args.grad), x = asContiguous(args.input, type);
  visitConv(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    convBackwardWeight<T>(s, x.dataAs<T>(), dy.dataAs<T>(), dw.template data<T>());
  });
  dw.commit();
}

} // namespace dlc::kernels
