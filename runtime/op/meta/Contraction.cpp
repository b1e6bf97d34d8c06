// Metas of matrix products, convolution and pooling.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

namespace {
void requireInner(const char *op, const char *pa, const TensorMeta &a, const char *pb, const TensorMeta &b) {
  DLC_REQUIRE(sameDim(a.sizes.back(), b.sizes[b.sizes.size() - 2]), Runtime, op, ": `", pa, "` of sizes ",
              listStr(a.sizes), " and `", pb, "` of sizes ", listStr(b.sizes), " can't be multiplied: ", a.sizes.back(),
              " columns against ", b.sizes[b.sizes.size() - 2], " rows\nmake them equal");
}
void requireNumbers(const char *op, const TensorMeta &a) {
  DLC_REQUIRE(a.dtype != DType::Bool, NotImplemented, op,
              ": not implemented for bool\nconvert to an integer or float dtype first");
}
} // namespace

void mmMeta(const MmArgs<TensorMeta> &a, MetaResult &r) {
  requireRank("mm", "self", a.self, 2);
  requireRank("mm", "mat2", a.mat2, 2);
  requireSameDType("mm", "self", a.self, "mat2", a.mat2);
  requireNumbers("mm", a.self);
  requireInner("mm", "self", a.self, "mat2", a.mat2);
  giveDense(r, a.self.dtype, {a.self.sizes[0], a.mat2.sizes[1]});
}

void bmmMeta(const BmmArgs<TensorMeta> &a, MetaResult &r) {
  requireRank("bmm", "self", a.self, 3);
  requireRank("bmm", "mat2", a.mat2, 3);
  requireSameDType("bmm", "self", a.self, "mat2", a.mat2);
  requireNumbers("bmm", a.self);
  DLC_REQUIRE(sameDim(a.self.sizes[0], a.mat2.sizes[0]), Runtime, "bmm: `self` of sizes ", listStr(a.self.sizes),
              " and `mat2` of sizes ", listStr(a.mat2.sizes),
              " are batches of different size\nmake the first sizes equal, or use matmul(), which broadcasts");
  requireInner("bmm", "self", a.self, "mat2", a.mat2);
  giveDense(r, a.self.dtype, {a.self.sizes[0], a.self.sizes[1], a.mat2.sizes[2]});
}

void addmmMeta(const AddmmArgs<TensorMeta> &a, MetaResult &r) {
  requireRank("addmm", "mat1", a.mat1, 2);
  requireRank("addmm", "mat2", a.mat2, 2);
  requireSameDType("addmm", "mat1", a.mat1, "mat2", a.mat2);
  requireSameDType("addmm", "self", a.self, "mat1", a.mat1);
  requireNumbers("addmm", a.mat1);
  requireInner("addmm", "mat1", a.mat1, "mat2", a.mat2);
  Dims sizes{a.mat1.sizes[0], a.mat2.sizes[1]};
  DLC_REQUIRE(expandsTo(a.self.sizes, sizes), Runtime, "addmm: `self` of sizes ", listStr(a.self.sizes),
              " does not broadcast to the product's ", listStr(sizes), "\nmake the sizes equal, or those of `self` 1");
  giveDense(r, a.mat1.dtype, sizes);
}

void baddbmmMeta(const BaddbmmArgs<TensorMeta> &a, MetaResult &r) {
  MetaResult product;
  bmmMeta({a.batch1, a.batch2}, product);
  requireSameDType("baddbmm", "self", a.self, "batch1", a.batch1);
  DLC_REQUIRE(expandsTo(a.self.sizes, product.outs[0].sizes), Runtime, "baddbmm: `self` of sizes ",
              listStr(a.self.sizes), " does not broadcast to the product's ", listStr(product.outs[0].sizes),
              "\nmake the sizes equal, or those of `self` 1");
  give(r, product.outs[0]);
}

namespace {

/// Output size of a window of `kernel` elements `dilation` apart.
Dim windowSize(const Dim &in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  return floorDiv(in + 2 * pad - dilation * (kernel - 1) - 1, stride) + 1;
}

void requirePair(const char *op, const char *param, Ints v, int64_t least) {
  DLC_REQUIRE(v.size() == 2, Runtime, op, ": `", param, "` ", listStr(v),
              " must be one int or two\ngive (height, width)");
  for (int64_t x : v)
    DLC_REQUIRE(x >= least, Runtime, op, ": `", param, "` ", listStr(v), " must be at least ", least,
                "\nuse a larger value");
}

TensorMeta imageLike(const TensorMeta &input, DType dtype, const Dims &sizes) {
  return denseMeta(dtype, sizes, imageStrides(input, sizes));
}

} // namespace

void conv2dMeta(const Conv2dArgs<TensorMeta> &a, MetaResult &r) {
  const char *op = "conv2d";
  DLC_REQUIRE(a.input.dim() == 4 || a.input.dim() == 3, Runtime, op, ": `input` is ", describe(a.input),
              "\npass (N, C, H, W) or (C, H, W)");
  requireRank(op, "weight", a.weight, 4);
  requireSameDType(op, "input", a.input, "weight", a.weight);
  DLC_REQUIRE(isFloat(a.input.dtype), Runtime, op, ": not implemented for ", a.input.dtype,
              "\nconvert `input` and `weight` to a float dtype");
  requirePair(op, "stride", a.stride, 1);
  requirePair(op, "padding", a.padding, 0);
  requirePair(op, "dilation", a.dilation, 1);
  DLC_REQUIRE(a.groups > 0, Runtime, op, ": `groups` is ", a.groups, "\nuse at least 1");
  size_t batch = a.input.sizes.size() - 3;
  const Dim &channels = a.input.sizes[batch];
  DLC_REQUIRE(sameDim(channels, a.weight.sizes[1] * a.groups) && (a.weight.sizes[0].value() % a.groups) == 0, Runtime,
              op, ": `input` of sizes ", listStr(a.input.sizes), " does not fit `weight` of sizes ",
              listStr(a.weight.sizes), " with ", a.groups, " groups: ", channels, " channels, expected ",
              a.weight.sizes[1] * a.groups, "\n`weight` is (out, C / groups, kh, kw) and out a multiple of groups");
  if (a.bias) {
    requireSameDType(op, "bias", *a.bias, "weight", a.weight);
    DLC_REQUIRE(a.bias->dim() == 1 && sameDim(a.bias->sizes[0], a.weight.sizes[0]), Runtime, op, ": `bias` has sizes ",
                listStr(a.bias->sizes), " but `weight` has ", a.weight.sizes[0],
                " output channels\nmake `bias` a vector of that length");
  }
  Dims sizes;
  if (batch)
    sizes.push_back(a.input.sizes[0]);
  sizes.push_back(a.weight.sizes[0]);
  for (int i = 0; i < 2; ++i) {
    int64_t kernel = a.weight.sizes[2 + i].concretize();
    Dim out = windowSize(a.input.sizes[batch + 1 + i], kernel, a.stride[i], a.padding[i], a.dilation[i]);
    DLC_REQUIRE(kernel > 0 && out > 0, Runtime, op, ": `weight` of sizes ", listStr(a.weight.sizes),
                " does not fit the padded `input` of sizes ", listStr(a.input.sizes),
                "\npad more, or use a smaller kernel");
    sizes.push_back(out);
  }
  give(r, imageLike(a.input, a.input.dtype, sizes));
}

/// Output channels are padded to 16 in each group, or over the groups where each has one channel.
void conv2dPackMeta(const Conv2dPackArgs<TensorMeta> &a, MetaResult &r) {
  requireRank("conv2d_pack", "weight", a.weight, 4);
  int64_t out = a.weight.sizes[0].concretize(), in = a.weight.sizes[1].concretize(), groups = a.groups;
  int64_t area = a.weight.sizes[2].concretize() * a.weight.sizes[3].concretize();
  if (groups > 1 && in == 1 && out == groups)
    groups = 1;
  giveDense(r, a.weight.dtype, {Dim(groups * in * area * ((out / groups + 15) / 16 * 16))});
}
void conv2dPackedMeta(const Conv2dPackedArgs<TensorMeta> &a, MetaResult &r) {
  TensorMeta weight = TensorMeta::contiguous(a.input.dtype, Dims(a.weight_sizes.begin(), a.weight_sizes.end()));
  conv2dMeta({a.input, weight, nullptr, a.stride, a.padding, a.dilation, a.groups}, r);
}
void conv2dBackwardInputMeta(const Conv2dBackwardInputArgs<TensorMeta> &a, MetaResult &r) {
  give(r, imageLike(a.grad, a.grad.dtype, dimsOf(a.input_sizes)));
}
void conv2dBackwardWeightMeta(const Conv2dBackwardWeightArgs<TensorMeta> &a, MetaResult &r) {
  giveDense(r, a.grad.dtype, dimsOf(a.weight_sizes));
}

namespace {

struct Pool {
  const char *op;
  const TensorMeta &input;
  Ints kernel;
  const std::optional<Ints> &stride;
  Ints padding;
  Ints dilation;
  bool ceil;
};

Dims pooledSizes(const Pool &p) {
  DLC_REQUIRE(p.input.dim() == 4 || p.input.dim() == 3, Runtime, p.op, ": `input` is ", describe(p.input),
              "\npass (N, C, H, W) or (C, H, W)");
  requirePair(p.op, "kernel_size", p.kernel, 1);
  Ints stride = p.stride && !p.stride->empty() ? *p.stride : p.kernel;
  requirePair(p.op, "stride", stride, 1);
  requirePair(p.op, "padding", p.padding, 0);
  requirePair(p.op, "dilation", p.dilation, 1);
  Dims sizes = p.input.sizes;
  for (int i = 0; i < 2; ++i) {
    DLC_REQUIRE(2 * p.padding[i] <= p.kernel[i], Runtime, p.op, ": `padding` ", listStr(p.padding),
                " is more than half of `kernel_size` ", listStr(p.kernel), "\npad less");
    Dim &size = sizes[sizes.size() - 2 + i];
    Dim in = size, out = windowSize(in, p.kernel[i], stride[i], p.padding[i], p.dilation[i]);
    if (p.ceil) {
      out = floorDiv(in + 2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1 + stride[i] - 1, stride[i]) + 1;
      if ((out - 1) * stride[i] >= in + p.padding[i]) // the last window must start inside
        out = out - 1;
    }
    DLC_REQUIRE(out > 0, Runtime, p.op, ": windows of ", listStr(p.kernel), " do not fit `input` of sizes ",
                listStr(p.input.sizes), "\nuse smaller windows or pad more");
    size = out;
  }
  return sizes;
}

} // namespace

void maxPool2dMeta(const MaxPool2dArgs<TensorMeta> &a, MetaResult &r) {
  Dims sizes = pooledSizes({"max_pool2d", a.input, a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode});
  give(r, imageLike(a.input, a.input.dtype, sizes));
  give(r, imageLike(a.input, DType::I64, sizes));
}
void maxPool2dValuesMeta(const MaxPool2dValuesArgs<TensorMeta> &a, MetaResult &r) {
  Dims sizes = pooledSizes({"max_pool2d", a.input, a.kernel_size, a.stride, a.padding, a.dilation, a.ceil_mode});
  give(r, imageLike(a.input, a.input.dtype, sizes));
}
void maxPool2dBackwardMeta(const MaxPool2dBackwardArgs<TensorMeta> &a, MetaResult &r) {
  give(r, imageLike(a.grad, a.grad.dtype, dimsOf(a.input_sizes)));
}

void avgPool2dMeta(const AvgPool2dArgs<TensorMeta> &a, MetaResult &r) {
  const int64_t one[] = {1, 1};
  DLC_REQUIRE(isFloat(a.input.dtype), NotImplemented, "avg_pool2d: not implemented for ", a.input.dtype,
              "\nconvert to a float dtype first");
  DLC_REQUIRE(!a.divisor_override || *a.divisor_override != 0, Runtime,
              "avg_pool2d: `divisor_override` is 0\nleave it out, or use another number");
  give(r, imageLike(a.input, a.input.dtype,
                    pooledSizes({"avg_pool2d", a.input, a.kernel_size, a.stride, a.padding, one, a.ceil_mode})));
}
void avgPool2dBackwardMeta(const AvgPool2dBackwardArgs<TensorMeta> &a, MetaResult &r) {
  give(r, imageLike(a.grad, a.grad.dtype, dimsOf(a.input_sizes)));
}

void adaptiveAvgPool2dMeta(const AdaptiveAvgPool2dArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.input.dim() == 4 || a.input.dim() == 3, Runtime, "adaptive_avg_pool2d: `input` is ", describe(a.input),
              "\npass (N, C, H, W) or (C, H, W)");
  DLC_REQUIRE(isFloat(a.input.dtype), NotImplemented, "adaptive_avg_pool2d: not implemented for ", a.input.dtype,
              "\nconvert to a float dtype first");
  DLC_REQUIRE(a.output_size.size() == 2, Runtime, "adaptive_avg_pool2d: `output_size` ", listStr(a.output_size),
              "\ngive (height, width)");
  Dims sizes = a.input.sizes;
  sizes[sizes.size() - 2] = a.output_size[0];
  sizes[sizes.size() - 1] = a.output_size[1];
  give(r, imageLike(a.input, a.input.dtype, sizes));
}
void adaptiveAvgPool2dBackwardMeta(const AdaptiveAvgPool2dBackwardArgs<TensorMeta> &a, MetaResult &r) {
  give(r, imageLike(a.grad, a.grad.dtype, dimsOf(a.input_sizes)));
}

} // namespace dlc::ops
