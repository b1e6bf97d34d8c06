// Setting and deleting attributes. What the call made itself is simply changed; a change of anything else is performed
// with plain numbers and becomes an effect.
#include "python/capture/hooks/Hooks.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

void check(int rc) {
  if (rc < 0)
    throw PythonError{};
}

/// A class is the same object in every call, so it needs no load.
void setOnType(Session &s, PyObject *type, PyObject *name, PyObject *value) {
  PyObject *meta = lookUp(s, Py_TYPE(type), value ? DLC_NAME("__setattr__") : DLC_NAME("__delattr__"));
  if (meta && Py_TYPE(meta) != &PyWrapperDescr_Type)
    s.fail(str("attributes of the class `", asType(type)->tp_name, "` are set by its metaclass"));
  if (!value && asType(type)->tp_dict && !classWrote(s, asType(type), name))
    s.guardTypeAttr(asType(type), name);
  Obj plain = value ? plainNumber(value) : Obj();
  check(PyObject_SetAttr(type, name, plain.get()));
  if (s.failed())
    return;
  s.constant(type);
  PyObject *args[] = {type, name, value};
  s.noteWrite(type, Session::Slot::Attr, name, value);
  s.effectCall(meta, args, value ? 3 : 2, nullptr);
}

/// A C setter: of tensors, types with state in C.
void setByC(Session &s, PyObject *o, PyObject *name, PyObject *value) {
  const char *text = textOf(name);
  Obj plain = value ? concretizeDeep(s, value, true) : Obj();
  bool grad = isTensor(o) && (std::strcmp(text, "grad") == 0 || std::strcmp(text, "_grad") == 0);
  if (s.isKnown(o) && !grad)
    s.fail(str("`", text, "` of a ", Py_TYPE(o)->tp_name, " from outside is set"));
  if (std::strcmp(text, "__class__") == 0 || std::strcmp(text, "__dict__") == 0)
    s.fail(str("`", text, "` of an object is set"));
  check(PyObject_SetAttr(o, name, plain.get()));
  if (grad)
    s.effectSetAttr(o, DLC_NAME("grad"), value ? value : Py_None);
}

/// A data descriptor: property, slot, or with __set__ in Python.
void setByDescriptor(Session &s, PyObject *o, PyObject *name, PyObject *found, PyObject *value) {
  PyTypeObject *type = Py_TYPE(o), *kind = Py_TYPE(found);
  lookUp(s, type, name);
  if (kind == &PyProperty_Type) {
    Obj property = classEntry(s, type, name, found);
    Obj key = Obj::check(PyUnicode_InternFromString(value ? "fset" : "fdel"));
    Obj setter = Obj::check(PyObject_GetAttr(found, key.get()));
    setter = readGetter(s, property.get(), key.get(), setter.get());
    if (setter.get() == Py_None)
      return check(PyObject_GenericSetAttr(o, name, value)); // raises
    PyObject *args[] = {o, value};
    callObject(s, setter.get(), {args, value ? 2 : 1});
    return;
  }
  if (kind == &PyMemberDescr_Type && reinterpret_cast<PyMemberDescrObject *>(found)->d_member->type == T_OBJECT_EX) {
    Obj plain = value ? (s.isKnown(o) ? plainNumber(value) : Obj::borrow(value)) : Obj();
    check(PyObject_GenericSetAttr(o, name, plain.get()));
    return s.effectSetAttr(o, name, value);
  }
  if (kind == &PyGetSetDescr_Type || kind == &PyMemberDescr_Type)
    return setByC(s, o, name, value);
  Obj descriptor = classEntry(s, type, name, found);
  if (Obj method = specialMethod(s, descriptor.get(), value ? DLC_NAME("__set__") : DLC_NAME("__delete__"))) {
    PyObject *args[] = {o, value};
    callSpecial(s, method, descriptor.get(), {args, value ? 2 : 1});
    return;
  }
  s.fail(str("the descriptor `", textOf(name), "` of type ", kind->tp_name, " is not known"));
  check(PyObject_GenericSetAttr(o, name, value));
}

/// Whether an own attribute is there decides between deleting and an exception.
void guardPresence(Session &s, PyObject *o, PyObject *name) {
  if (!s.isKnown(o) || s.wroteTo(o, Session::Slot::Attr, name))
    return;
  PyObject **dict = _PyObject_GetDictPtr(o);
  PyObject *own = dict && *dict ? PyDict_GetItemWithError(*dict, name) : nullptr;
  if (own)
    s.load(own, instr(Do::AttrGet, s.regOf(o), name), str(s.sourceOf(o), ".", textOf(name)));
  else
    s.guard(instr(Do::AttrLacks, s.regOf(o), name));
}

/// object.__setattr__ or a tensor's.
bool isPlainSetter(PyObject *hook) {
  if (Py_TYPE(hook) != &PyWrapperDescr_Type)
    return false;
  auto setter = reinterpret_cast<setattrofunc>(reinterpret_cast<PyWrapperDescrObject *>(hook)->d_wrapped);
  return setter == PyObject_GenericSetAttr || setter == tensorType->tp_setattro;
}

} // namespace

void setPlainAttribute(Session &s, PyObject *o, PyObject *name, PyObject *rawValue) {
  // A tuple that goes to something from outside can't be made plain in place at the end.
  Obj storable =
      rawValue && PyTuple_Check(rawValue) && s.isKnown(o) ? concretizeDeep(s, rawValue, true) : Obj::borrow(rawValue);
  PyObject *value = storable.get();
  PyTypeObject *type = Py_TYPE(o);
  Obj found = Obj::borrow(_PyType_Lookup(type, name));
  if (found && Py_TYPE(found.get())->tp_descr_set)
    return setByDescriptor(s, o, name, found.get(), value);
  if (found && PyFunction_Check(found.get()))
    classEntry(s, type, name, found.get());
  else
    lookUp(s, type, name);
  if (PyModule_Check(o)) {
    PyObject *dict = PyModule_GetDict(o);
    if (s.isKnown(o) && !s.isKnown(dict))
      s.know(dict, s.load(dict, instr(Do::GetAttr, s.regOf(o), DLC_NAME("__dict__")), ""), s.sourceOf(o));
    return setItem(s, dict, name, value);
  }
  bool known = s.isKnown(o);
  if (!value)
    guardPresence(s, o, name);
  if (known && !s.failed() && !_PyObject_GetDictPtr(o)) // raises
    return check(PyObject_GenericSetAttr(o, name, value));
  Obj plain = value ? (known ? plainNumber(value) : Obj::borrow(value)) : Obj();
  check(isTensor(o) ? tensorType->tp_setattro(o, name, plain.get()) : PyObject_GenericSetAttr(o, name, plain.get()));
  s.effectSetAttr(o, name, value);
}

void setAttribute(Session &s, PyObject *o, PyObject *name, PyObject *value) {
  if (s.failed()) {
    Obj plain = value ? plainNumber(value) : Obj();
    Session::settle(value);
    return check(PyObject_SetAttr(o, name, plain.get()));
  }
  PyTypeObject *type = Py_TYPE(o);
  if (PyType_Check(o))
    return setOnType(s, o, name, value);
  if (Obj method = specialMethod(s, o, value ? DLC_NAME("__setattr__") : DLC_NAME("__delattr__"))) {
    PyObject *args[] = {name, value};
    callSpecial(s, method, o, {args, value ? 2 : 1});
    return;
  }
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    Obj hook = Obj::borrow(lookUp(s, type, value ? DLC_NAME("__setattr__") : DLC_NAME("__delattr__")));
    if (hook && !isPlainSetter(hook.get())) {
      PyObject *args[] = {name, value};
      callObject(s, boundInC(s, o, hook.get(), value ? "__setattr__" : "__delattr__").get(), {args, value ? 2 : 1});
      return;
    }
  }
  bool plain = type->tp_setattro == PyObject_GenericSetAttr || type->tp_setattro == tensorType->tp_setattro ||
               (type->tp_flags & Py_TPFLAGS_HEAPTYPE);
  if (!plain) {
    if (s.isKnown(o))
      s.fail(str("attributes of ", type->tp_name, " objects are set by C"));
    return check(PyObject_SetAttr(o, name, value));
  }
  setPlainAttribute(s, o, name, value);
}

} // namespace dlc::py
