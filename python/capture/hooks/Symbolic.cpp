// Arithmetic on symbolic numbers. Ints are expressions over the session's symbols; floats are registers of the replay
// program, computed by it as Python computes them. What could raise in another call is guarded.
#include "python/capture/hooks/Symbolic.h"
#include <cmath>

namespace dlc::py {
namespace {

/// Ints as exact doubles: beyond, float arithmetic of Python ints rounds in its own way.
constexpr int64_t kExact = int64_t(1) << 53;

bool intOf(PyObject *o, Dim &out) {
  if (PyBool_Check(o)) {
    out = Dim(o == Py_True ? 1 : 0);
    return true;
  }
  return dimOf(o, out);
}
bool isInt(PyObject *o) { return PyLong_CheckExact(o) || PyBool_Check(o) || Py_TYPE(o) == symbolicIntType; }

/// Int arithmetic; false if it leaves 64 bits or is not polynomial.
bool intBinary(int op, const Dim &a, const Dim &b, Dim &out) {
  int64_t r;
  switch (op) {
  case kAdd:
    return !__builtin_add_overflow(a.value(), b.value(), &r) && (out = a + b, true);
  case kSub:
    return !__builtin_sub_overflow(a.value(), b.value(), &r) && (out = a - b, true);
  case kMult:
    return !__builtin_mul_overflow(a.value(), b.value(), &r) && (out = a * b, true);
  case kFloorDiv:
  case kMod:
    if (b.value() == -1 || b == Dim(0))
      return false;
    out = op == kMod ? floorMod(a, b) : floorDiv(a, b);
    return true;
  default:
    return false;
  }
}

/// Whether a float holds the int exactly; the outcome is a fact.
bool isExact(const Dim &d) { return d < Dim(kExact) && Dim(-kExact) < d; }
/// So far from the ends of 64 bits that differences are exact.
bool isModest(const Dim &d) { return d.value() < INT64_MAX / 4 && d.value() > INT64_MIN / 4; }

Obj newFloat(Session &s, NumKind kind, Reg a, Reg b, double value) {
  Instr i = instr(Do::NumOp, a);
  i.kind = static_cast<uint8_t>(kind);
  i.b = b;
  return wrapNumberNode(s.newNumber(std::move(i), value));
}

/// Guards that comparing two registers keeps its outcome.
void guardTest(Session &s, int op, Reg a, Reg b, bool outcome) {
  Instr i = instr(Do::NumTest, a, nullptr, outcome);
  i.kind = static_cast<uint8_t>(op);
  i.b = b;
  s.guard(std::move(i));
}

Reg floatConstant(Session &s, double v) {
  Obj o = Obj::check(PyFloat_FromDouble(v));
  return numberReg(s, o.get());
}

/// Float arithmetic; null if it raised or might in a way that is not guarded.
Obj floatBinary(Session &s, int op, PyObject *a, PyObject *b) {
  static const NumKind kinds[] = {NumKind::Add, NumKind::Sub,      NumKind::Mul, NumKind::Add,
                                  NumKind::Div, NumKind::FloorDiv, NumKind::Mod, NumKind::Pow};
  double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b), r;
  switch (op) {
  case kAdd:
    r = x + y;
    break;
  case kSub:
    r = x - y;
    break;
  case kMult:
    r = x * y;
    break;
  case kDiv:
    if (y == 0)
      return Obj();
    r = x / y;
    break;
  case kFloorDiv:
  case kMod: {
    if (y == 0)
      return Obj();
    Obj px = Obj::check(PyFloat_FromDouble(x)), py = Obj::check(PyFloat_FromDouble(y));
    r = PyFloat_AsDouble(
        Obj::check(op == kMod ? PyNumber_Remainder(px.get(), py.get()) : PyNumber_FloorDivide(px.get(), py.get()))
            .get());
    break;
  }
  case kPow:
    if (!(x > 0) || !std::isfinite(r = std::pow(x, y)))
      return Obj();
    break;
  default:
    return Obj();
  }
  Reg ra = numberReg(s, a), rb = numberReg(s, b);
  if ((op == kDiv || op == kFloorDiv || op == kMod) && isSymbolic(b))
    guardTest(s, Py_NE, rb, floatConstant(s, 0), true);
  if (op == kPow && isSymbolic(a))
    guardTest(s, Py_GT, ra, floatConstant(s, 0), true);
  Obj result = newFloat(s, kinds[op], ra, rb, r);
  if (op == kPow)
    guardTest(s, Py_LT, numberReg(s, result.get()), floatConstant(s, HUGE_VAL), true);
  return result;
}

} // namespace

bool isNumber(PyObject *o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || isSymbolic(o); }

NumberNode *numberNode(Session &s, PyObject *o) {
  if (NumberNode *node = numberNodeOf(o))
    return node;
  if (PyFloat_CheckExact(o))
    return s.newNumber(instr(Do::NumFloat, s.constant(o)), PyFloat_AS_DOUBLE(o));
  auto data = std::make_shared<DimValue>();
  if (!intOf(o, data->dim))
    throw Error(ErrorKind::Overflow, "a number does not fit in 64 bits");
  Instr i = instr(Do::NumDim);
  Number value(data->dim.value());
  i.data = std::move(data);
  return s.newNumber(std::move(i), value);
}
Reg numberReg(Session &s, PyObject *o) { return numberNode(s, o)->num; }

Dim dimOperand(PyObject *o) {
  Dim d;
  dimOf(o, d);
  return Session::current() ? d : Dim(d.value());
}

Number numberOf(PyObject *o) {
  if (Py_TYPE(o) == symbolicFloatType && isStale(o))
    return Number(PyFloat_AS_DOUBLE(o));
  if (Session *s = Session::current())
    return numberNode(*s, o)->value;
  Dim d;
  return numberNodeOf(o) ? Number(PyFloat_AS_DOUBLE(o)) : (dimOf(o, d), Number(d.concretize()));
}

Obj symbolicBinary(Session &s, int op, PyObject *a, PyObject *b) {
  if (!isNumber(a) || !isNumber(b))
    return Obj();
  Dim x, y, r;
  bool ints = isInt(a) && isInt(b);
  bool small = (!isInt(a) || intOf(a, x)) && (!isInt(b) || intOf(b, y));
  if (!small || !isModest(x) || !isModest(y))
    return Obj();
  if (ints && op != kDiv)
    return intBinary(op, x, y, r) ? wrapDim(r) : Obj();
  if (op > kPow || op == kMatMult)
    return Obj();
  if (ints && !(isExact(x) && isExact(y)))
    return Obj();
  return floatBinary(s, op, a, b);
}

Obj symbolicUnary(Session &s, int op, PyObject *a) {
  Dim d;
  if (op == 0)
    return Obj::borrow(a);
  if (op == 1 && Py_TYPE(a) == symbolicIntType && dimOf(a, d) && d.value() != INT64_MIN)
    return wrapDim(-d);
  if (op == 1 && numberNodeOf(a))
    return newFloat(s, NumKind::Neg, numberReg(s, a), kNoReg, -PyFloat_AS_DOUBLE(a));
  Obj plain = s.concretize(a);
  return Obj::check(op == 1 ? PyNumber_Negative(plain.get()) : PyNumber_Invert(plain.get()));
}

Obj symbolicFloat(Session &s, PyObject *o) {
  Dim d;
  if (numberNodeOf(o) || !dimOf(o, d))
    return Obj::borrow(o);
  return newFloat(s, NumKind::ToFloat, numberReg(s, o), kNoReg, static_cast<double>(d.value()));
}

Obj symbolicAbs(Session &s, PyObject *o) {
  Dim d;
  if (numberNodeOf(o))
    return newFloat(s, NumKind::Abs, numberReg(s, o), kNoReg, std::fabs(PyFloat_AS_DOUBLE(o)));
  dimOf(o, d);
  return d < Dim(0) ? wrapDim(-d) : Obj::borrow(o);
}

bool compareNumbers(Session &s, int op, PyObject *a, PyObject *b) {
  Dim x, y;
  if (isInt(a) && isInt(b) && !(intOf(a, x) && intOf(b, y) && isModest(x) && isModest(y))) {
    Obj pa = s.concretize(a), pb = s.concretize(b);
    int outcome = PyObject_RichCompareBool(pa.get(), pb.get(), op);
    if (outcome < 0)
      throw PythonError{};
    return outcome != 0;
  }
  if (isInt(a) && isInt(b)) {
    switch (op) {
    case Py_LT:
      return x < y;
    case Py_LE:
      return x <= y;
    case Py_EQ:
      return x == y;
    case Py_NE:
      return x != y;
    case Py_GT:
      return x > y;
    default:
      return x >= y;
    }
  }
  Obj pa = plainNumber(a), pb = plainNumber(b);
  int outcome = PyObject_RichCompareBool(pa.get(), pb.get(), op);
  if (outcome < 0)
    throw PythonError{};
  if (op == Py_EQ || op == Py_NE) { // RichCompareBool takes one object for equal to itself: not so with NaN
    Obj r = Obj::check(PyObject_RichCompare(pa.get(), pb.get(), op));
    outcome = r.get() == Py_True;
  }
  if (!isSymbolic(a) && !isSymbolic(b))
    return outcome != 0;
  for (PyObject *o : {a, b}) {
    Dim d;
    if (!isInt(o))
      continue;
    if (!intOf(o, d) || !isExact(d)) {
      s.concretize(a);
      s.concretize(b);
      return outcome != 0;
    }
  }
  Reg ra = numberReg(s, a), rb = numberReg(s, b);
  guardTest(s, op, ra, rb, outcome != 0);
  return outcome != 0;
}

} // namespace dlc::py
