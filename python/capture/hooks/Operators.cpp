// Binary, in-place and unary operators. Arithmetic on symbolic numbers stays symbolic where the replay program can
// compute it exactly as Python does; elsewhere their values become constants.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

using BinaryFn = PyObject *(*)(PyObject *, PyObject *);
PyObject *power(PyObject *a, PyObject *b) { return PyNumber_Power(a, b, Py_None); }
PyObject *powerInPlace(PyObject *a, PyObject *b) { return PyNumber_InPlacePower(a, b, Py_None); }

struct BinaryInfo {
  BinaryFn plain, inPlace;
  const char *name, *sign;
};
const BinaryInfo kBinary[] = {{PyNumber_Add, PyNumber_InPlaceAdd, "add", "+"},
                              {PyNumber_Subtract, PyNumber_InPlaceSubtract, "sub", "-"},
                              {PyNumber_Multiply, PyNumber_InPlaceMultiply, "mul", "*"},
                              {PyNumber_MatrixMultiply, PyNumber_InPlaceMatrixMultiply, "matmul", "@"},
                              {PyNumber_TrueDivide, PyNumber_InPlaceTrueDivide, "truediv", "/"},
                              {PyNumber_FloorDivide, PyNumber_InPlaceFloorDivide, "floordiv", "//"},
                              {PyNumber_Remainder, PyNumber_InPlaceRemainder, "mod", "%"},
                              {power, powerInPlace, "pow", "** or pow()"},
                              {PyNumber_Lshift, PyNumber_InPlaceLshift, "lshift", "<<"},
                              {PyNumber_Rshift, PyNumber_InPlaceRshift, "rshift", ">>"},
                              {PyNumber_Or, PyNumber_InPlaceOr, "or", "|"},
                              {PyNumber_Xor, PyNumber_InPlaceXor, "xor", "^"},
                              {PyNumber_And, PyNumber_InPlaceAnd, "and", "&"}};

PyObject *specialName(const char *prefix, const char *name) {
  return PyUnicode_InternFromString(str("__", prefix, name, "__").c_str());
}

bool isBuiltinContainer(PyObject *o) {
  return isListLike(o) || isTupleLike(o) || PyAnySet_CheckExact(o) || isDictLike(o) || PyUnicode_Check(o) ||
         PyBytes_Check(o) || PyByteArray_Check(o);
}
/// Immutable C objects whose arithmetic depends on nothing else.
bool isValue(PyObject *o) {
  return Session::isScalar(o) || PyType_Check(o) || std::strcmp(Py_TYPE(o)->tp_name, "types.GenericAlias") == 0 ||
         std::strcmp(Py_TYPE(o)->tp_name, "types.UnionType") == 0;
}
bool isUser(PyObject *o) { return (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !isTensor(o) && !isSymbolic(o); }
/// Whether the class of a tensor has the operator in Python.
bool overrides(Session &s, PyObject *o, const char *prefix, int op) {
  Obj name = isTensor(o) ? Obj::check(specialName(prefix, kBinary[op].name)) : Obj();
  return name && specialMethod(s, o, name.get());
}

/// Calls a special method found on the class, in Python or in C. null: there is none, or NotImplemented.
Obj trySpecial(Session &s, PyObject *o, PyObject *name, PyObject *other) {
  Obj result;
  if (Obj method = specialMethod(s, o, name)) {
    if (method.get() == Py_None)
      return Obj();
    result = callSpecial(s, method, o, {&other, 1});
  } else if (PyObject *found = _PyType_Lookup(Py_TYPE(o), name)) {
    readForC(s, o);
    readForC(s, other);
    Obj bound = Obj::check(Py_TYPE(found)->tp_descr_get(found, o, asObject(Py_TYPE(o))));
    result = Obj::check(PyObject_CallOneArg(bound.get(), other));
  }
  return result.get() == Py_NotImplemented ? Obj() : result;
}

/// + and * of sequences are tried after those of numbers, which only types with such a slot take part in.
bool actsAsNumber(PyObject *o, int op) {
  const PyNumberMethods *number = Py_TYPE(o)->tp_as_number;
  if (op == kAdd)
    return number && number->nb_add;
  return op != kMult || (number && number->nb_multiply);
}

/// The other operand's method, if the first one is a sequence that the interpreter asks later.
Obj tryOther(Session &s, int op, PyObject *a, PyObject *b) {
  if (Py_TYPE(a) == Py_TYPE(b) || !actsAsNumber(b, op))
    return Obj();
  return trySpecial(s, b, Obj::check(specialName("r", kBinary[op].name)).get(), a);
}

/// Makes what the plain operation on C objects reads known. False: the operands are not understood.
bool readOperands(Session &s, int op, PyObject *a, PyObject *b);

/// a + b or a * b of a sequence, if numbers' methods gave nothing; null: neither is one.
Obj trySequence(Session &s, int op, PyObject *a, PyObject *b) {
  const PySequenceMethods *of = Py_TYPE(a)->tp_as_sequence;
  if (op == kMult && !(of && of->sq_repeat)) {
    std::swap(a, b);
    of = Py_TYPE(a)->tp_as_sequence;
  }
  bool isSequence = of && ((op == kAdd && of->sq_concat) || (op == kMult && of->sq_repeat));
  if (!isSequence)
    return Obj();
  if (!readOperands(s, op, a, b))
    s.fail(str("the operator ", kBinary[op].sign, " of ", Py_TYPE(a)->tp_name, " and ", Py_TYPE(b)->tp_name,
               " is not known to be replayable"));
  if (op == kAdd)
    return Obj::check(PySequence_Concat(a, b));
  if (!PyIndex_Check(b)) {
    PyErr_Format(PyExc_TypeError, "can't multiply sequence by non-int of type '%.200s'", Py_TYPE(b)->tp_name);
    throw PythonError{};
  }
  Py_ssize_t count = PyNumber_AsSsize_t(b, PyExc_OverflowError);
  if (count == -1 && PyErr_Occurred())
    throw PythonError{};
  return Obj::check(PySequence_Repeat(a, count));
}

/// Operators of classes in Python, in the interpreter's order.
Obj userBinary(Session &s, int op, PyObject *a, PyObject *b, bool inPlaceFirst) {
  const BinaryInfo &info = kBinary[op];
  Obj left = Obj::check(specialName("", info.name)), right = Obj::check(specialName("r", info.name));
  if (inPlaceFirst) {
    Obj own = Obj::check(specialName("i", info.name));
    if (Obj r = trySpecial(s, a, own.get(), b))
      return r;
  }
  bool other = Py_TYPE(a) != Py_TYPE(b) && actsAsNumber(b, op), rightFirst = false;
  if (other && PyType_IsSubtype(Py_TYPE(b), Py_TYPE(a)))
    rightFirst = _PyType_Lookup(Py_TYPE(b), right.get()) != _PyType_Lookup(Py_TYPE(a), right.get());
  if (rightFirst)
    if (Obj r = trySpecial(s, b, right.get(), a))
      return r;
  if (actsAsNumber(a, op))
    if (Obj r = trySpecial(s, a, left.get(), b))
      return r;
  if (other && !rightFirst)
    if (Obj r = trySpecial(s, b, right.get(), a))
      return r;
  if (Obj r = trySequence(s, op, a, b))
    return r;
  PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for %s%s: '%.100s' and '%.100s'", info.sign,
               inPlaceFirst && op != kPow ? "=" : "", Py_TYPE(a)->tp_name, Py_TYPE(b)->tp_name);
  throw PythonError{};
}

bool readOperands(Session &s, int op, PyObject *a, PyObject *b) {
  if (isTensor(a) || isTensor(b)) {
    auto fits = [&](PyObject *o) { return isTensor(o) || Session::isScalar(o) || isSymbolic(o) || isNewNumpy(s, o); };
    return fits(a) && fits(b);
  }
  if (PyUnicode_Check(a) && op == kMod)
    return s.readDeep(b);
  bool understood = true;
  for (PyObject *o : {a, b}) {
    if (isBuiltinContainer(o) && !Session::isScalar(o))
      understood &= s.readAll(o);
    else
      understood &= isValue(o) || isSymbolic(o) || isDictView(o) || isNewNumpy(s, o);
  }
  return understood;
}

Obj observedBinary(Session &s, BinaryFn fn, int op, PyObject *a, PyObject *b) {
  if (!readOperands(s, op, a, b))
    s.fail(str("the operator ", kBinary[op].sign, " of ", Py_TYPE(a)->tp_name, " and ", Py_TYPE(b)->tp_name,
               " is not known to be replayable"));
  if (isTensor(a) || isTensor(b))
    return Obj::check(fn(a, b));
  Obj x = isSymbolic(a) ? s.concretize(a) : Obj::borrow(a), y = concretizeDeep(s, b, op == kMod && PyUnicode_Check(a));
  return Obj::check(fn(x.get(), y.get()));
}

/// += and its like on a container from outside.
Obj changeContainer(Session &s, int op, PyObject *a, PyObject *b) {
  Obj name = Obj::check(specialName("i", kBinary[op].name));
  PyObject *method = methodOf(a, textOf(name.get()));
  Obj items = op == kMult ? s.concretize(b) : consumable(s, b);
  if (op == kAdd && !PyTuple_Check(items.get()))
    items = Obj::check(PySequence_Tuple(items.get()));
  if (op != kAdd)
    s.readAll(a);
  s.beforeChange(a);
  Obj plain = concretizeDeep(s, items.get(), true);
  Obj result = Obj::check(kBinary[op].inPlace(a, plain.get()));
  PyObject *args[] = {a, plain.get()};
  if (method && result.get() == a)
    s.effectCall(method, args, 2, nullptr);
  return result;
}

} // namespace

bool isDictView(PyObject *o) { return PyDictKeys_Check(o) || PyDictValues_Check(o) || PyDictItems_Check(o); }

Obj concretizeDeep(Session &s, PyObject *o, bool inside) {
  if (isSymbolic(o))
    return s.concretize(o);
  if (!inside || !s.containsSymbolic(o))
    return Obj::borrow(o);
  if (PyTuple_Check(o) || PyList_CheckExact(o)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    Obj list = Obj::check(PyList_New(0));
    for (Py_ssize_t i = 0; i < n; ++i) {
      Obj item = concretizeDeep(s, PySequence_Fast_GET_ITEM(o, i), true);
      if (PyList_Append(list.get(), item.get()) < 0)
        throw PythonError{};
    }
    if (PyList_Check(o))
      return list;
    return Py_TYPE(o) == &PyTuple_Type ? Obj::check(PyList_AsTuple(list.get()))
                                       : Obj::check(PyObject_CallOneArg(
                                             asObject(Py_TYPE(o) == sizeType ? sizeType : &PyTuple_Type), list.get()));
  }
  if (PyDict_CheckExact(o)) {
    Obj dict = Obj::check(PyDict_New());
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (PyDict_SetItem(dict.get(), concretizeDeep(s, key, true).get(), concretizeDeep(s, value, true).get()) < 0)
        throw PythonError{};
    return dict;
  }
  s.fail(str("a ", Py_TYPE(o)->tp_name, " with a number that varies is given to a C function"));
  return Obj::borrow(o);
}

Obj plainBinary(int op, PyObject *a, PyObject *b, bool inPlace) {
  Obj x = plainNumber(a), y = plainNumber(b);
  return Obj::check((inPlace ? kBinary[op].inPlace : kBinary[op].plain)(x.get(), y.get()));
}
Obj plainUnary(int op, PyObject *a) {
  static PyObject *(*const plain[])(PyObject *) = {PyNumber_Positive, PyNumber_Negative, PyNumber_Invert};
  return Obj::check(plain[op](plainNumber(a).get()));
}

Obj binary(Session &s, int op, PyObject *a, PyObject *b) {
  if (s.failed())
    return plainBinary(op, a, b, false);
  if (isSymbolic(a) || isSymbolic(b))
    if (Obj result = symbolicBinary(s, op, a, b))
      return result;
  if (isUser(a) || isUser(b) || overrides(s, a, "", op) || overrides(s, b, "r", op))
    return userBinary(s, op, a, b, false);
  return observedBinary(s, kBinary[op].plain, op, a, b);
}

Obj inPlace(Session &s, int op, PyObject *a, PyObject *b) {
  if (s.failed())
    return plainBinary(op, a, b, true);
  if (isSymbolic(a) || isSymbolic(b))
    if (Obj result = symbolicBinary(s, op, a, b))
      return result;
  bool mutable_ = isListLike(a) || PyAnySet_CheckExact(a) || isDictLike(a);
  Obj own = mutable_ && isUser(a) ? specialMethod(s, a, Obj::check(specialName("i", kBinary[op].name)).get()) : Obj();
  if (mutable_ && !own && PyList_Check(a))
    if (Obj result = tryOther(s, op, a, b))
      return result;
  if (mutable_ && !own && s.isKnown(a))
    return changeContainer(s, op, a, b);
  if (mutable_ && !own && op == kAdd && PyList_Check(a))
    return Obj::check(PyNumber_InPlaceAdd(a, consumable(s, b).get()));
  if (isUser(a) || isUser(b) || overrides(s, a, "i", op) || overrides(s, a, "", op) || overrides(s, b, "r", op))
    return userBinary(s, op, a, b, true);
  return observedBinary(s, kBinary[op].inPlace, op, a, b);
}

Obj unary(Session &s, int op, PyObject *a) {
  static const char *const names[] = {"__pos__", "__neg__", "__invert__"};
  if (s.failed())
    return plainUnary(op, a);
  if (isSymbolic(a))
    return symbolicUnary(s, op, a);
  if (isUser(a) || isTensor(a)) {
    Obj name = Obj::check(PyUnicode_InternFromString(names[op]));
    if (Obj method = specialMethod(s, a, name.get()))
      return callSpecial(s, method, a, {nullptr, 0});
  }
  if (!isTensor(a) && !isValue(a) && !_PyType_Lookup(Py_TYPE(a), DLC_NAME("__neg__")))
    return plainUnary(op, a); // raises
  if (!isTensor(a) && !isValue(a) && !isNewNumpy(s, a))
    s.fail(str("an operator of ", Py_TYPE(a)->tp_name, " is not known to be replayable"));
  return plainUnary(op, a);
}

} // namespace dlc::py
