// Metas of fused optimizer steps: they only check, as everything they write is a parameter.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

namespace {
void requireMatching(const char *op, Span<const TensorMeta> params, const char *name, Span<const TensorMeta> list) {
  DLC_REQUIRE(list.size() == params.size(), Runtime, op, ": ", params.size(), " `params` but ", list.size(), " `", name,
              "`\ngive one a parameter");
  for (size_t i = 0; i < params.size(); ++i)
    DLC_REQUIRE(list[i].dtype == params[i].dtype && sameSizes(list[i].sizes, params[i].sizes), Runtime, op,
                ": parameter ", i, " is ", describe(params[i]), " but its entry in `", name, "` is ", describe(list[i]),
                "\nmake them agree");
}
} // namespace

void sgdStepMeta(const SgdStepArgs<TensorMeta> &a, MetaResult &) {
  requireMatching("sgd_step", a.params, "grads", a.grads);
  if (!a.momentum_buffers.empty())
    requireMatching("sgd_step", a.params, "momentum_buffers", a.momentum_buffers);
}

void adamStepMeta(const AdamStepArgs<TensorMeta> &a, MetaResult &) {
  requireMatching("adam_step", a.params, "grads", a.grads);
  requireMatching("adam_step", a.params, "exp_avgs", a.exp_avgs);
  requireMatching("adam_step", a.params, "exp_avg_sqs", a.exp_avg_sqs);
  DLC_REQUIRE(a.step.sizes.empty() && isFloat(a.step.dtype), Runtime, "adam_step: `step` is ", describe(a.step),
              "\npass a float tensor without dimensions");
}

void totalNormMeta(const TotalNormArgs<TensorMeta> &a, MetaResult &r) {
  DType t = a.tensors.empty() ? defaultDType() : a.tensors[0].dtype;
  for (const TensorMeta &m : a.tensors)
    t = promoteTypes(t, m.dtype);
  DLC_REQUIRE(isFloat(t), Runtime, "total_norm: `tensors` are ", t, "\npass float tensors");
  giveDense(r, t, {});
}

void clipByNormMeta(const ClipByNormArgs<TensorMeta> &a, MetaResult &) {
  DLC_REQUIRE(a.total_norm.sizes.empty(), Runtime, "clip_by_norm: `total_norm` is ", describe(a.total_norm),
              "\npass the result of total_norm()");
}

} // namespace dlc::ops
