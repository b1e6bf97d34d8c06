// Metas of normalisation and losses.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

namespace {
void requireShape(const char *op, const char *param, const TensorMeta *m, const Dims &want) {
  if (m)
    DLC_REQUIRE(sameSizes(m->sizes, want), Runtime, op, ": `", param, "` has sizes ", listStr(m->sizes), ", expected ",
                listStr(want), "\nmake it of those sizes");
}
void requireFloat(const char *op, const char *param, const TensorMeta &m) {
  DLC_REQUIRE(isFloat(m.dtype), NotImplemented, op, ": `", param, "` is ", describe(m),
              ", but a float dtype is needed\nconvert it with .float()");
}
/// Statistics of half-precision inputs are kept in f32.
DType statisticsType(DType t) { return t == DType::F64 ? t : DType::F32; }
} // namespace

void layerNormMeta(const LayerNormArgs<TensorMeta> &a, MetaResult &r) {
  requireFloat("layer_norm", "input", a.self);
  size_t n = a.normalized_shape.size(), rank = a.self.sizes.size();
  bool fits = n > 0 && n <= rank;
  for (size_t i = 0; fits && i < n; ++i)
    fits = a.self.sizes[rank - n + i] == Dim(a.normalized_shape[i]);
  DLC_REQUIRE(fits, Runtime, "layer_norm: `normalized_shape` ", listStr(a.normalized_shape),
              " are not the last sizes of `input`, ", listStr(a.self.sizes), "\nmake them agree");
  Dims shape;
  for (int64_t s : a.normalized_shape)
    shape.push_back(s);
  requireShape("layer_norm", "weight", a.weight, shape);
  requireShape("layer_norm", "bias", a.bias, shape);
  Dims outer(a.self.sizes.begin(), a.self.sizes.end() - n);
  for (size_t i = 0; i < n; ++i)
    outer.push_back(1);
  giveDense(r, a.self.dtype, a.self.sizes);
  giveDense(r, statisticsType(a.self.dtype), outer);
  giveDense(r, statisticsType(a.self.dtype), outer);
}

void layerNormBackwardMeta(const LayerNormBackwardArgs<TensorMeta> &a, MetaResult &r) {
  Dims shape;
  for (int64_t s : a.normalized_shape)
    shape.push_back(s);
  giveDense(r, a.self.dtype, a.self.sizes);
  giveDense(r, a.weight ? a.weight->dtype : a.self.dtype, shape);
  giveDense(r, a.weight ? a.weight->dtype : a.self.dtype, shape);
}

void batchNormMeta(const BatchNormArgs<TensorMeta> &a, MetaResult &r) {
  const char *op = "batch_norm";
  requireFloat(op, "input", a.input);
  DLC_REQUIRE(a.input.dim() >= 2, Value, op, ": `input` is ", describe(a.input), "\npass (N, C) or (N, C, ...)");
  Dims channels{a.input.sizes[1]};
  requireShape(op, "running_mean", a.running_mean, channels);
  requireShape(op, "running_var", a.running_var, channels);
  requireShape(op, "weight", a.weight, channels);
  requireShape(op, "bias", a.bias, channels);
  DLC_REQUIRE(a.training || (a.running_mean && a.running_var), Runtime, op,
              ": without training, `running_mean` and `running_var` are needed\npass them, or training=True");
  if (a.training)
    DLC_REQUIRE(a.input.numel() != a.input.sizes[1], Value, op,
                ": training needs more than one value a channel, `input` has sizes ", listStr(a.input.sizes),
                "\nuse a larger batch, or eval()");
  give(r, denseMeta(a.input.dtype, a.input.sizes, imageStrides(a.input, a.input.sizes)));
  giveDense(r, statisticsType(a.input.dtype), channels);
  giveDense(r, statisticsType(a.input.dtype), channels);
}

void batchNormBackwardMeta(const BatchNormBackwardArgs<TensorMeta> &a, MetaResult &r) {
  Dims channels{a.input.sizes[1]};
  give(r, denseMeta(a.input.dtype, a.input.sizes, imageStrides(a.input, a.input.sizes)));
  giveDense(r, a.weight ? a.weight->dtype : a.input.dtype, channels);
  giveDense(r, a.weight ? a.weight->dtype : a.input.dtype, channels);
}

void nllLossMeta(const NllLossArgs<TensorMeta> &a, MetaResult &r) {
  const char *op = "nll_loss";
  requireFloat(op, "input", a.self);
  requireIndexType(op, "target", a.target);
  DLC_REQUIRE(a.self.dim() >= 1, Value, op, ": `input` has no dimensions\npass (C), (N, C) or (N, C, ...)");
  Dims want;
  size_t channel = a.self.dim() == 1 ? 0 : 1;
  for (size_t i = 0; i < a.self.sizes.size(); ++i)
    if (i != channel)
      want.push_back(a.self.sizes[i]);
  DLC_REQUIRE(sameSizes(a.target.sizes, want), Value, op, ": `target` has sizes ", listStr(a.target.sizes),
              " but `input` of sizes ", listStr(a.self.sizes), " needs ", listStr(want),
              "\nmake `target` of those sizes");
  requireShape(op, "weight", a.weight, Dims{a.self.sizes[channel]});
  DLC_REQUIRE(a.reduction == "mean" || a.reduction == "sum" || a.reduction == "none", Value, op, ": `reduction` is '",
              a.reduction, "'\nuse 'mean', 'sum' or 'none'");
  giveDense(r, a.self.dtype, a.reduction == "none" ? want : Dims());
  giveDense(r, a.self.dtype, {});
}

void nllLossBackwardMeta(const NllLossBackwardArgs<TensorMeta> &a, MetaResult &r) {
  giveDense(r, a.dtype, dimsOf(a.input_sizes));
}

} // namespace dlc::ops
