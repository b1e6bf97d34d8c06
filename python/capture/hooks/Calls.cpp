// Calls: Python functions are entered, C functions looked up in the table, classes taken apart into __new__ and
// __init__.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {

ArgList::ArgList(Given g, PyObject *first) : n_(g.n + (first ? 1 : 0)), kwnames_(g.kwnames) {
  if (first)
    held_.push_back(Obj::borrow(first));
  for (Py_ssize_t i = 0; i < g.total(); ++i)
    held_.push_back(Obj::borrow(g.v[i]));
  for (const Obj &o : held_)
    raw_.push_back(o.get());
}

void ArgList::set(Py_ssize_t i, Obj value) {
  held_[static_cast<size_t>(i)] = std::move(value);
  raw_[static_cast<size_t>(i)] = held_[static_cast<size_t>(i)].get();
}

Obj callPlain(PyObject *f, Given args) {
  return Obj::check(PyObject_Vectorcall(f, args.v, static_cast<size_t>(args.n), args.kwnames));
}

Obj callConverted(PyObject *f, Given args) {
  bool symbolic = false;
  for (Py_ssize_t i = 0; i < args.total(); ++i)
    symbolic |= isSymbolic(args.v[i]);
  if (!symbolic)
    return callPlain(f, args);
  ArgList list(args);
  for (Py_ssize_t i = 0; i < args.total(); ++i)
    list.set(i, plainNumber(args.v[i]));
  return callPlain(f, list.given());
}

std::string nameOfCallable(PyObject *f) {
  Obj name(PyObject_GetAttrString(f, "__qualname__"));
  PyErr_Clear();
  Obj module(name ? PyObject_GetAttrString(f, "__module__") : nullptr);
  PyErr_Clear();
  std::string text = name ? textOf(name.get()) : Py_TYPE(f)->tp_name;
  if (module && PyUnicode_Check(module.get()) && std::strcmp(textOf(module.get()), "builtins") != 0)
    text = str(textOf(module.get()), ".", text);
  return text;
}

namespace {

bool isMethodWrapper(PyObject *f) { return std::strcmp(Py_TYPE(f)->tp_name, "method-wrapper") == 0; }

/// NumPy computes with constants alone: the arguments are read down to numbers, and arrays from outside are refused.
bool isNumpyFunction(Session &s, PyObject *f, PyObject *self) {
  if (self && !PyType_Check(self))
    return isNewNumpy(s, self);
  if (std::strncmp(Py_TYPE(f)->tp_name, "numpy.", 6) == 0)
    return true;
  Obj module(PyObject_GetAttrString(f, "__module__"));
  PyErr_Clear();
  const char *name = module ? textOf(module.get()) : "";
  return std::strncmp(name, "numpy", 5) == 0 && !std::strstr(name, "random");
}

/// A builtin function or method, bound or not.
Obj callC(Session &s, PyObject *f, Given args) {
  CCall c{f, nullptr, args, false};
  if (PyCFunction_Check(f)) {
    PyObject *self = PyCFunction_GET_SELF(f);
    if (self && !PyModule_Check(self)) {
      c.self = self;
      c.bound = true;
    }
  } else if (args.n > 0) {
    c.self = args.v[0];
    c.args = args.rest(1);
  }
  if (Handler handler = knownHandler(f))
    return handler(s, c);
  if (isNumpyFunction(s, f, c.self))
    return callPure(s, c);
  notKnown(s, c.name());
  return callConverted(f, args);
}

/// A field of functools.partial and its like, of a known object or a new one.
Obj field(Session &s, PyObject *o, const char *name) {
  Obj key = Obj::check(PyUnicode_InternFromString(name));
  Obj value = Obj::check(PyObject_GetAttr(o, key.get()));
  return readGetter(s, o, key.get(), value.get());
}

Obj callPartial(Session &s, PyObject *f, Given args) {
  Obj function = field(s, f, "func"), first = field(s, f, "args"), keywords = field(s, f, "keywords");
  s.readAll(first.get());
  s.readAll(keywords.get());
  std::vector<Obj> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(first.get()); ++i)
    values.push_back(Obj::borrow(PyTuple_GET_ITEM(first.get(), i)));
  for (Py_ssize_t i = 0; i < args.n; ++i)
    values.push_back(Obj::borrow(args.v[i]));
  Py_ssize_t n = static_cast<Py_ssize_t>(values.size());
  Obj merged = Obj::check(PyDict_Copy(keywords.get()));
  for (Py_ssize_t k = 0; k < args.numKeywords(); ++k)
    if (PyDict_SetItem(merged.get(), PyTuple_GET_ITEM(args.kwnames, k), args.v[args.n + k]) < 0)
      throw PythonError{};
  Obj names = Obj::check(PySequence_Tuple(merged.get()));
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names.get()); ++k)
    values.push_back(Obj::borrow(PyDict_GetItemWithError(merged.get(), PyTuple_GET_ITEM(names.get(), k))));
  std::vector<PyObject *> raw;
  for (const Obj &v : values)
    raw.push_back(v.get());
  return callObject(s, function.get(), {raw.data(), n, PyTuple_GET_SIZE(names.get()) ? names.get() : nullptr});
}

/// Base types whose instances are what they were given: making one runs no Python code.
bool isPlainBase(PyObject *type) {
  PyTypeObject *t = asType(type);
  return t == &PyBaseObject_Type || t == &PyTuple_Type || t == &PyList_Type || t == &PyDict_Type || t == &PySet_Type ||
         t == &PyFrozenSet_Type || t == &PyODict_Type || t == &PyLong_Type || t == &PyFloat_Type ||
         t == &PyUnicode_Type || PyType_IsSubtype(t, reinterpret_cast<PyTypeObject *>(PyExc_BaseException));
}

/// Arguments for a base type in C: containers are read, numbers plain.
ArgList baseArguments(Session &s, PyTypeObject *base, Given args) {
  ArgList list(args);
  if (base == &PyBaseObject_Type || PyType_IsSubtype(base, reinterpret_cast<PyTypeObject *>(PyExc_BaseException)))
    return list;
  bool dict = PyType_IsSubtype(base, &PyDict_Type);
  for (Py_ssize_t i = 0; i < args.n; ++i) {
    if (dict && PyDict_Check(args.v[i]))
      s.readAll(args.v[i]);
    else if (isTensor(args.v[i]))
      notKnown(s, str("a ", base->tp_name, " made of a tensor"));
    else
      list.set(i, consumable(s, concretizeDeep(s, args.v[i], false).get()));
  }
  return list;
}

Obj makeInstance(Session &s, PyTypeObject *type, Given args) {
  Obj found = Obj::borrow(_PyType_Lookup(type, DLC_NAME("__new__")));
  if (found && Py_TYPE(found.get()) == &PyStaticMethod_Type) {
    Obj holder = classEntry(s, type, DLC_NAME("__new__"), found.get());
    Obj function = field(s, holder.get(), "__func__");
    return callObject(s, function.get(), ArgList(args, asObject(type)).given());
  }
  if (found && PyFunction_Check(found.get())) {
    Obj function = classEntry(s, type, DLC_NAME("__new__"), found.get());
    return callObject(s, function.get(), ArgList(args, asObject(type)).given());
  }
  lookUp(s, type, DLC_NAME("__new__"));
  PyTypeObject *base = baseInC(type);
  if (!isPlainBase(asObject(base)))
    notKnown(s, str("making a ", type->tp_name));
  bool initInPython = false;
  if (PyObject *init = _PyType_Lookup(type, DLC_NAME("__init__")))
    initInPython = PyFunction_Check(init);
  bool ignores = initInPython && (base == &PyBaseObject_Type || base == &PyDict_Type || base == &PyList_Type);
  ArgList list = ignores ? ArgList(args) : baseArguments(s, base, args);
  return callPlain(found.get(), ArgList(list.given(), asObject(type)).given());
}

void initInstance(Session &s, PyObject *o, Given args) {
  if (Obj init = specialMethod(s, o, DLC_NAME("__init__"))) {
    Obj r = callSpecial(s, init, o, args);
    if (r.get() == Py_None)
      return;
    PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", Py_TYPE(r.get())->tp_name);
    throw PythonError{};
  }
  PyObject *init = _PyType_Lookup(Py_TYPE(o), DLC_NAME("__init__"));
  if (!init || isTensor(o))
    return;
  PyTypeObject *holder = reinterpret_cast<PyDescrObject *>(init)->d_type;
  ArgList list = baseArguments(s, holder, args);
  callPlain(init, ArgList(list.given(), o).given());
}

/// Python classes of types whose instances C holds in its own way.
Obj callMetaclass(Session &s, PyTypeObject *type, Given args) {
  if (isEnumClass(asObject(type))) {
    for (Py_ssize_t i = 0; i < args.total(); ++i) {
      readPure(s, args.v[i]);
      concretizeDeep(s, args.v[i], true); // which member it is depends on the value
    }
    Obj member = callConverted(asObject(type), args);
    s.constant(member.get());
    return member;
  }
  if (Obj method = specialMethod(s, asObject(type), DLC_NAME("__call__")))
    return callSpecial(s, method, asObject(type), args);
  notKnown(s, type->tp_name);
  return callConverted(asObject(type), args);
}

} // namespace

PyTypeObject *baseInC(PyTypeObject *type) {
  while (type->tp_flags & Py_TPFLAGS_HEAPTYPE && type->tp_base)
    type = type->tp_base;
  return type;
}

Obj callNew(Session &s, PyObject *f, Given args) {
  PyObject *base = PyCFunction_GET_SELF(f);
  if (!PyType_Check(base) || !isPlainBase(base))
    notKnown(s, nameOfCallable(f));
  if (args.n == 0 || asType(base) == &PyBaseObject_Type)
    return callPlain(f, args);
  ArgList list = baseArguments(s, asType(base), args.rest(1));
  return callPlain(f, ArgList(list.given(), args.v[0]).given());
}

Obj callType(Session &s, PyTypeObject *type, Given args) {
  if (type == &PyType_Type && args.n == 1 && !args.kwnames) {
    PyObject *o = args.v[0];
    PyTypeObject *of = Py_TYPE(o) == symbolicIntType     ? &PyLong_Type
                       : Py_TYPE(o) == symbolicFloatType ? &PyFloat_Type
                                                         : Py_TYPE(o);
    s.constant(asObject(of));
    return Obj::borrow(asObject(of));
  }
  if (type == &_PyWeakref_RefType && args.n > 1 && args.v[1] != Py_None)
    s.fail("a weak reference with a callback is made");
  if (Handler handler = knownHandler(asObject(type)))
    return handler(s, {asObject(type), nullptr, args, false});
  if (std::strncmp(type->tp_name, "numpy.", 6) == 0 && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
    return callPure(s, {asObject(type), nullptr, args, false});
  if (Py_TYPE(type)->tp_call != PyType_Type.tp_call)
    return callMetaclass(s, type, args);
  return callPlainType(s, type, args);
}

Obj callPlainType(Session &s, PyTypeObject *type, Given args) {
  bool exception = PyType_IsSubtype(type, reinterpret_cast<PyTypeObject *>(PyExc_BaseException));
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) ? !exception && type != &PyBaseObject_Type : type == &PyType_Type) {
    notKnown(s, type->tp_name);
    return callConverted(asObject(type), args);
  }
  if (lookUp(s, type, DLC_NAME("__del__")))
    s.fail(str("an object of type ", type->tp_name, " is made, whose __del__ runs when it dies"));
  Obj instance = makeInstance(s, type, args);
  if (PyObject_TypeCheck(instance.get(), type))
    initInstance(s, instance.get(), args);
  return instance;
}

Obj callObject(Session &s, PyObject *f, Given args) {
  if (s.failed() && !PyFunction_Check(f) && !PyMethod_Check(f))
    for (Py_ssize_t i = 0; i < args.total(); ++i)
      Session::settle(args.v[i]);
  if (s.failed())
    return callConverted(f, args);
  if (PyFunction_Check(f))
    return enter(s, f, args);
  if (PyMethod_Check(f)) {
    Obj keep = Obj::borrow(f);
    return callObject(s, PyMethod_GET_FUNCTION(f), ArgList(args, PyMethod_GET_SELF(f)).given());
  }
  if (PyCFunction_Check(f) && std::strcmp(reinterpret_cast<PyCFunctionObject *>(f)->m_ml->ml_name, "__new__") == 0 &&
      PyCFunction_GET_SELF(f) && PyType_Check(PyCFunction_GET_SELF(f)) && !knownHandler(f))
    return callNew(s, f, args);
  if (PyCFunction_Check(f) || Py_TYPE(f) == &PyMethodDescr_Type || Py_TYPE(f) == &PyClassMethodDescr_Type)
    return callC(s, f, args);
  if (Py_TYPE(f) == &PyWrapperDescr_Type || isMethodWrapper(f))
    return callSlotWrapper(s, f, args);
  if (PyType_Check(f))
    return callType(s, asType(f), args);
  const char *type = Py_TYPE(f)->tp_name;
  if (std::strcmp(type, "functools.partial") == 0)
    return callPartial(s, f, args);
  if (std::strcmp(type, "dlc._Compiled") == 0)
    return callObject(s, field(s, f, "__wrapped__").get(), args);
  if (Handler handler = knownHandler(asObject(Py_TYPE(f))))
    if (!(Py_TYPE(f)->tp_flags & Py_TPFLAGS_HEAPTYPE) || Py_TYPE(f)->tp_call)
      if (std::strncmp(type, "operator.", 9) == 0)
        return handler(s, {f, f, args, true});
  if (Obj method = specialMethod(s, f, DLC_NAME("__call__")))
    return callSpecial(s, method, f, args);
  if (isNumpyFunction(s, f, nullptr)) {
    guardIdentity(s, f);
    return callPure(s, {f, nullptr, args, false});
  }
  notKnown(s, str("calling a ", type));
  return callConverted(f, args);
}

Obj callMethod(Session &s, PyObject *o, PyObject *name, Given args) {
  Obj method = attribute(s, o, name);
  return callObject(s, method.get(), args);
}

} // namespace dlc::py
