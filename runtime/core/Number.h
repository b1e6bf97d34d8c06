// A Python number given to an op: bool, int or float, possibly standing for a run-time operand of a graph.
#pragma once
#include "runtime/core/DType.h"
#include <cstdint>
#include <ostream>

namespace dlc {

/// Tells the session of this thread, if there is one, that somebody reads the value of a number with a ref().
void noteNumberRead(const class Number &n);

/// A tagged bool, int64 or double. `ref()` is null for a constant; in rules that build IR it identifies the
/// scalar operand that the number stands for (the value then is only a hint and must not be branched on).
class Number {
public:
  Number() : Number(int64_t(0)) {}
  Number(bool v) : category_(Category::Bool) { bits_.i = v; }
  Number(int v) : Number(int64_t(v)) {}
  Number(int64_t v) : category_(Category::Int) { bits_.i = v; }
  Number(double v) : category_(Category::Float) { bits_.d = v; }
  Number(float v) : Number(double(v)) {}
  static Number symbolic(Number hint, const void *ref) {
    hint.ref_ = ref;
    return hint;
  }

  Category category() const { return category_; }
  bool isFloat() const { return category_ == Category::Float; }
  const void *ref() const { return ref_; }
  double toDouble() const { return note().isFloat() ? bits_.d : static_cast<double>(bits_.i); }
  /// Truncates toward zero.
  int64_t toInt() const { return note().isFloat() ? static_cast<int64_t>(bits_.d) : bits_.i; }
  bool toBool() const { return note().isFloat() ? bits_.d != 0 : bits_.i != 0; }
  template <class T> T as() const {
    if constexpr (std::is_same_v<T, bool>)
      return toBool();
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(toInt());
    else if constexpr (std::is_same_v<T, double>)
      return toDouble();
    else
      return T(static_cast<float>(toDouble()));
  }
  /// The 64 bits that travel to a kernel: the int, or the double bit-cast.
  int64_t rawBits() const { return bits_.i; }
  static Number fromRaw(Category c, int64_t raw) {
    Number n;
    n.category_ = c;
    n.bits_.i = raw;
    return n;
  }
  /// The constant that this number is now.
  Number hint() const { return fromRaw(category_, bits_.i); }
  /// The dtype of a tensor made from this number alone (a wrapped operand of an op keeps float64).
  DType dtype() const {
    return category_ == Category::Float ? defaultDType() : category_ == Category::Int ? DType::I64 : DType::Bool;
  }
  /// True if this is a constant equal to `v`.
  bool isConst(double v) const { return !ref_ && toDouble() == v; }
  friend bool operator==(const Number &a, const Number &b) {
    return a.category_ == b.category_ && a.bits_.i == b.bits_.i && a.ref_ == b.ref_;
  }

private:
  /// A session that gave the number out is told that somebody looks at its value.
  const Number &note() const {
    if (__builtin_expect(ref_ != nullptr, 0))
      noteNumberRead(*this);
    return *this;
  }

  Category category_;
  union {
    int64_t i;
    double d;
  } bits_;
  const void *ref_ = nullptr;
};

inline std::ostream &operator<<(std::ostream &os, const Number &value) {
  Number n = value.hint();
  if (n.category() == Category::Bool)
    return os << (n.toBool() ? "True" : "False");
  return n.isFloat() ? os << n.toDouble() : os << n.toInt();
}

} // namespace dlc
