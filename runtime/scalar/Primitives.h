// The one list of primitives: name, number of operands and code. `kernel.prim`, the op table's
// scalar dags and the CUDA text resolve names here. The
// C++ function of a primitive has its name and a trailing underscore, as in the records' dags:
// `(exp_ $self)` is `scalar::exp_(b, self)` and `kernel.prim "exp"`.
#ifndef DLC_RUNTIME_SCALAR_PRIMITIVES_H
#define DLC_RUNTIME_SCALAR_PRIMITIVES_H

#include "runtime/scalar/Activations.h"
#include "runtime/scalar/Cast.h"
#include "runtime/scalar/Philox.h"

#include <string_view>
#include <tuple>

namespace dlc::scalar {

/// What kind of result a primitive has: that of its last operand, or a fixed one.
enum class ResultKind : uint8_t { Operand, Bool, F32, Cast };

/// One primitive; `code(builder, operands...)` emits it.
template <int Arity, class Code> struct Primitive {
  static constexpr int kArity = Arity;
  std::string_view name;
  ResultKind result;
  Code code;
};

namespace detail {
template <int Arity, class Code>
constexpr auto prim(std::string_view name, Code code, ResultKind result = ResultKind::Operand) {
  return Primitive<Arity, Code>{name, result, code};
}
template <class Code> constexpr auto test(std::string_view name, Code code) {
  return Primitive<1, Code>{name, ResultKind::Bool, code};
}
template <class Code> constexpr auto test2(std::string_view name, Code code) {
  return Primitive<2, Code>{name, ResultKind::Bool, code};
}
} // namespace detail

/// Every primitive, by family.
inline constexpr auto kPrimitives = std::tuple{
    // Arithmetic.
    detail::prim<2>("add", [](auto &b, auto x, auto y) { return add_(b, x, y); }),
    detail::prim<2>("sub", [](auto &b, auto x, auto y) { return sub_(b, x, y); }),
    detail::prim<2>("mul", [](auto &b, auto x, auto y) { return mul_(b, x, y); }),
    detail::prim<2>("div", [](auto &b, auto x, auto y) { return div_(b, x, y); }),
    detail::prim<3>("fma", [](auto &b, auto x, auto y, auto z) { return fma_(b, x, y, z); }),
    detail::prim<1>("neg", [](auto &b, auto x) { return neg_(b, x); }),
    detail::prim<1>("abs", [](auto &b, auto x) { return abs_(b, x); }),
    detail::prim<1>("sign", [](auto &b, auto x) { return sign_(b, x); }),
    detail::prim<2>("min", [](auto &b, auto x, auto y) { return min_(b, x, y); }),
    detail::prim<2>("max", [](auto &b, auto x, auto y) { return max_(b, x, y); }),
    detail::prim<2>("fmin", [](auto &b, auto x, auto y) { return fmin_(b, x, y); }),
    detail::prim<2>("fmax", [](auto &b, auto x, auto y) { return fmax_(b, x, y); }),
    detail::prim<2>("floor_div", [](auto &b, auto x, auto y) { return floor_div_(b, x, y); }),
    detail::prim<2>("trunc_div", [](auto &b, auto x, auto y) { return trunc_div_(b, x, y); }),
    detail::prim<2>("remainder", [](auto &b, auto x, auto y) { return remainder_(b, x, y); }),
    detail::prim<2>("fmod", [](auto &b, auto x, auto y) { return fmod_(b, x, y); }),
    detail::prim<2>("pow", [](auto &b, auto x, auto y) { return pow_(b, x, y); }),
    detail::prim<1>("square", [](auto &b, auto x) { return square_(b, x); }),
    detail::prim<1>("reciprocal", [](auto &b, auto x) { return reciprocal_(b, x); }),
    detail::prim<1>("sqrt", [](auto &b, auto x) { return sqrt_(b, x); }),
    detail::prim<1>("rsqrt", [](auto &b, auto x) { return rsqrt_(b, x); }),
    detail::prim<2>("copysign", [](auto &b, auto x, auto y) { return copysign_(b, x, y); }),
    detail::prim<3>("lerp", [](auto &b, auto x, auto y, auto w) { return lerp_(b, x, y, w); }),
    detail::prim<3>("clamp", [](auto &b, auto x, auto l, auto h) { return clamp_(b, x, l, h); }),
    // Rounding.
    detail::prim<1>("floor", [](auto &b, auto x) { return floor_(b, x); }),
    detail::prim<1>("ceil", [](auto &b, auto x) { return ceil_(b, x); }),
    detail::prim<1>("trunc", [](auto &b, auto x) { return trunc_(b, x); }),
    detail::prim<1>("round", [](auto &b, auto x) { return round_(b, x); }),
    detail::prim<1>("frac", [](auto &b, auto x) { return frac_(b, x); }),
    // Transcendental.
    detail::prim<1>("exp", [](auto &b, auto x) { return exp_(b, x); }),
    detail::prim<1>("exp2", [](auto &b, auto x) { return exp2_(b, x); }),
    detail::prim<1>("expm1", [](auto &b, auto x) { return expm1_(b, x); }),
    detail::prim<1>("log", [](auto &b, auto x) { return log_(b, x); }),
    detail::prim<1>("log2", [](auto &b, auto x) { return log2_(b, x); }),
    detail::prim<1>("log10", [](auto &b, auto x) { return log10_(b, x); }),
    detail::prim<1>("log1p", [](auto &b, auto x) { return log1p_(b, x); }),
    detail::prim<1>("sin", [](auto &b, auto x) { return sin_(b, x); }),
    detail::prim<1>("cos", [](auto &b, auto x) { return cos_(b, x); }),
    detail::prim<1>("tan", [](auto &b, auto x) { return tan_(b, x); }),
    detail::prim<1>("asin", [](auto &b, auto x) { return asin_(b, x); }),
    detail::prim<1>("acos", [](auto &b, auto x) { return acos_(b, x); }),
    detail::prim<1>("atan", [](auto &b, auto x) { return atan_(b, x); }),
    detail::prim<2>("atan2", [](auto &b, auto y, auto x) { return atan2_(b, y, x); }),
    detail::prim<1>("sinh", [](auto &b, auto x) { return sinh_(b, x); }),
    detail::prim<1>("cosh", [](auto &b, auto x) { return cosh_(b, x); }),
    detail::prim<1>("tanh", [](auto &b, auto x) { return tanh_(b, x); }),
    detail::prim<1>("asinh", [](auto &b, auto x) { return asinh_(b, x); }),
    detail::prim<1>("acosh", [](auto &b, auto x) { return acosh_(b, x); }),
    detail::prim<1>("atanh", [](auto &b, auto x) { return atanh_(b, x); }),
    detail::prim<1>("erf", [](auto &b, auto x) { return erf_(b, x); }),
    detail::prim<1>("erfc", [](auto &b, auto x) { return erfc_(b, x); }),
    detail::prim<1>("lgamma", [](auto &b, auto x) { return lgamma_(b, x); }),
    detail::prim<1>("tgamma", [](auto &b, auto x) { return tgamma_(b, x); }),
    detail::prim<1>("cbrt", [](auto &b, auto x) { return cbrt_(b, x); }),
    detail::prim<2>("hypot", [](auto &b, auto x, auto y) { return hypot_(b, x, y); }),
    detail::prim<2>("nextafter", [](auto &b, auto x, auto y) { return nextafter_(b, x, y); }),
    // Activations.
    detail::prim<1>("sigmoid", [](auto &b, auto x) { return sigmoid_(b, x); }),
    detail::prim<1>("relu", [](auto &b, auto x) { return relu_(b, x); }),
    detail::prim<1>("relu6", [](auto &b, auto x) { return relu6_(b, x); }),
    detail::prim<2>("leaky_relu", [](auto &b, auto x, auto s) { return leaky_relu_(b, x, s); }),
    detail::prim<2>("elu", [](auto &b, auto x, auto a) { return elu_(b, x, a); }),
    detail::prim<1>("selu", [](auto &b, auto x) { return selu_(b, x); }),
    detail::prim<2>("celu", [](auto &b, auto x, auto a) { return celu_(b, x, a); }),
    detail::prim<1>("gelu_erf", [](auto &b, auto x) { return gelu_erf_(b, x); }),
    detail::prim<1>("gelu_tanh", [](auto &b, auto x) { return gelu_tanh_(b, x); }),
    detail::prim<1>("silu", [](auto &b, auto x) { return silu_(b, x); }),
    detail::prim<3>("softplus", [](auto &b, auto x, auto c, auto t) { return softplus_(b, x, c, t); }),
    detail::prim<1>("mish", [](auto &b, auto x) { return mish_(b, x); }),
    detail::prim<1>("log_sigmoid", [](auto &b, auto x) { return log_sigmoid_(b, x); }),
    detail::prim<3>("hardtanh", [](auto &b, auto x, auto l, auto h) { return hardtanh_(b, x, l, h); }),
    detail::prim<1>("hardsigmoid", [](auto &b, auto x) { return hardsigmoid_(b, x); }),
    detail::prim<1>("hardswish", [](auto &b, auto x) { return hardswish_(b, x); }),
    detail::prim<2>("hardshrink", [](auto &b, auto x, auto l) { return hardshrink_(b, x, l); }),
    detail::prim<2>("softshrink", [](auto &b, auto x, auto l) { return softshrink_(b, x, l); }),
    detail::prim<1>("softsign", [](auto &b, auto x) { return softsign_(b, x); }),
    detail::prim<1>("tanhshrink", [](auto &b, auto x) { return tanhshrink_(b, x); }),
    detail::prim<3>("threshold", [](auto &b, auto x, auto l, auto v) { return threshold_(b, x, l, v); }),
    detail::prim<2>("relu_backward", [](auto &b, auto g, auto x) { return relu_backward_(b, g, x); }),
    // Comparison, classification, logic, bits, selection.
    detail::test2("eq", [](auto &b, auto x, auto y) { return eq_(b, x, y); }),
    detail::test2("ne", [](auto &b, auto x, auto y) { return ne_(b, x, y); }),
    detail::test2("lt", [](auto &b, auto x, auto y) { return lt_(b, x, y); }),
    detail::test2("le", [](auto &b, auto x, auto y) { return le_(b, x, y); }),
    detail::test2("gt", [](auto &b, auto x, auto y) { return gt_(b, x, y); }),
    detail::test2("ge", [](auto &b, auto x, auto y) { return ge_(b, x, y); }),
    detail::test("isnan", [](auto &b, auto x) { return isnan_(b, x); }),
    detail::test("isinf", [](auto &b, auto x) { return isinf_(b, x); }),
    detail::test("isfinite", [](auto &b, auto x) { return isfinite_(b, x); }),
    detail::test("signbit", [](auto &b, auto x) { return signbit_(b, x); }),
    detail::test("truth", [](auto &b, auto x) { return truth_(b, x); }),
    detail::test2("logical_and", [](auto &b, auto x, auto y) { return logical_and_(b, x, y); }),
    detail::test2("logical_or", [](auto &b, auto x, auto y) { return logical_or_(b, x, y); }),
    detail::test2("logical_xor", [](auto &b, auto x, auto y) { return logical_xor_(b, x, y); }),
    detail::test("logical_not", [](auto &b, auto x) { return logical_not_(b, x); }),
    detail::prim<2>("and", [](auto &b, auto x, auto y) { return and_(b, x, y); }),
    detail::prim<2>("or", [](auto &b, auto x, auto y) { return or_(b, x, y); }),
    detail::prim<2>("xor", [](auto &b, auto x, auto y) { return xor_(b, x, y); }),
    detail::prim<1>("not", [](auto &b, auto x) { return not_(b, x); }),
    detail::prim<2>("shl", [](auto &b, auto x, auto n) { return shl_(b, x, n); }),
    detail::prim<2>("shr", [](auto &b, auto x, auto n) { return shr_(b, x, n); }),
    detail::prim<3>("select", [](auto &b, auto c, auto x, auto y) { return select_(b, c, x, y); }),
    // Conversion to a kind, and random numbers from (seed, offset, index) in I64.
    detail::prim<1>(
        "to_bool", [](auto &b, auto x) { return castTo<Kind::Bool>(b, x); }, ResultKind::Cast),
    detail::prim<1>(
        "to_i8", [](auto &b, auto x) { return castTo<Kind::I8>(b, x); }, ResultKind::Cast),
    detail::prim<1>(
        "to_u8", [](auto &b, auto x) { return castTo<Kind::U8>(b, x); }, ResultKind::Cast),
    detail::prim<1>(
        "to_i16", [](auto &b, auto x) { return castTo<Kind::I16>(b, x); }, ResultKind::Cast),
    detail::prim<1>(
        "to_i32", [](auto &b, auto x) { return castTo<Kind::I32>(b, x); }, ResultKind::Cast),
    detail::prim<1>(
        "to_i64", [](auto &b, auto x) { return castTo<Kind::I64>(b, x); }, ResultKind::Cast),
    detail::prim<1>(
        "to_f32", [](auto &b, auto x) { return castTo<Kind::F32>(b, x); }, ResultKind::Cast),
    detail::prim<1>(
        "to_f64", [](auto &b, auto x) { return castTo<Kind::F64>(b, x); }, ResultKind::Cast),
    detail::prim<3>("philox_bits", [](auto &b, auto s, auto o, auto i) { return philox_bits_(b, s, o, i); }),
    detail::prim<3>(
        "philox_uniform", [](auto &b, auto s, auto o, auto i) { return philox_uniform_(b, s, o, i); }, ResultKind::F32),
    detail::prim<3>(
        "philox_normal", [](auto &b, auto s, auto o, auto i) { return philox_normal_(b, s, o, i); }, ResultKind::F32),
};

/// Calls `f(primitive)` for every primitive in order.
template <class F> constexpr void forEachPrimitive(F &&f) {
  std::apply([&](const auto &...p) { (f(p), ...); }, kPrimitives);
}

/// Returns the number of operands of the primitive `name`, or -1 if there is none of that name.
constexpr int primitiveArity(std::string_view name) {
  int arity = -1;
  forEachPrimitive([&](const auto &p) {
    if (p.name == name)
      arity = p.kArity;
  });
  return arity;
}

/// Returns whether the primitive `name` is defined on operands of `kind`; for `select`, that of the chosen ones.
constexpr bool primitiveAccepts(std::string_view name, Kind kind) {
  constexpr std::string_view kBits[] = {"and", "or", "xor", "not"};
  constexpr std::string_view kShifts[] = {"shl", "shr"};
  constexpr std::string_view kAll[] = {"add",    "sub",         "mul",        "min",         "max",        "eq",
                                       "ne",     "lt",          "le",         "gt",          "ge",         "abs",
                                       "sign",   "floor",       "ceil",       "trunc",       "round",      "isnan",
                                       "isinf",  "isfinite",    "truth",      "clamp",       "relu",       "square",
                                       "select", "logical_and", "logical_or", "logical_xor", "logical_not"};
  constexpr std::string_view kNumbers[] = {"neg",     "floor_div", "trunc_div", "remainder", "fmod",         "pow",
                                           "signbit", "relu6",     "hardtanh",  "threshold", "relu_backward"};
  auto in = [&](const auto &list) {
    for (std::string_view entry : list)
      if (entry == name)
        return true;
    return false;
  };
  if (name.substr(0, 6) == "philox")
    return kind == Kind::I64;
  if (in(kAll) || name.substr(0, 3) == "to_")
    return true;
  if (in(kBits))
    return !isFloat(kind);
  if (in(kShifts))
    return isInt(kind);
  return isFloat(kind) || (kind != Kind::Bool && in(kNumbers));
}

/// Returns the result kind of the primitive `name` on operands whose last one has kind `operand`.
/// The name is known.
constexpr Kind primitiveResult(std::string_view name, Kind operand) {
  Kind kind = operand;
  forEachPrimitive([&](const auto &p) {
    if (p.name != name || p.result == ResultKind::Operand)
      return;
    kind = p.result == ResultKind::F32 ? Kind::F32 : Kind::Bool;
    if (p.result == ResultKind::Cast)
      for (Kind k : {Kind::I8, Kind::U8, Kind::I16, Kind::I32, Kind::I64, Kind::F32, Kind::F64})
        if (name.substr(3) == shortName(k))
          kind = k;
  });
  return kind;
}

/// Emits the primitive `name` on `operands[0..count)` into a builder with one value type and stores
/// its value in `result`. Returns false if no primitive has that name and number of operands.
template <class B, class V>
bool applyPrimitive(B &b, std::string_view name, const V *operands, size_t count, V &result) {
  bool found = false;
  forEachPrimitive([&](const auto &p) {
    if (found || p.name != name || count != static_cast<size_t>(p.kArity))
      return;
    found = true;
    if constexpr (std::decay_t<decltype(p)>::kArity == 1)
      result = p.code(b, operands[0]);
    else if constexpr (std::decay_t<decltype(p)>::kArity == 2)
      result = p.code(b, operands[0], operands[1]);
    else
      result = p.code(b, operands[0], operands[1], operands[2]);
  });
  return found;
}

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_PRIMITIVES_H
