// str(), repr(), format() and f-strings. Only texts that depend on what was read are made: no addresses, no tensor
// data.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

/// C objects whose text depends on their (read) content alone.
bool hasPlainText(Session &s, PyObject *o) {
  Level level(s);
  if (level.tooDeep())
    return false;
  if (Session::isScalar(o) || isSymbolic(o) || PyType_Check(o) || isDType(o) || Py_TYPE(o) == deviceType)
    return true;
  if (isNewNumpy(s, o))
    return true;
  if (PyModule_Check(o) || PyRange_Check(o) || PySlice_Check(o) || PyCFunction_Check(o) == 1)
    return !s.isKnown(o) && !PyCFunction_Check(o);
  if (PyExceptionInstance_Check(o)) {
    Obj args = Obj::check(PyObject_GetAttr(o, DLC_NAME("args")));
    concretizeDeep(s, args.get(), true);
    return !s.isKnown(o) && hasPlainText(s, args.get());
  }
  if (PyAnySet_CheckExact(o) && PySet_GET_SIZE(o) > 1)
    return false; // the order
  if (!isListLike(o) && !isTupleLike(o) && !isDictLike(o) && !PyAnySet_CheckExact(o) && !isDictView(o))
    return false;
  if (!isDictView(o) && !s.readAll(o))
    return false;
  Obj items = Obj::check(PyDict_Check(o) ? PyDict_Items(o) : PySequence_List(o));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject *item = PyList_GET_ITEM(items.get(), i);
    if ((Py_TYPE(item)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !isDType(item) && Py_TYPE(item) != deviceType &&
        Py_TYPE(item) != sizeType && !isSymbolic(item))
      return false;
    if (!hasPlainText(s, item))
      return false;
  }
  return true;
}

/// str(o) or repr(o).
Obj simpleText(Session &s, PyObject *o, bool repr) {
  if (!repr && PyUnicode_CheckExact(o))
    return Obj::borrow(o);
  if (!PyType_Check(o) && !isTensor(o)) {
    if (Obj method = repr ? Obj() : specialMethod(s, o, DLC_NAME("__str__")))
      return callSpecial(s, method, o, {nullptr, 0});
    PyObject *own = _PyType_Lookup(Py_TYPE(o), DLC_NAME("__str__"));
    if (repr || own == _PyType_Lookup(&PyBaseObject_Type, DLC_NAME("__str__")))
      if (Obj method = specialMethod(s, o, DLC_NAME("__repr__")))
        return callSpecial(s, method, o, {nullptr, 0});
  }
  if (!hasPlainText(s, o))
    s.fail(isTensor(o) ? std::string("the values of a tensor become text")
                       : str("the text of a ", Py_TYPE(o)->tp_name, " is not known to be replayable"));
  Obj plain = concretizeDeep(s, o, true);
  Unobserved quiet(s);
  return Obj::check(repr ? PyObject_Repr(plain.get()) : PyObject_Str(plain.get()));
}

} // namespace

Obj plainText(PyObject *o, int conversion, PyObject *spec) {
  Obj value = plainNumber(o);
  if (conversion > 0)
    value = Obj::check(conversion == 'r'   ? PyObject_Repr(value.get())
                       : conversion == 'a' ? PyObject_ASCII(value.get())
                                           : PyObject_Str(value.get()));
  return Obj::check(PyObject_Format(value.get(), spec));
}

Obj text(Session &s, PyObject *o, int conversion, PyObject *spec) {
  if (s.failed() || Session::isScalar(o))
    return plainText(o, conversion, spec);
  if (conversion == 'a') {
    readPure(s, o);
    Unobserved quiet(s);
    return plainText(o, conversion, spec);
  }
  if (conversion > 0) {
    Obj made = simpleText(s, o, conversion != 's');
    return Obj::check(PyObject_Format(made.get(), spec));
  }
  if (isSymbolic(o))
    return Obj::check(PyObject_Format(s.concretize(o).get(), spec));
  if (!PyType_Check(o) && !isTensor(o))
    if (Obj method = specialMethod(s, o, DLC_NAME("__format__")))
      return callSpecial(s, method, o, {&spec, 1});
  bool empty = !spec || (PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0);
  if (empty)
    return simpleText(s, o, false);
  if (!hasPlainText(s, o))
    s.fail(isTensor(o) ? std::string("the values of a tensor become text")
                       : str("the text of a ", Py_TYPE(o)->tp_name, " is not known to be replayable"));
  Unobserved quiet(s);
  return plainText(o, conversion, spec);
}

} // namespace dlc::py
