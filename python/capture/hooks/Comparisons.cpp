// Comparisons, membership, identity and truth. Outcomes that depend on the state at entry become guards.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

const int kRich[] = {Py_EQ, Py_NE, Py_LT, Py_LE, Py_GT, Py_GE};
const char *const kNames[] = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"};
const int kSwapped[] = {kEq, kNotEq, kGt, kGtE, kLt, kLtE};
const char *const kSigns[] = {"==", "!=", "<", "<=", ">", ">="};

PyObject *boolObject(bool b) { return b ? Py_True : Py_False; }
Obj boolean(bool b) { return Obj::borrow(boolObject(b)); }

bool isC(PyObject *o) { return !(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) || isTensor(o) || isSymbolic(o); }

/// Builtin containers all the way down, without tensors (their comparison reads data).
bool readComparable(Session &s, PyObject *o) {
  Level level(s);
  if (level.tooDeep())
    return false;
  if (Session::isScalar(o) || isSymbolic(o) || PyType_Check(o) || isDType(o))
    return true;
  if (!isListLike(o) && !isTupleLike(o) && !PyAnySet_CheckExact(o) && !isDictLike(o)) {
    if (PyRange_Check(o) || PySlice_Check(o))
      readNumbers(s, o);
    return isEnumMember(o) || Py_TYPE(o)->tp_richcompare == PyBaseObject_Type.tp_richcompare || PyRange_Check(o) ||
           PySlice_Check(o) || Py_TYPE(o) == deviceType;
  }
  if (!s.readAll(o))
    return false;
  if (PyDict_Check(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!readComparable(s, value))
        return false;
  } else if (!PyAnySet_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (!readComparable(s, PySequence_Fast_GET_ITEM(o, i)))
        return false;
  }
  return true;
}

/// Tuples with symbolic numbers: item by item up to the first difference.
bool equalTuples(Session &s, PyObject *a, PyObject *b) {
  if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
    PyObject *x = PyTuple_GET_ITEM(a, i), *y = PyTuple_GET_ITEM(b, i);
    if (x != y && !truth(s, compare(s, kEq, x, y).get()))
      return false;
  }
  return true;
}

Obj containers(Session &s, int op, PyObject *a, PyObject *b) {
  if (!readComparable(s, a) || !readComparable(s, b))
    s.fail(str("comparing a ", Py_TYPE(a)->tp_name, " with a ", Py_TYPE(b)->tp_name, " is not known to be replayable"));
  else if (op <= kNotEq && PyTuple_Check(a) && PyTuple_Check(b) && (s.containsSymbolic(a) || s.containsSymbolic(b)))
    return boolean(equalTuples(s, a, b) == (op == kEq));
  Obj x = concretizeDeep(s, a, true), y = concretizeDeep(s, b, true);
  return Obj::check(PyObject_RichCompare(x.get(), y.get(), kRich[op]));
}

/// One side of a comparison; null: NotImplemented.
Obj trySide(Session &s, int op, PyObject *a, PyObject *b) {
  Obj name = Obj::check(PyUnicode_InternFromString(kNames[op]));
  if (Obj method = specialMethod(s, a, name.get())) {
    if (method.get() == Py_None)
      return Obj();
    Obj r = callSpecial(s, method, a, {&b, 1});
    return r.get() == Py_NotImplemented ? Obj() : r;
  }
  if (op == kNotEq && Py_TYPE(a)->tp_flags & Py_TPFLAGS_HEAPTYPE) { // object.__ne__ inverts __eq__
    PyObject *found = _PyType_Lookup(Py_TYPE(a), name.get());
    if (found == _PyType_Lookup(&PyBaseObject_Type, name.get())) {
      Obj r = trySide(s, kEq, a, b);
      return r ? boolean(!truth(s, r.get())) : Obj();
    }
  }
  richcmpfunc compareC = Py_TYPE(a)->tp_richcompare;
  if (!compareC || compareC == PyBaseObject_Type.tp_richcompare)
    return Obj();
  PyObject *found = _PyType_Lookup(Py_TYPE(a), name.get());
  if (!found)
    return Obj();
  if (isListLike(a) || isTupleLike(a) || isDictLike(a) || PyAnySet_Check(a))
    if (!readComparable(s, a) || !readComparable(s, b))
      s.fail(str("comparing a ", Py_TYPE(a)->tp_name, " is not known to be replayable"));
  readForC(s, a);
  readForC(s, b);
  Obj bound = Obj::check(Py_TYPE(found)->tp_descr_get(found, a, asObject(Py_TYPE(a))));
  Obj r = Obj::check(PyObject_CallOneArg(bound.get(), b));
  return r.get() == Py_NotImplemented ? Obj() : r;
}

Obj userCompare(Session &s, int op, PyObject *a, PyObject *b) {
  bool swapped = false;
  if (Py_TYPE(a) != Py_TYPE(b) && PyType_IsSubtype(Py_TYPE(b), Py_TYPE(a))) {
    swapped = true;
    if (Obj r = trySide(s, kSwapped[op], b, a))
      return r;
  }
  if (Obj r = trySide(s, op, a, b))
    return r;
  if (!swapped)
    if (Obj r = trySide(s, kSwapped[op], b, a))
      return r;
  if (op == kEq || op == kNotEq)
    return boolean(sameObject(s, a, b) == (op == kEq));
  PyErr_Format(PyExc_TypeError, "'%s' not supported between instances of '%.100s' and '%.100s'", kSigns[op],
               Py_TYPE(a)->tp_name, Py_TYPE(b)->tp_name);
  throw PythonError{};
}

// --- in

bool equalItem(Session &s, PyObject *item, PyObject *o) {
  Level level(s);
  return item == o || truth(s, compare(s, kEq, item, o).get());
}

bool inSequence(Session &s, PyObject *o, PyObject *sequence) {
  if (s.isKnown(sequence)) {
    Obj length = s.length(sequence);
    s.concretize(length.get());
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i)
    if (equalItem(s, s.item(sequence, i).get(), o))
      return true;
  return false;
}

bool inIterable(Session &s, PyObject *o, PyObject *iterable) {
  Obj iterator = iterate(s, iterable);
  while (Obj item = Obj(PyIter_Next(iterator.get())))
    if (equalItem(s, item.get(), o))
      return true;
  if (PyErr_Occurred())
    throw PythonError{};
  return false;
}

/// Objects in a set of the call: which ones are the same decides.
bool inSet(Session &s, PyObject *o, PyObject *set) {
  checkKey(s, o);
  s.readAll(set);
  Obj key = concretizeDeep(s, o, true);
  int found = PySequence_Contains(set, key.get());
  if (found < 0)
    throw PythonError{};
  if (!found && s.isKnown(key.get())) {
    constexpr Py_ssize_t kMaxTests = 2000;
    Obj items = Obj::check(PySequence_Tuple(set));
    if (PyTuple_GET_SIZE(items.get()) > kMaxTests)
      s.fail("a large set of objects is searched");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()) && !s.failed(); ++i)
      sameObject(s, key.get(), PyTuple_GET_ITEM(items.get(), i));
  }
  return found != 0;
}

bool contains(Session &s, PyObject *o, PyObject *container) {
  if (PyAnySet_CheckExact(container))
    return inSet(s, o, container);
  if (isDictLike(container) && !specialMethod(s, container, DLC_NAME("__contains__"))) {
    checkKey(s, o);
    Obj key = concretizeDeep(s, o, true);
    return static_cast<bool>(dictValue(s, container, key.get()));
  }
  if (Obj method = PyType_Check(container) ? Obj() : specialMethod(s, container, DLC_NAME("__contains__"))) {
    Obj r = callSpecial(s, method, container, {&o, 1});
    return truth(s, r.get());
  }
  if (isListLike(container) || isTupleLike(container))
    return inSequence(s, o, container);
  if (isTensor(container) || PyType_Check(container))
    s.fail(str("`in` a ", Py_TYPE(container)->tp_name, " is not known to be replayable"));
  if (isC(container) && Py_TYPE(container)->tp_as_sequence && Py_TYPE(container)->tp_as_sequence->sq_contains) {
    if (!Session::isScalar(container) && !PyRange_Check(container) && !isDictView(container))
      s.fail(str("`in` a ", Py_TYPE(container)->tp_name, " is not known to be replayable"));
    if (isDictView(container))
      checkKey(s, o);
    if (PyRange_Check(container))
      readNumbers(s, container);
    Obj plain = concretizeDeep(s, o, true);
    int found = PySequence_Contains(container, plain.get());
    if (found < 0)
      throw PythonError{};
    return found != 0;
  }
  if (!Py_TYPE(container)->tp_iter && !PySequence_Check(container) && PySequence_Contains(container, o) < 0)
    throw PythonError{};
  return inIterable(s, o, container);
}

/// Objects whose comparison by C depends on nothing but what they are.
bool isPlainlyComparable(PyObject *o) {
  return Session::isScalar(o) || isSymbolic(o) || PyType_Check(o) || isDType(o) || Py_TYPE(o) == deviceType ||
         PyCFunction_Check(o);
}

} // namespace

bool sameObject(Session &s, PyObject *a, PyObject *b) {
  Reg ra = s.regOf(a), rb = s.regOf(b);
  if (a != b && ra != kNoReg && rb != kNoReg && Py_TYPE(a) == Py_TYPE(b) && !PyType_Check(a) && !PyModule_Check(a)) {
    s.requireDistinct(a, b);
  }
  return a == b;
}

Obj plainCompare(int op, PyObject *a, PyObject *b) {
  Obj x = plainNumber(a), y = plainNumber(b);
  if (op < kIs)
    return Obj::check(PyObject_RichCompare(x.get(), y.get(), kRich[op]));
  if (op < kIn)
    return boolean((x.get() == y.get()) == (op == kIs));
  int found = PySequence_Contains(y.get(), x.get());
  if (found < 0)
    throw PythonError{};
  return boolean((found != 0) == (op == kIn));
}

/// Numbers and texts are guarded by value, so whether two of them are one object is not known in another call.
void checkIdentity(Session &s, PyObject *a, PyObject *b) {
  auto valued = [](PyObject *o) {
    int overflow;
    long v = PyLong_CheckExact(o) ? PyLong_AsLongAndOverflow(o, &overflow) : 0;
    bool small = PyLong_CheckExact(o) && !overflow && v >= -5 && v <= 256; // CPython keeps one of each
    return Session::isScalar(o) && !small && o != Py_None && !PyBool_Check(o) && o != Py_Ellipsis &&
           o != Py_NotImplemented;
  };
  if (Py_TYPE(a) != Py_TYPE(b) || !valued(a) || !valued(b))
    return;
  // One object that was read once is itself; objects of different values are different ones.
  bool nan = PyFloat_CheckExact(a) && PyFloat_AS_DOUBLE(a) != PyFloat_AS_DOUBLE(a);
  if (a == b ? s.timesRead(a) > 1 : nan || PyObject_RichCompareBool(a, b, Py_EQ) == 1)
    s.fail(str("the identity of two objects of type ", Py_TYPE(a)->tp_name, " decides what it does"));
}

Obj compare(Session &s, int op, PyObject *a, PyObject *b) {
  if (op == kIs || op == kIsNot) {
    bool same = a == b;
    if (!same && (isSymbolic(a) || isSymbolic(b))) {
      Obj x = s.concretize(a), y = s.concretize(b);
      same = x.get() == y.get(); // small ints are one object, others are told apart by identity
      checkIdentity(s, x.get(), y.get());
    } else if (!isSymbolic(a) && !s.failed()) {
      checkIdentity(s, a, b);
      same = sameObject(s, a, b);
    }
    return boolean(same == (op == kIs));
  }
  if (s.failed())
    return plainCompare(op, a, b);
  if (op >= kIn)
    return boolean(contains(s, a, b) == (op == kIn));
  if ((isSymbolic(a) || isSymbolic(b)) && isNumber(a) && isNumber(b))
    return boolean(compareNumbers(s, kRich[op], a, b));
  if (isTensor(a) || isTensor(b)) {
    PyObject *other = isTensor(a) ? b : a;
    Obj name = Obj::check(PyUnicode_InternFromString(kNames[op]));
    bool plainly = isTensor(other) || isPlainlyComparable(other) || isNewNumpy(s, other);
    for (PyObject *o : {a, b})
      plainly &= !isTensor(o) || !specialMethod(s, o, name.get());
    if (plainly)
      return Obj::check(PyObject_RichCompare(a, b, kRich[op]));
    return userCompare(s, op, a, b);
  }
  if (isPlainlyComparable(a) && isPlainlyComparable(b)) {
    Obj x = plainNumber(a), y = plainNumber(b);
    return Obj::check(PyObject_RichCompare(x.get(), y.get(), kRich[op]));
  }
  if ((isNewNumpy(s, a) || isPlainlyComparable(a)) && (isNewNumpy(s, b) || isPlainlyComparable(b)))
    return plainCompare(op, a, b);
  bool builtin = isC(a) && isC(b);
  if (!builtin && Py_TYPE(a) != sizeType && Py_TYPE(b) != sizeType)
    return userCompare(s, op, a, b);
  return containers(s, op, a, b);
}

bool truth(Session &s, PyObject *o) {
  if (o == Py_True || o == Py_False || o == Py_None)
    return o == Py_True;
  auto plain = [&](PyObject *of) {
    ReadsValue reading(s);
    int r = PyObject_IsTrue(of);
    if (r < 0)
      throw PythonError{};
    return r != 0;
  };
  if (s.failed() || Session::isScalar(o))
    return plain(o);
  if (isSymbolic(o)) {
    Obj zero = Obj::check(PyLong_FromLong(0));
    return compareNumbers(s, Py_NE, o, zero.get());
  }
  if (isTensor(o)) {
    bool value = plain(o);
    s.readBool(tensorOf(o), boolObject(value));
    return value;
  }
  if (PyType_Check(o) || PyFunction_Check(o) || PyModule_Check(o))
    return plain(o);
  if (Obj method = specialMethod(s, o, DLC_NAME("__bool__"))) {
    Obj r = callSpecial(s, method, o, {nullptr, 0});
    if (PyBool_Check(r.get()))
      return r.get() == Py_True;
    PyErr_Format(PyExc_TypeError, "__bool__ should return bool, returned %s", Py_TYPE(r.get())->tp_name);
    throw PythonError{};
  }
  if (Obj method = specialMethod(s, o, DLC_NAME("__len__")))
    return truth(s, callSpecial(s, method, o, {nullptr, 0}).get());
  if (PyList_Check(o) || PyTuple_Check(o) || PyDict_Check(o) || PyAnySet_Check(o))
    return truth(s, s.length(o).get());
  bool sized = (Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_bool) ||
               (Py_TYPE(o)->tp_as_sequence && Py_TYPE(o)->tp_as_sequence->sq_length) ||
               (Py_TYPE(o)->tp_as_mapping && Py_TYPE(o)->tp_as_mapping->mp_length);
  if (sized && s.isKnown(o))
    s.fail(str("the truth of a ", Py_TYPE(o)->tp_name, " is not known to be replayable"));
  return plain(o);
}

} // namespace dlc::py
