// Metas of creation and random ops.
#include "runtime/op/meta/MetaUtil.h"
#include <cmath>

namespace dlc::ops {

namespace {

/// The arguments that the ops of a family have in common, found by name.
struct Common {
  Common(const OpInfo &op, Span<const Arg<TensorMeta>> args) {
    for (size_t i = 0; i < args.size(); ++i) {
      Str name = op.params[i].name;
      if (name == "dtype" && !args[i].isNone())
        dtype = args[i].dtype;
      else if (name == "device" && !args[i].isNone())
        DLC_REQUIRE(args[i].str().substr(0, 3) == "cpu", Runtime, op.name, ": device '", args[i].str(),
                    "' is not available in this build\nuse device='cpu'");
      else if (name == "fill_value")
        fill = &args[i].num;
      else if (name == "size")
        size = args[i].dimList();
      else if (name == "low")
        low = args[i].dim, integers = true;
      else if (name == "high")
        high = args[i].dim;
    }
  }
  std::optional<DType> dtype;
  const Number *fill = nullptr;
  Span<const Dim> size;
  Dim low, high;
  bool integers = false;
};

void requireFloatResult(const OpInfo &op, DType t) {
  DLC_REQUIRE(op.kind != OpKind::Random || isFloat(t), NotImplemented, op.name, ": not implemented for ", t,
              "\nuse a float dtype, or randint()");
}

} // namespace

void creationMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  Common c(op, args);
  for (const Dim &s : c.size)
    DLC_REQUIRE(s.value() >= 0, Runtime, op.name, ": size ", s, " in ", listStr(c.size),
                " is negative\nuse sizes of at least 0");
  DType t = c.dtype ? *c.dtype : c.fill ? c.fill->dtype() : c.integers ? DType::I64 : defaultDType();
  if (c.integers)
    DLC_REQUIRE(c.low < c.high, Runtime, op.name, ": `low` ", c.low, " is not less than `high` ", c.high,
                "\ngive a range that holds an integer");
  else
    requireFloatResult(op, t);
  giveDense(r, t, dimsOf(c.size));
}

void creationLikeMeta(const OpInfo &op, Span<const Arg<TensorMeta>> args, MetaResult &r) {
  Common c(op, args);
  const TensorMeta &self = *args[0].value;
  DType t = c.dtype.value_or(self.dtype);
  requireFloatResult(op, t);
  give(r, likeMeta(self, t));
}

void arangeMeta(const ArangeArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.step.value() != 0, Runtime, "arange: `step` is 0\nuse another step");
  bool up = a.step > 0;
  DLC_REQUIRE(up ? a.end >= a.start : a.end <= a.start, Runtime, "arange: from `start` ", a.start, " to `end` ", a.end,
              " there is no way in steps of ", a.step, "\nchange the sign of `step`");
  Dim n = a.step.same(1) ? a.end - a.start : floorDiv(a.end - a.start + a.step - (up ? 1 : -1), a.step);
  giveDense(r, a.dtype.value_or(DType::I64), {n});
}

void arangeFloatMeta(const ArangeFloatArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.step != 0 && std::isfinite(a.start) && std::isfinite(a.end) && std::isfinite(a.step), Runtime,
              "arange: from ", a.start, " to ", a.end, " in steps of ", a.step,
              " is no finite range\nuse finite numbers and a step other than 0");
  DLC_REQUIRE(a.step > 0 ? a.end >= a.start : a.end <= a.start, Runtime, "arange: from `start` ", a.start, " to `end` ",
              a.end, " there is no way in steps of ", a.step, "\nchange the sign of `step`");
  double n = std::ceil((a.end - a.start) / a.step);
  DLC_REQUIRE(n < 9e15, Runtime, "arange: the range has ", n, " elements\nuse a larger step");
  giveDense(r, a.dtype.value_or(defaultDType()), {static_cast<int64_t>(n)});
}

void linspaceMeta(const LinspaceArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.steps.value() >= 0, Runtime, "linspace: `steps` is ", a.steps, "\nuse at least 0");
  giveDense(r, a.dtype.value_or(defaultDType()), {a.steps});
}

void eyeMeta(const EyeArgs<TensorMeta> &a, MetaResult &r) {
  Dim m = a.m.value_or(a.n);
  DLC_REQUIRE(a.n.value() >= 0 && m.value() >= 0, Runtime, "eye: sizes ", a.n, " and ", m,
              " must not be negative\nuse sizes of at least 0");
  giveDense(r, a.dtype.value_or(defaultDType()), {a.n, m});
}

void randpermMeta(const RandpermArgs<TensorMeta> &a, MetaResult &r) {
  DLC_REQUIRE(a.n.value() >= 0, Runtime, "randperm: `n` is ", a.n, "\nuse at least 0");
  giveDense(r, a.dtype.value_or(DType::I64), {a.n});
}

void multinomialMeta(const MultinomialArgs<TensorMeta> &a, MetaResult &r) {
  const char *op = "multinomial";
  DLC_REQUIRE(isFloat(a.self.dtype), Runtime, op, ": `self` is ", describe(a.self),
              ", but weights are floats\nconvert it with .float()");
  DLC_REQUIRE(a.self.dim() == 1 || a.self.dim() == 2, Runtime, op, ": `self` is ", describe(a.self),
              "\npass a vector of weights, or a row each");
  DLC_REQUIRE(a.num_samples > 0, Runtime, op, ": `num_samples` is ", a.num_samples, "\ndraw at least 1");
  DLC_REQUIRE(a.replacement || a.num_samples <= a.self.sizes.back(), Runtime, op, ": `num_samples` ", a.num_samples,
              " is more than the ", a.self.sizes.back(), " classes\nuse replacement=True, or draw fewer");
  Dims sizes = a.self.sizes;
  sizes.back() = a.num_samples;
  giveDense(r, DType::I64, sizes);
}

} // namespace dlc::ops
