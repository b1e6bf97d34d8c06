// Metas of reductions, scans and softmax.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc::ops {

namespace {

/// The arguments that the ops of a family have in common, found by name.
struct Common {
  Common(const OpInfo &op, Span<const Arg<TensorMeta>> args) : self(*args[0].value) {
    for (size_t i = 1; i < args.size(); ++i) {
      Str name = op.params[i].name;
      if (name == "dim")
        dim = &args[i];
      else if (name == "keepdim")
        keepdim = args[i].b();
      else if (name == "dtype" && !args[i].isNone())
        dtype = args[i].dtype;
    }
  }
  const TensorMeta &self;
  const Arg<TensorMeta> *dim = nullptr;
  bool keepdim = false;
  std::optional<DType> dtype;
};

bool needsElements(Str name) { return name == "amax" || name == "amin"; }

} // namespace

void reduceMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  Common c(op, args);
  std::optional<Ints> dims = c.dim && !c.dim->isNone() ? std::optional<Ints>(c.dim->intList()) : std::nullopt;
  uint64_t mask = dimMask(op.name, dims, c.self);
  DType in = c.dtype.value_or(c.self.dtype);
  if (op.promotion == Promotion::None && !(op.dtypes >> static_cast<int>(in) & 1))
    fail(ErrorKind::NotImplemented, op.name, ": `self` is ", describe(c.self),
         ", but the result needs a float dtype\npass dtype=, or convert with .float() first");
  if (needsElements(op.name))
    for (size_t i = 0; i < c.self.sizes.size(); ++i)
      if (mask >> i & 1)
        DLC_REQUIRE(c.self.sizes[i] != 0, Index, op.name, ": dimension ", i, " of `self` of sizes ",
                    listStr(c.self.sizes),
                    " is empty and has no extreme element\nreduce over a dimension that has elements");
  DType t = in;
  if (op.promotion == Promotion::ToBool)
    t = DType::Bool;
  else if (op.promotion == Promotion::ToFloat)
    t = toFloatType(in);
  else if (op.promotion == Promotion::Sum && !c.dtype && isIntegral(in))
    t = DType::I64;
  giveDense(r, t, reducedSizes(c.self, mask, c.keepdim));
}

void argReduceMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  Common c(op, args);
  requireDType(op, c.self.dtype);
  if (!c.dim || c.dim->isNone()) {
    DLC_REQUIRE(c.self.numel() != 0, Index, op.name, ": `self` of sizes ", listStr(c.self.sizes),
                " is empty\npass `dim`, a dimension that has elements");
    return giveDense(r, DType::I64, reducedSizes(c.self, dimMask(op.name, std::nullopt, c.self), c.keepdim));
  }
  int64_t d = wrapDim(op.name, "dim", c.dim->i, c.self);
  if (c.self.dim() > 0)
    DLC_REQUIRE(c.self.sizes[d] != 0, Index, op.name, ": dimension ", d, " of `self` of sizes ", listStr(c.self.sizes),
                " is empty\nreduce over a dimension that has elements");
  giveDense(r, DType::I64, reducedSizes(c.self, c.self.dim() ? uint64_t(1) << d : 0, c.keepdim));
}

void scanMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  Common c(op, args);
  wrapDim(op.name, "dim", c.dim->i, c.self);
  giveDense(r, c.dtype ? *c.dtype : isIntegral(c.self.dtype) ? DType::I64 : c.self.dtype, c.self.sizes);
}

void softmaxMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  Common c(op, args);
  wrapDim(op.name, "dim", c.dim->i, c.self);
  DType t = c.dtype.value_or(c.self.dtype);
  requireDType(op, t);
  giveDense(r, t, c.self.sizes);
}

} // namespace dlc::ops
