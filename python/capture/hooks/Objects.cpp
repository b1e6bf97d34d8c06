// Known functions of objects in general: getattr, isinstance, str, the operator module's getters, and the methods of C
// base types that super() finds.
#include "python/binding/Imported.h"
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>
#include <frameobject.h>

namespace dlc::py {
namespace {

PyObject *arg(const CCall &c, Py_ssize_t i) { return i < c.args.n ? c.args.v[i] : nullptr; }
bool isOdd(const CCall &c, Py_ssize_t least, Py_ssize_t most) {
  return c.args.kwnames || c.args.n < least || c.args.n > most;
}
Obj none() { return Obj::borrow(Py_None); }
Obj boolean(bool b) { return Obj::borrow(b ? Py_True : Py_False); }

Obj getattrOf(Session &s, const CCall &c) {
  if (isOdd(c, 2, 3) || !PyUnicode_Check(arg(c, 1)))
    return c.plain();
  if (!arg(c, 2))
    return attribute(s, arg(c, 0), arg(c, 1));
  Obj found = attributeOrNull(s, arg(c, 0), arg(c, 1));
  return found ? found : Obj::borrow(arg(c, 2));
}
Obj hasattrOf(Session &s, const CCall &c) {
  if (isOdd(c, 2, 2) || !PyUnicode_Check(arg(c, 1)))
    return c.plain();
  return boolean(static_cast<bool>(attributeOrNull(s, arg(c, 0), arg(c, 1))));
}
Obj setattrOf(Session &s, const CCall &c) {
  if (isOdd(c, 3, 3) || !PyUnicode_Check(arg(c, 1)))
    return c.plain();
  setAttribute(s, arg(c, 0), arg(c, 1), arg(c, 2));
  return none();
}
Obj delattrOf(Session &s, const CCall &c) {
  if (isOdd(c, 2, 2) || !PyUnicode_Check(arg(c, 1)))
    return c.plain();
  setAttribute(s, arg(c, 0), arg(c, 1), nullptr);
  return none();
}

bool inMro(PyTypeObject *type, PyObject *cls) {
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i)
    if (PyTuple_GET_ITEM(type->tp_mro, i) == cls)
      return true;
  return false;
}

bool isAbstractMeta(PyObject *cls) {
  static Imported meta("abc", "ABCMeta");
  return PyObject_TypeCheck(cls, asType(meta.get()));
}

/// isinstance(o, cls) with `type` for o's class, or issubclass(type, cls).
bool isSubclassOf(Session &s, PyTypeObject *type, PyObject *o, PyObject *cls) {
  if (PyTuple_Check(cls)) {
    s.readAll(cls);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cls); ++i)
      if (isSubclassOf(s, type, o, PyTuple_GET_ITEM(cls, i)))
        return true;
    return false;
  }
  guardMro(s, type);
  int plain = o ? PyObject_IsInstance(o, cls) : PyObject_IsSubclass(asObject(type), cls);
  if (plain < 0)
    throw PythonError{};
  if (!PyType_Check(cls) || inMro(type, cls))
    return plain != 0;
  PyObject *name = o ? DLC_NAME("__instancecheck__") : DLC_NAME("__subclasscheck__");
  PyObject *check = lookUp(s, Py_TYPE(cls), name);
  // A class once registered with an abstract one stays so; that none will be is only known of builtin types.
  bool registered = plain || !isMutableType(type) || type == tensorType || type == sizeType;
  if (check && !PyObject_TypeCheck(check, &PyMethodDescr_Type) && !(isAbstractMeta(cls) && registered))
    s.fail(str("`", asType(cls)->tp_name, "` decides by Python code what its instances are"));
  return plain != 0;
}

Obj isinstanceOf(Session &s, const CCall &c) {
  if (isOdd(c, 2, 2))
    return c.plain();
  Obj o = plainNumber(arg(c, 0));
  return boolean(isSubclassOf(s, Py_TYPE(o.get()), o.get(), arg(c, 1)));
}
Obj issubclassOf(Session &s, const CCall &c) {
  if (isOdd(c, 2, 2) || !PyType_Check(arg(c, 0)))
    return c.plain();
  return boolean(isSubclassOf(s, asType(arg(c, 0)), nullptr, arg(c, 1)));
}

// --- id()

/// An int that stands for the identity of an object. As it is no plain int, whatever else than comparing it or using
/// it as a key is done with it ends the session.
PyTypeObject *identityType() {
  static PyTypeObject *const type = [] {
    static PyType_Slot slots[] = {{0, nullptr}};
    static PyType_Spec spec = {"dlc._Identity", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    Obj bases = Obj::check(PyTuple_Pack(1, &PyLong_Type));
    return asType(Obj::check(PyType_FromSpecWithBases(&spec, bases.get())).release());
  }();
  return type;
}

Obj idOf(Session &s, const CCall &c) {
  constexpr size_t kMaxIdentities = 2000;
  if (isOdd(c, 1, 1))
    return c.plain();
  PyObject *o = arg(c, 0);
  bool seen = false;
  for (const Obj &other : s.identities)
    seen |= sameObject(s, o, other.get());
  if (!seen)
    s.identities.push_back(Obj::borrow(o));                 // its address is not used again
  if (s.isKnown(o) && s.identities.size() > kMaxIdentities) // each is compared with all before
    s.fail("id() of many objects");
  Obj plain = c.plain(), args = Obj::check(PyTuple_Pack(1, plain.get()));
  return Obj::check(PyLong_Type.tp_new(identityType(), args.get(), nullptr));
}

Obj callableOf(Session &s, const CCall &c) {
  if (!isOdd(c, 1, 1) && !PyFunction_Check(arg(c, 0)))
    lookUp(s, Py_TYPE(arg(c, 0)), DLC_NAME("__call__"));
  return c.plain();
}

Obj varsOf(Session &s, const CCall &c) {
  if (isOdd(c, 1, 1)) {
    notKnown(s, "vars()");
    return c.plain();
  }
  return attribute(s, arg(c, 0), DLC_NAME("__dict__"));
}

Obj strOf(Session &s, const CCall &c) {
  static PyObject *const empty = PyUnicode_InternFromString("");
  return c.args.n == 1 && c.args.total() == 1 ? text(s, arg(c, 0), 's', empty) : callPure(s, c);
}
Obj reprOf(Session &s, const CCall &c) {
  static PyObject *const empty = PyUnicode_InternFromString("");
  return isOdd(c, 1, 1) ? c.plain() : text(s, arg(c, 0), 'r', empty);
}
Obj formatOf(Session &s, const CCall &c) {
  static PyObject *const empty = PyUnicode_InternFromString("");
  return isOdd(c, 1, 2) ? c.plain() : text(s, arg(c, 0), -1, arg(c, 1) ? arg(c, 1) : empty);
}

// --- output

/// warnings.warn names the line that calls it; another call repeats the warning under the same name.
Obj warnOf(Session &s, const CCall &c) {
  PyObject *message = arg(c, 0), *category = arg(c, 1);
  Obj result;
  {
    Unobserved quiet(s);
    result = c.plain();
  }
  auto *frame = PyEval_GetFrame();
  if (isOdd(c, 1, 2) || !frame) {
    notKnown(s, "warnings.warn with a stack level");
    return result;
  }
  if (PyObject_IsInstance(message, PyExc_Warning) == 1)
    category = asObject(Py_TYPE(message));
  Obj code(reinterpret_cast<PyObject *>(PyFrame_GetCode(frame)));
  Obj globals = Obj::check(PyObject_GetAttrString(reinterpret_cast<PyObject *>(frame), "f_globals"));
  Obj line = Obj::check(PyLong_FromLong(PyFrame_GetLineNumber(frame)));
  PyObject *module = PyDict_GetItemWithError(globals.get(), DLC_NAME("__name__"));
  PyObject *registry = PyDict_GetItemWithError(globals.get(), DLC_NAME("__warningregistry__"));
  static PyObject *const explicitly = [] {
    Obj warnings = Obj::check(PyImport_ImportModule("_warnings"));
    return Obj::check(PyObject_GetAttrString(warnings.get(), "warn_explicit")).release();
  }();
  if (!registry || !module) {
    notKnown(s, "warnings.warn in a module without a registry");
    return result;
  }
  s.constant(registry);
  PyObject *args[] = {message,
                      category && category != Py_None ? category : PyExc_UserWarning,
                      reinterpret_cast<PyCodeObject *>(code.get())->co_filename,
                      line.get(),
                      module,
                      registry};
  s.effectDeferred(explicitly, args, 6, nullptr);
  return result;
}

/// write() of a text file or StringIO from outside: output that gives the number of characters.
Obj writeOf(Session &s, const CCall &c) {
  if (!c.self || !s.isKnown(c.self) || isOdd(c, 1, 1) || !PyUnicode_CheckExact(arg(c, 0)))
    return c.self && s.isKnown(c.self) ? (notKnown(s, c.name()), c.plain()) : c.plain();
  Obj result = c.plain();
  PyObject *args[] = {c.self, arg(c, 0)};
  s.effectDeferred(_PyType_Lookup(Py_TYPE(c.self), DLC_NAME("write")), args, 2, nullptr);
  return result;
}
Obj flushOf(Session &s, const CCall &c) {
  Obj result = c.plain();
  if (c.self && s.isKnown(c.self))
    s.effectDeferred(_PyType_Lookup(Py_TYPE(c.self), DLC_NAME("flush")), &c.self, 1, nullptr);
  return result;
}

// --- the operator module

template <int Op> Obj binaryOf(Session &s, const CCall &c) {
  return isOdd(c, 2, 2) ? c.plain() : binary(s, Op, arg(c, 0), arg(c, 1));
}
template <int Op> Obj compareOf(Session &s, const CCall &c) {
  return isOdd(c, 2, 2) ? c.plain() : compare(s, Op, arg(c, 0), arg(c, 1));
}
template <int Op> Obj unaryOf(Session &s, const CCall &c) {
  return isOdd(c, 1, 1) ? c.plain() : unary(s, Op, arg(c, 0));
}
Obj containsOf(Session &s, const CCall &c) {
  return isOdd(c, 2, 2) ? c.plain() : compare(s, kIn, arg(c, 1), arg(c, 0));
}
Obj truthOf(Session &s, const CCall &c) { return isOdd(c, 1, 1) ? c.plain() : boolean(truth(s, arg(c, 0))); }
Obj notOf(Session &s, const CCall &c) { return isOdd(c, 1, 1) ? c.plain() : boolean(!truth(s, arg(c, 0))); }
Obj getItemOf(Session &s, const CCall &c) { return isOdd(c, 2, 2) ? c.plain() : getItem(s, arg(c, 0), arg(c, 1)); }
Obj setItemOf(Session &s, const CCall &c) {
  if (isOdd(c, 3, 3))
    return c.plain();
  setItem(s, arg(c, 0), arg(c, 1), arg(c, 2));
  return none();
}

/// Several results as a tuple, one as it is.
template <class F> Obj each(PyObject *keys, F &&get) {
  Py_ssize_t n = PyTuple_GET_SIZE(keys);
  if (n == 1)
    return get(PyTuple_GET_ITEM(keys, 0));
  Obj tuple = Obj::check(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(tuple.get(), i, get(PyTuple_GET_ITEM(keys, i)).release());
  return tuple;
}

/// What an itemgetter, attrgetter or methodcaller was made with; it must be the same object in other calls.
Obj partsOf(Session &s, PyObject *getter) {
  guardIdentity(s, getter);
  Obj reduced = Obj::check(PyObject_CallMethod(getter, "__reduce__", nullptr));
  return Obj::borrow(PyTuple_GET_ITEM(reduced.get(), 1));
}
/// The getter types stand in the table: with arguments they are made, as objects they are called.
Obj itemGetter(Session &s, const CCall &c) {
  if (!c.bound)
    return c.plain();
  return each(partsOf(s, c.self).get(), [&](PyObject *key) { return getItem(s, arg(c, 0), key); });
}
Obj attrGetter(Session &s, const CCall &c) {
  if (!c.bound)
    return c.plain();
  return each(partsOf(s, c.self).get(), [&](PyObject *path) {
    Obj names = Obj::check(PyObject_CallMethod(path, "split", "s", ".")), o = Obj::borrow(arg(c, 0));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i)
      o = attribute(s, o.get(), PyList_GET_ITEM(names.get(), i));
    return o;
  });
}
Obj methodCaller(Session &s, const CCall &c) {
  if (!c.bound)
    return c.plain();
  Obj parts = partsOf(s, c.self);
  PyObject *name = PyTuple_GET_ITEM(parts.get(), 0);
  std::vector<PyObject *> args;
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(parts.get()); ++i)
    args.push_back(PyTuple_GET_ITEM(parts.get(), i));
  return callMethod(s, arg(c, 0), name, {args.data(), static_cast<Py_ssize_t>(args.size())});
}

// --- slot wrappers

bool isScalars(PyObject *self, Given args) {
  bool scalars = Session::isScalar(self) || PyType_Check(self);
  for (Py_ssize_t i = 0; i < args.total(); ++i)
    scalars &= Session::isScalar(args.v[i]) || PyType_Check(args.v[i]);
  return scalars;
}

Obj baseGetAttribute(Session &s, PyObject *o, PyObject *name) {
  Obj found = genericOrNull(s, o, name);
  return found ? found : Obj::check(PyObject_GenericGetAttr(o, name));
}

/// __init__ of a C type: object's does nothing, others fill a new object.
Obj baseInit(Session &s, PyObject *f, PyObject *owner, PyObject *self, Given args, Given all) {
  bool simple = owner == asObject(&PyBaseObject_Type) ||
                PyType_IsSubtype(asType(owner), reinterpret_cast<PyTypeObject *>(PyExc_BaseException));
  if ((!simple || s.isKnown(self)) && owner != asObject(&PyBaseObject_Type) && s.isKnown(self))
    notKnown(s, nameOfCallable(f));
  if (simple)
    return callPlain(f, all);
  if (PyDict_Check(self) && PyDict_GET_SIZE(self) == 0 && args.n <= 1) {
    static PyObject *const update = PyDict_GetItemString(PyDict_Type.tp_dict, "update");
    return containerHandler("dict_update")(s, {update, self, args, false});
  }
  ArgList list(args);
  for (Py_ssize_t i = 0; i < args.n; ++i)
    list.set(i, consumable(s, args.v[i]));
  bool unbound = all.n != args.n;
  return callPlain(f, unbound ? ArgList(list.given(), self).given() : list.given());
}

} // namespace

bool isIdentity(PyObject *o) { return Py_TYPE(o) == identityType(); }

Obj callSlotWrapper(Session &s, PyObject *f, Given all) {
  Obj nameObject = Obj::check(PyObject_GetAttrString(f, "__name__"));
  Obj owner = Obj::check(PyObject_GetAttrString(f, "__objclass__"));
  bool bound = Py_TYPE(f) != &PyWrapperDescr_Type;
  if (!bound && all.n == 0)
    return callPlain(f, all); // raises
  Obj selfObject = bound ? Obj::check(PyObject_GetAttrString(f, "__self__")) : Obj::borrow(all.v[0]);
  PyObject *self = selfObject.get();
  Given args = bound ? all : all.rest(1);
  const char *name = textOf(nameObject.get());
  auto is = [&](const char *other, Py_ssize_t n) {
    return std::strcmp(name, other) == 0 && args.n == n && !args.kwnames;
  };
  bool object = owner.get() == asObject(&PyBaseObject_Type);
  bool container = PyList_Check(self) || PyTuple_Check(self) || PyDict_Check(self);
  if (std::strcmp(name, "__call__") == 0 && owner.get() == asObject(&PyType_Type) && PyType_Check(self))
    return callPlainType(s, asType(self), args); // super().__call__ of a metaclass
  if (std::strcmp(name, "__init__") == 0)
    return baseInit(s, f, owner.get(), self, args, all);
  if (is("__setattr__", 2) || is("__delattr__", 1)) {
    if (PyType_Check(self))
      setAttribute(s, self, args.v[0], args.n == 2 ? args.v[1] : nullptr);
    else
      setPlainAttribute(s, self, args.v[0], args.n == 2 ? args.v[1] : nullptr);
    return none();
  }
  if (is("__getattribute__", 1) && object)
    return baseGetAttribute(s, self, args.v[0]);
  if (is("__getitem__", 1) && container)
    return getBaseItem(s, self, args.v[0]);
  if ((is("__setitem__", 2) || is("__delitem__", 1)) && (PyList_Check(self) || PyDict_Check(self))) {
    setBaseItem(s, self, args.v[0], args.n == 2 ? args.v[1] : nullptr);
    return none();
  }
  if (is("__len__", 0) && (container || PyAnySet_Check(self)))
    return s.length(self);
  if (is("__iter__", 0) && !specialMethod(s, self, DLC_NAME("__iter__")))
    return iterate(s, self);
  if (is("__next__", 0) && !s.isKnown(self))
    return callPlain(f, all);
  if (is("__contains__", 1) && !specialMethod(s, self, DLC_NAME("__contains__")))
    return compare(s, kIn, args.v[0], self);
  if (is("__eq__", 1) && object)
    return sameObject(s, self, args.v[0]) ? boolean(true) : Obj::borrow(Py_NotImplemented);
  if (is("__call__", args.n))
    return callObject(s, self, args);
  if (std::strcmp(name, "__get__") == 0 && PyFunction_Check(self))
    return callPlain(f, all);
  if (!isScalars(self, args))
    notKnown(s, nameOfCallable(f));
  return callConverted(f, all);
}

Handler objectHandler(const char *name) {
  static const std::pair<const char *, Handler> handlers[] = {{"getattr", getattrOf},
                                                              {"hasattr", hasattrOf},
                                                              {"setattr", setattrOf},
                                                              {"delattr", delattrOf},
                                                              {"isinstance", isinstanceOf},
                                                              {"issubclass", issubclassOf},
                                                              {"callable", callableOf},
                                                              {"id", idOf},
                                                              {"warn", warnOf},
                                                              {"write", writeOf},
                                                              {"flush", flushOf},
                                                              {"vars", varsOf},
                                                              {"str", strOf},
                                                              {"repr", reprOf},
                                                              {"format", formatOf},
                                                              {"op_add", binaryOf<kAdd>},
                                                              {"op_sub", binaryOf<kSub>},
                                                              {"op_mul", binaryOf<kMult>},
                                                              {"op_matmul", binaryOf<kMatMult>},
                                                              {"op_truediv", binaryOf<kDiv>},
                                                              {"op_floordiv", binaryOf<kFloorDiv>},
                                                              {"op_mod", binaryOf<kMod>},
                                                              {"op_pow", binaryOf<kPow>},
                                                              {"op_and", binaryOf<kBitAnd>},
                                                              {"op_or", binaryOf<kBitOr>},
                                                              {"op_xor", binaryOf<kBitXor>},
                                                              {"op_lshift", binaryOf<kLShift>},
                                                              {"op_rshift", binaryOf<kRShift>},
                                                              {"op_eq", compareOf<kEq>},
                                                              {"op_ne", compareOf<kNotEq>},
                                                              {"op_lt", compareOf<kLt>},
                                                              {"op_le", compareOf<kLtE>},
                                                              {"op_gt", compareOf<kGt>},
                                                              {"op_ge", compareOf<kGtE>},
                                                              {"op_is", compareOf<kIs>},
                                                              {"op_is_not", compareOf<kIsNot>},
                                                              {"op_pos", unaryOf<0>},
                                                              {"op_neg", unaryOf<1>},
                                                              {"op_invert", unaryOf<2>},
                                                              {"op_contains", containsOf},
                                                              {"op_truth", truthOf},
                                                              {"op_not", notOf},
                                                              {"op_getitem", getItemOf},
                                                              {"op_setitem", setItemOf},
                                                              {"itemgetter", itemGetter},
                                                              {"attrgetter", attrGetter},
                                                              {"methodcaller", methodCaller}};
  for (const auto &[known, handler] : handlers)
    if (std::strcmp(known, name) == 0)
      return handler;
  return nullptr;
}

} // namespace dlc::py
