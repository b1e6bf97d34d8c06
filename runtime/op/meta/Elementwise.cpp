// Metas of elementwise ops.
#include "runtime/op/meta/MetaUtil.h"
#include <cstring>

namespace dlc::ops {

namespace {

/// Sizes by broadcasting, strides from the operands' memory order.
void giveBroadcast(const char *op, Span<const TensorMeta *const> operands, DType dtype, MetaResult &r) {
  Dims sizes = broadcastSizes(op, operands);
  give(r, denseMeta(dtype, sizes, layoutLike(operands, sizes)));
}

DType promoted(const OpInfo &op, DType t) {
  switch (op.promotion) {
  case Promotion::ToFloat:
    return toFloatType(t);
  case Promotion::ToBool:
    return DType::Bool;
  default:
    return t;
  }
}

} // namespace

void elementwiseMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  Metas operands;
  for (const Arg<TensorMeta> &a : args)
    if (a.tag == ArgTag::Value)
      operands.push_back(a.value);
  DType t = resultType(operands);
  if (op.dtypes != (1u << kNumDTypes) - 1) {
    requireDType(op, t);
    if (op.promotion == Promotion::Arith && !operands[0]->wrapped && !(op.dtypes >> static_cast<int>(DType::I64) & 1))
      requireDType(op, operands[0]->dtype); // a float operand does not make a function of floats take integers
  }
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].tag == ArgTag::Num && isIntegral(t))
      DLC_REQUIRE(!args[i].num.isFloat() || std::strcmp(op.params[i].name, "alpha") != 0, Runtime, op.name,
                  ": `alpha` is the float ", args[i].num, " but the operands are ", t,
                  "\npass an int, or convert the operands to a float dtype");
  giveBroadcast(op.name, operands, promoted(op, t), r);
}

void divMeta(const DivArgs<TensorMeta> &a, MetaResult &r) {
  const TensorMeta *operands[] = {&a.self, &a.other};
  DType t = resultType(operands);
  DLC_REQUIRE(!a.rounding_mode || *a.rounding_mode == "floor" || *a.rounding_mode == "trunc", Runtime,
              "div: `rounding_mode` is '", *a.rounding_mode, "'\nuse None, 'floor' or 'trunc'");
  DLC_REQUIRE(!a.rounding_mode || t != DType::Bool, NotImplemented,
              "div: rounding is not implemented for bool\nconvert to an integer dtype first");
  giveBroadcast("div", operands, a.rounding_mode ? t : toFloatType(t), r);
}

void powMeta(const PowArgs<TensorMeta> &a, MetaResult &r) {
  const TensorMeta *operands[] = {&a.self, &a.exponent};
  DType t = resultType(operands);
  DLC_REQUIRE(t != DType::Bool, NotImplemented, "pow: not implemented for bool\nconvert to an integer dtype first");
  giveBroadcast("pow", operands, t, r);
}

void clampMeta(const ClampArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.min || a.max, Runtime, "clamp: both `min` and `max` are None\npass at least one bound");
  Metas operands{&a.self};
  for (const TensorMeta *m : {a.min, a.max})
    if (m)
      operands.push_back(m);
  DType t = resultType(operands);
  DLC_REQUIRE(t != DType::Bool, NotImplemented, "clamp: not implemented for bool\nconvert to an integer dtype first");
  giveBroadcast("clamp", operands, t, r);
}

namespace {
void requireBool(const char *op, const char *param, const TensorMeta &m) {
  DLC_REQUIRE(m.dtype == DType::Bool, Runtime, op, ": `", param, "` is ", describe(m),
              ", not bool\ncompare it with 0, or convert it with .bool()");
}
} // namespace

void whereMeta(const WhereArgs<TensorMeta> &a, MetaResult &r) {
  requireBool("where", "condition", a.condition);
  const TensorMeta *values[] = {&a.self, &a.other};
  const TensorMeta *all[] = {&a.condition, &a.self, &a.other};
  giveBroadcast("where", all, resultType(values), r);
}

void maskedFillMeta(const MaskedFillArgs<TensorMeta> &a, MetaResult &r) {
  requireBool("masked_fill", "mask", a.mask);
  DLC_REQUIRE(a.value.sizes.empty(), Runtime, "masked_fill: `value` is ", describe(a.value),
              ", but must be a number or a 0-d tensor\nuse where() for a tensor of values");
  bool fits = categoryOf(a.value.dtype) <= categoryOf(a.self.dtype) || (a.value.wrapped && !isFloat(a.value.dtype));
  DLC_REQUIRE(fits, Runtime, "masked_fill: `value` is ", a.value.dtype, " and can't be stored in `self`, which is ",
              a.self.dtype, "\nconvert `self` first");
  const TensorMeta *operands[] = {&a.self, &a.mask};
  giveDense(r, a.self.dtype, broadcastSizes("masked_fill", operands));
}

void castMeta(const CastArgs<TensorMeta> &a, MetaResult &r) { give(r, likeMeta(a.self, a.dtype)); }

void likeFirstMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  const TensorMeta &self = *args[0].value;
  requireDType(op, self.dtype);
  give(r, likeMeta(self, self.dtype));
}

} // namespace dlc::ops
