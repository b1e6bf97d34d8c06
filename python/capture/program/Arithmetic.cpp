// Python's arithmetic on numbers read from tensors or arguments, and the mode word. What Python would answer with an
// exception or with an int beyond 64 bits is a miss.
#include "python/capture/program/Code.h"
#include <cmath>
#include <cstring>

namespace dlc::py {

int64_t modeWord() { return (gradEnabled() ? 1 : 0) | static_cast<int64_t>(defaultDType()) << 1; }

namespace replay {
namespace {

/// Python compares an int with a float exactly.
int compareIntFloat(int64_t i, double d) {
  constexpr double kTwo63 = 9223372036854775808.0;
  if (d >= kTwo63)
    return -1;
  if (d < -kTwo63)
    return 1;
  double whole = std::trunc(d);
  int64_t w = static_cast<int64_t>(whole);
  if (i != w)
    return i < w ? -1 : 1;
  return d > whole ? -1 : d < whole ? 1 : 0;
}

bool answer(int order, int kind) {
  switch (kind) {
  case Py_LT:
    return order < 0;
  case Py_LE:
    return order <= 0;
  case Py_EQ:
    return order == 0;
  case Py_NE:
    return order != 0;
  case Py_GT:
    return order > 0;
  default:
    return order >= 0;
  }
}

bool compare(const Number &a, const Number &b, int kind) {
  bool floats = a.isFloat() || b.isFloat();
  if (floats && (std::isnan(a.toDouble()) || std::isnan(b.toDouble())))
    return kind == Py_NE;
  int order;
  if (a.isFloat() && b.isFloat())
    order = a.toDouble() < b.toDouble() ? -1 : a.toDouble() > b.toDouble();
  else if (b.isFloat())
    order = compareIntFloat(a.toInt(), b.toDouble());
  else if (a.isFloat())
    order = -compareIntFloat(b.toInt(), a.toDouble());
  else
    order = a.toInt() < b.toInt() ? -1 : a.toInt() > b.toInt();
  return answer(order, kind);
}

/// Python's float // and %.
void divmodFloat(double a, double b, double &quotient, double &remainder) {
  remainder = std::fmod(a, b);
  double div = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      div -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (div != 0) {
    quotient = std::floor(div);
    if (div - quotient > 0.5)
      quotient += 1;
  } else {
    quotient = std::copysign(0.0, a / b);
  }
}

bool powFloat(double a, double b, double &r) {
  if (!std::isfinite(a) || !std::isfinite(b) || (a == 0 && b < 0) || (a < 0 && b != std::floor(b)))
    return false; // Python raises, or has rules of its own
  r = std::pow(a, b);
  return std::isfinite(r);
}

bool floatOp(NumKind kind, double a, double b, double &r) {
  double other;
  switch (kind) {
  case NumKind::Add:
    r = a + b;
    return true;
  case NumKind::Sub:
    r = a - b;
    return true;
  case NumKind::Mul:
    r = a * b;
    return true;
  case NumKind::Div:
    r = a / b;
    return b != 0;
  case NumKind::FloorDiv:
    if (b == 0)
      return false;
    divmodFloat(a, b, r, other);
    return true;
  case NumKind::Mod:
    if (b == 0)
      return false;
    divmodFloat(a, b, other, r);
    return true;
  case NumKind::Pow:
    return powFloat(a, b, r);
  default:
    return false;
  }
}

bool powInt(int64_t a, int64_t b, int64_t &r) {
  if (b < 0)
    return false;
  r = 1;
  while (b) {
    if ((b & 1) && __builtin_mul_overflow(r, a, &r))
      return false;
    b >>= 1;
    if (b && __builtin_mul_overflow(a, a, &a))
      return false;
  }
  return true;
}

bool intOp(NumKind kind, int64_t a, int64_t b, int64_t &r) {
  switch (kind) {
  case NumKind::Add:
    return !__builtin_add_overflow(a, b, &r);
  case NumKind::Sub:
    return !__builtin_sub_overflow(a, b, &r);
  case NumKind::Mul:
    return !__builtin_mul_overflow(a, b, &r);
  case NumKind::FloorDiv:
  case NumKind::Mod: {
    if (b == 0 || (b == -1 && a == INT64_MIN))
      return false;
    int64_t q = a / b, m = a % b;
    if (m != 0 && (m < 0) != (b < 0)) {
      --q;
      m += b;
    }
    r = kind == NumKind::Mod ? m : q;
    return true;
  }
  case NumKind::Pow:
    return powInt(a, b, r);
  default:
    return false;
  }
}

/// math.f of one number; false where Python raises.
bool unaryFloat(NumKind kind, double a, double &r) {
  switch (kind) {
  case NumKind::ToFloat:
    r = a;
    return true;
  case NumKind::Sqrt:
    r = std::sqrt(a);
    return !(a < 0);
  case NumKind::Exp:
    r = std::exp(a);
    return std::isfinite(r) || !std::isfinite(a);
  case NumKind::Log:
    r = std::log(a);
    return a > 0 || std::isnan(a);
  case NumKind::Sin:
    r = std::sin(a);
    return !std::isinf(a);
  case NumKind::Cos:
    r = std::cos(a);
    return !std::isinf(a);
  case NumKind::Tanh:
    r = std::tanh(a);
    return true;
  default:
    return false;
  }
}

bool isUnary(NumKind k) { return k == NumKind::Neg || k == NumKind::Abs || k >= NumKind::ToFloat; }

/// Exact ints beyond 2^53 lose digits as floats, and Python divides them exactly.
bool isExact(const Number &n) {
  constexpr int64_t kLimit = int64_t(1) << 53;
  return n.isFloat() || (n.toInt() >= -kLimit && n.toInt() <= kLimit);
}

bool unary(NumKind kind, const Number &a, Number &to) {
  if (kind == NumKind::Neg || kind == NumKind::Abs) {
    if (a.isFloat()) {
      to = Number(kind == NumKind::Neg ? -a.toDouble() : std::fabs(a.toDouble()));
      return true;
    }
    int64_t v = a.toInt();
    bool negate = kind == NumKind::Neg || v < 0;
    to = Number(negate && v != INT64_MIN ? -v : v);
    return !negate || v != INT64_MIN;
  }
  double r = 0;
  if (!isExact(a) || !unaryFloat(kind, a.toDouble(), r))
    return false;
  to = Number(r);
  return true;
}

} // namespace

bool numberTest(const Step &s, const Frame &f) {
  return compare(f.nums[static_cast<size_t>(s.a)], f.nums[static_cast<size_t>(s.b)], s.kind) == (s.imm != 0);
}

bool numberIs(const Step &s, const Frame &f) {
  const Number &n = f.nums[static_cast<size_t>(s.a)];
  PyObject *wanted = s.object;
  if (PyFloat_CheckExact(wanted)) {
    double d = PyFloat_AS_DOUBLE(wanted), have = n.toDouble();
    return n.isFloat() && std::memcmp(&d, &have, sizeof d) == 0;
  }
  int overflow = 0;
  int64_t v = PyLong_Check(wanted) ? PyLong_AsLongLongAndOverflow(wanted, &overflow) : 0;
  return PyLong_Check(wanted) && !overflow && !n.isFloat() && n.toInt() == v;
}

bool numberOp(const Step &s, Frame &f) {
  auto kind = static_cast<NumKind>(s.kind);
  const Number &a = f.nums[static_cast<size_t>(s.a)];
  Number &to = f.nums[static_cast<size_t>(s.dst)];
  if (isUnary(kind))
    return unary(kind, a, to);
  if (s.b == kNoReg)
    return false;
  const Number &b = f.nums[static_cast<size_t>(s.b)];
  if (kind == NumKind::Min || kind == NumKind::Max) { // the first unless the second is beyond it
    to = compare(b, a, kind == NumKind::Min ? Py_LT : Py_GT) ? b : a;
    return true;
  }
  if (!a.isFloat() && !b.isFloat() && kind != NumKind::Div) {
    int64_t r = 0;
    bool fits = intOp(kind, a.toInt(), b.toInt(), r);
    to = Number(r);
    return fits;
  }
  double r = 0;
  if (!isExact(a) || !isExact(b) || !floatOp(kind, a.toDouble(), b.toDouble(), r))
    return false;
  to = Number(r);
  return true;
}

} // namespace replay
} // namespace dlc::py
