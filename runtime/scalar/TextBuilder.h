// The builder whose values are names of local variables of CUDA C++ (and of the same text compiled for the CPU through
// compiler/cuda/HostShim.h). Lines are collected; what no result needs is left out, since unused variables are
// warnings.
#ifndef DLC_RUNTIME_SCALAR_TEXTBUILDER_H
#define DLC_RUNTIME_SCALAR_TEXTBUILDER_H

#include "runtime/scalar/Builder.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace dlc::scalar {

/// A variable, parameter or literal with its kind. `line` is the line that defines it, or -1.
struct Text {
  std::string name;
  Kind kind = Kind::F32;
  int line = -1;
};

/// Builder over Text. Assumes -fmad=false: only fma contracts. Divisions and square roots must be IEEE.
class TextBuilder {
  using V = Text;

public:
  /// Variables are named `prefix` and a number.
  explicit TextBuilder(std::string prefix = "t") : prefix_(std::move(prefix)) {}

  static Kind kind(const V &x) { return x.kind; }
  V like(const V &x, double c) { return {literal(x.kind, c), x.kind}; }
  V likeInt(const V &x, int64_t c) { return {intLiteral(x.kind, c), x.kind}; }

  V add(const V &x, const V &y) { return arithmetic("+", x, y); }
  V sub(const V &x, const V &y) { return arithmetic("-", x, y); }
  V mul(const V &x, const V &y) { return arithmetic("*", x, y); }
  V div(const V &x, const V &y) { return infix(x.kind, "/", x, y); }
  V divInt(const V &x, const V &y) { return narrowed(x.kind, x.name + " / " + y.name, {x, y}); }
  V remInt(const V &x, const V &y) { return narrowed(x.kind, x.name + " % " + y.name, {x, y}); }
  V neg(const V &x) { return define(x.kind, "-" + x.name, {x}); }
  V fma(const V &x, const V &y, const V &z) { return call("fma", {x, y, z}); }
  V absf(const V &x) { return call("fabs", {x}); }
  V copysign(const V &x, const V &y) { return call("copysign", {x, y}); }
  V sqrt(const V &x) { return call("sqrt", {x}); }
  V floor(const V &x) { return call("floor", {x}); }
  V ceil(const V &x) { return call("ceil", {x}); }
  V trunc(const V &x) { return call("trunc", {x}); }
  V roundeven(const V &x) { return call("rint", {x}); }

  V cmp(Cmp c, const V &x, const V &y) {
    constexpr const char *kOps[] = {"==", "!=", "<", "<=", ">", ">="};
    return infix(Kind::Bool, kOps[static_cast<int>(c)], x, y);
  }
  V select(const V &condition, const V &x, const V &y) {
    return define(x.kind, condition.name + " ? " + x.name + " : " + y.name, {condition, x, y});
  }
  V bitAnd(const V &x, const V &y) { return bitwise("&", x, y); }
  V bitOr(const V &x, const V &y) { return bitwise("|", x, y); }
  V bitXor(const V &x, const V &y) { return bitwise("^", x, y); }
  V shl(const V &x, const V &n) {
    return define(x.kind, cast(x.kind, cast(unsignedName(x.kind), x.name) + " << " + n.name), {x, n});
  }
  V shr(const V &x, const V &n) { return narrowed(x.kind, x.name + " >> " + n.name, {x, n}); }
  V shrLogical(const V &x, const V &n) {
    return define(x.kind, cast(x.kind, cast(unsignedName(x.kind), x.name) + " >> " + n.name), {x, n});
  }
  V bits(const V &x) {
    bool wide = x.kind == Kind::F64;
    const char *f = wide ? "__double_as_longlong" : "__float_as_int";
    return define(wide ? Kind::I64 : Kind::I32, f + ("(" + x.name + ")"), {x});
  }
  V fromBits(const V &x) {
    bool wide = x.kind == Kind::I64;
    const char *f = wide ? "__longlong_as_double" : "__int_as_float";
    return define(wide ? Kind::F64 : Kind::F32, f + ("(" + x.name + ")"), {x});
  }
  template <Kind K> V convert(const V &x) { return convertTo(x, K); }
  V convertTo(const V &x, Kind to) {
    return x.kind == to ? x : define(to, "(" + std::string(cppName(to)) + ")" + x.name, {x});
  }

  template <class... Vs> V libm(Libm f, const V &x, const Vs &...rest) {
    if (f == Libm::IntPow)
      return define(Kind::I64, "dlc_ipow" + arguments({x, rest...}), {x, rest...});
    return call(libmName(f), {x, rest...});
  }

  /// Emits a call that records the fault; `errorName` is the error slot's pointer in the text.
  void raise(const V &condition, Fault f) {
    raises_ = true;
    statement("dlc_raise(" + std::string(kErrorName) + ", " + condition.name + ", " +
                  std::to_string(static_cast<int64_t>(f)) + ");",
              {condition});
  }

  /// Name of the error slot's pointer (`long long *`) in the text.
  static constexpr const char *kErrorName = "err";

  /// Adds the line `kind tN = expression;`, needed where its value is.
  V define(Kind kind, const std::string &expression, const std::vector<V> &operands) {
    std::string name = prefix_ + std::to_string(count_++);
    addLine(std::string("const ") + cppName(kind) + " " + name + " = " + expression + ";", operands, false);
    return {name, kind, static_cast<int>(lines_.size()) - 1};
  }
  /// Adds a line that is always kept.
  void statement(const std::string &text, const std::vector<V> &operands) { addLine(text, operands, true); }

  /// Returns whether a fault may be raised.
  bool raises() const { return raises_; }
  /// Returns the lines that `results` and the statements need, each after `indent`.
  std::string take(const std::vector<V> &results, const std::string &indent) const {
    std::vector<char> needed(lines_.size(), 0);
    for (const V &v : results)
      if (v.line >= 0)
        needed[v.line] = 1;
    for (size_t i = lines_.size(); i-- > 0;) {
      if (!needed[i] && !lines_[i].keep)
        continue;
      needed[i] = 1;
      for (int operand : lines_[i].operands)
        needed[operand] = 1;
    }
    std::string out;
    for (size_t i = 0; i < lines_.size(); ++i)
      if (needed[i])
        out += indent + lines_[i].text + "\n";
    return out;
  }

  /// Returns a literal of a float kind or Bool, in hex so that it is exact.
  static std::string literal(Kind kind, double c) {
    if (!isFloat(kind))
      return intLiteral(kind, static_cast<int64_t>(c));
    bool f32 = kind == Kind::F32;
    if (f32)
      c = static_cast<float>(c);
    if (std::isnan(c))
      return f32 ? "__int_as_float(0x7fc00000)" : "__longlong_as_double(0x7ff8000000000000ll)";
    if (std::isinf(c)) {
      std::string sign = c < 0 ? "-" : "";
      return "(" + sign + (f32 ? "__int_as_float(0x7f800000))" : "__longlong_as_double(0x7ff0000000000000ll))");
    }
    char text[64];
    if (c == std::floor(c) && std::abs(c) < 1e6)
      std::snprintf(text, sizeof text, "%.1f%s", c, f32 ? "f" : "");
    else
      std::snprintf(text, sizeof text, "%a%s", c, f32 ? "f" : "");
    return c < 0 || std::signbit(c) ? "(" + std::string(text) + ")" : text;
  }
  /// Returns a literal of an integer kind or Bool.
  static std::string intLiteral(Kind kind, int64_t c) {
    switch (kind) {
    case Kind::Bool:
      return c & 1 ? "true" : "false";
    case Kind::I8:
      return "(signed char)" + std::to_string(static_cast<int8_t>(c));
    case Kind::U8:
      return "(unsigned char)" + std::to_string(static_cast<uint8_t>(c));
    case Kind::I16:
      return "(short)" + std::to_string(static_cast<int16_t>(c));
    case Kind::I32:
      if (static_cast<int32_t>(c) == INT32_MIN)
        return "(-2147483647 - 1)";
      return parenthesised(std::to_string(static_cast<int32_t>(c)));
    default:
      if (c == INT64_MIN)
        return "(-9223372036854775807ll - 1)";
      return parenthesised(std::to_string(c) + "ll");
    }
  }

private:
  struct Line {
    std::string text;
    std::vector<int> operands;
    bool keep;
  };

  void addLine(const std::string &text, const std::vector<V> &operands, bool keep) {
    Line line{text, {}, keep};
    for (const V &v : operands)
      if (v.line >= 0)
        line.operands.push_back(v.line);
    lines_.push_back(std::move(line));
  }

  static std::string parenthesised(const std::string &text) { return text[0] == '-' ? "(" + text + ")" : text; }
  static std::string cast(const std::string &type, const std::string &x) { return "(" + type + ")(" + x + ")"; }
  static std::string cast(Kind kind, const std::string &x) { return cast(std::string(cppName(kind)), x); }
  static std::string unsignedName(Kind kind) {
    switch (bitWidth(kind)) {
    case 8:
      return "unsigned char";
    case 16:
      return "unsigned short";
    case 32:
      return "unsigned int";
    default:
      return "unsigned long long";
    }
  }
  static std::string arguments(const std::vector<V> &operands) {
    std::string list = "(";
    for (size_t i = 0; i < operands.size(); ++i)
      list += (i ? ", " : "") + operands[i].name;
    return list + ")";
  }

  V call(const std::string &name, const std::vector<V> &operands) {
    Kind kind = operands[0].kind;
    return define(kind, name + (kind == Kind::F32 ? "f" : "") + arguments(operands), operands);
  }
  V infix(Kind kind, const char *op, const V &x, const V &y) {
    return define(kind, x.name + " " + op + " " + y.name, {x, y});
  }
  // The result of an int operation, done in int or wider, brought back to its kind.
  V narrowed(Kind kind, const std::string &expression, const std::vector<V> &operands) {
    return define(kind, bitWidth(kind) < 32 ? cast(kind, expression) : expression, operands);
  }
  // Signed overflow is undefined in the text's language: ints are added and multiplied as unsigned.
  V arithmetic(const char *op, const V &x, const V &y) {
    if (isFloat(x.kind))
      return infix(x.kind, op, x, y);
    std::string type = bitWidth(x.kind) < 64 ? "unsigned int" : "unsigned long long";
    std::string expression = "(" + type + ")" + x.name + " " + op + " (" + type + ")" + y.name;
    return define(x.kind, cast(x.kind, expression), {x, y});
  }
  V bitwise(const char *op, const V &x, const V &y) {
    if (x.kind == Kind::Bool) // the operands are bool: & and | of ints would warn
      return infix(x.kind, *op == '^' ? "!=" : *op == '&' ? "&&" : "||", x, y);
    return narrowed(x.kind, x.name + " " + op + " " + y.name, {x, y});
  }

  std::string prefix_;
  std::vector<Line> lines_;
  int count_ = 0;
  bool raises_ = false;
};

} // namespace dlc::scalar

#endif // DLC_RUNTIME_SCALAR_TEXTBUILDER_H
