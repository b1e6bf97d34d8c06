// Iteration, unpacking and `with`: iterators over containers from outside that tell the session each item they read,
// and stand-ins that enter __next__, __enter__ and __exit__ of classes in Python.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

/// One object and a position: the state of all stand-ins.
struct Stand {
  PyObject_HEAD PyObject *object;
  Py_ssize_t at;
};
Stand *standOf(PyObject *o) { return reinterpret_cast<Stand *>(o); }
PyTypeObject *sequenceIteratorType, *userIteratorType, *contextType, *callableType;

int standTraverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(standOf(self)->object);
  Py_VISIT(Py_TYPE(self));
  return 0;
}
int standClear(PyObject *self) {
  Py_CLEAR(standOf(self)->object);
  return 0;
}
void standFree(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  standClear(self);
  type->tp_free(self);
  Py_DECREF(type);
}
Obj makeStand(PyTypeObject *type, PyObject *object) {
  Obj self = Obj::check(type->tp_alloc(type, 0));
  standOf(self.get())->object = Py_NewRef(object);
  standOf(self.get())->at = 0;
  return self;
}

/// As the iterators of list and tuple: the length is looked at before each item.
PyObject *sequenceNext(PyObject *self) {
  return guarded([&]() -> PyObject * {
    Stand *it = standOf(self);
    if (!it->object)
      return nullptr;
    Session *s = Session::current();
    if (it->at < PySequence_Fast_GET_SIZE(it->object)) {
      Py_ssize_t i = it->at++;
      return s ? s->item(it->object, i).release() : Py_NewRef(PySequence_Fast_GET_ITEM(it->object, i));
    }
    if (s) {
      Obj length = s->length(it->object);
      s->concretize(length.get());
    }
    Py_CLEAR(it->object);
    return nullptr;
  });
}

PyObject *userNext(PyObject *self) {
  return guarded([&]() -> PyObject * {
    PyObject *object = standOf(self)->object;
    Session *s = Session::current();
    if (s)
      if (Obj method = specialMethod(*s, object, DLC_NAME("__next__")))
        return callSpecial(*s, method, object, {nullptr, 0}).release();
    return Py_TYPE(object)->tp_iternext(object);
  });
}

PyObject *contextEnter(PyObject *self, PyObject *) {
  return guarded([&]() -> PyObject * {
    PyObject *object = standOf(self)->object;
    Session *s = Session::current();
    if (s)
      if (Obj method = specialMethod(*s, object, DLC_NAME("__enter__")))
        return callSpecial(*s, method, object, {nullptr, 0}).release();
    return PyObject_CallMethodNoArgs(object, DLC_NAME("__enter__"));
  });
}
PyObject *contextExit(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  return guarded([&]() -> PyObject * {
    PyObject *object = standOf(self)->object;
    Session *s = Session::current();
    Obj method = s ? specialMethod(*s, object, DLC_NAME("__exit__")) : Obj();
    if (!method) {
      Obj plain = Obj::check(PyObject_GetAttr(object, DLC_NAME("__exit__")));
      return PyObject_Vectorcall(plain.get(), args, static_cast<size_t>(nargs), nullptr);
    }
    Obj result = callSpecial(*s, method, object, {args, nargs});
    bool raised = nargs > 0 && args[0] != Py_None;
    return raised ? PyBool_FromLong(truth(*s, result.get())) : result.release();
  });
}

PyObject *callableCall(PyObject *self, PyObject *args, PyObject *kwargs) {
  return guarded([&]() -> PyObject * {
    PyObject *f = standOf(self)->object;
    Session *s = Session::current();
    if (!s || (kwargs && PyDict_GET_SIZE(kwargs)))
      return PyObject_Call(f, args, kwargs);
    std::vector<PyObject *> raw;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      raw.push_back(PyTuple_GET_ITEM(args, i));
    Obj result = callObject(*s, f, {raw.data(), PyTuple_GET_SIZE(args)});
    switch (static_cast<Results>(standOf(self)->at)) {
    case Results::Tested:
      return PyBool_FromLong(truth(*s, result.get()));
    case Results::Compared:
      readPure(*s, result.get());
      return concretizeDeep(*s, result.get(), true).release();
    case Results::AsTheyAre:
      break;
    }
    return result.release();
  });
}

PyMethodDef contextMethods[] = {
    {"__enter__", contextEnter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(contextExit)), METH_FASTCALL, nullptr},
    {}};

PyTypeObject *makeStandType(const char *name, std::vector<PyType_Slot> slots) {
  slots.push_back({Py_tp_dealloc, reinterpret_cast<void *>(standFree)});
  slots.push_back({Py_tp_traverse, reinterpret_cast<void *>(standTraverse)});
  slots.push_back({Py_tp_clear, reinterpret_cast<void *>(standClear)});
  slots.push_back({0, nullptr});
  PyType_Spec spec = {name, sizeof(Stand), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  return asType(Obj::check(PyType_FromSpec(&spec)).release());
}

bool isIterator(PyObject *o) { return PyIter_Check(o) && Py_TYPE(o)->tp_iter; }

/// The order of a set of objects depends on their addresses.
void checkSetOrder(Session &s, PyObject *set) {
  if (PySet_GET_SIZE(set) < 2)
    return;
  if (s.isKnown(set))
    return; // its items are guarded in their order
  Obj items = Obj::check(PySequence_Tuple(set));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    if (!Session::isScalar(PyTuple_GET_ITEM(items.get(), i)) && !PyTuple_Check(PyTuple_GET_ITEM(items.get(), i)))
      return s.fail("the order of a set of objects decides what the program does");
}

} // namespace

void readNumbers(Session &s, PyObject *o) {
  for (PyObject *name : {DLC_NAME("start"), DLC_NAME("stop"), DLC_NAME("step")}) {
    Obj value = Obj::check(PyObject_GetAttr(o, name));
    Obj seen = readGetter(s, o, name, value.get());
    s.concretize(seen.get());
    if (!Session::isScalar(value.get()) && !isSymbolic(value.get()) && s.isKnown(o))
      s.fail("a slice of objects from outside is used");
  }
}

namespace {

Obj plainIterator(PyObject *o) { return Obj::check(PyObject_GetIter(o)); }

/// The iterator that a class in Python makes.
Obj userIterator(Session &s, PyObject *o, const Obj &method) {
  Obj made = callSpecial(s, method, o, {nullptr, 0});
  if (!PyIter_Check(made.get())) {
    PyErr_Format(PyExc_TypeError, "iter() returned non-iterator of type '%.100s'", Py_TYPE(made.get())->tp_name);
    throw PythonError{};
  }
  if (specialMethod(s, made.get(), DLC_NAME("__next__")))
    return makeStand(userIteratorType, made.get());
  if (s.isKnown(made.get()))
    s.fail("an iterator from outside is used up");
  return made;
}

} // namespace

Obj iterate(Session &s, PyObject *o) {
  if (s.failed() || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o))
    return plainIterator(o);
  if (iteratesAsSequence(o))
    return s.isKnown(o) ? makeStand(sequenceIteratorType, o) : plainIterator(o);
  if (isDictLike(o)) {
    s.dictKeys(o);
    return plainIterator(o);
  }
  if (PyAnySet_CheckExact(o)) {
    checkSetOrder(s, o);
    s.readAll(o);
    return plainIterator(o);
  }
  if (isTensor(o)) {
    if (Obj sizes = s.symbolicSizes(tensorOf(o)); sizes && PyTuple_GET_SIZE(sizes.get()))
      s.concretize(PyTuple_GET_ITEM(sizes.get(), 0));
    return plainIterator(o);
  }
  if (PyRange_Check(o)) {
    readNumbers(s, o);
    return plainIterator(o);
  }
  if (PyType_Check(o)) {
    if (!isEnumClass(o))
      s.fail("a class is iterated over");
    Obj members = Obj::check(PySequence_List(o));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(members.get()); ++i)
      s.constant(PyList_GET_ITEM(members.get(), i));
    return plainIterator(members.get());
  }
  if (Obj method = specialMethod(s, o, DLC_NAME("__iter__")))
    return method.get() == Py_None ? plainIterator(o) : userIterator(s, o, method);
  if (s.isKnown(o))
    s.fail(str(isIterator(o) ? "an iterator from outside" : Py_TYPE(o)->tp_name, " is iterated over"));
  else if (!Py_TYPE(o)->tp_iter && specialMethod(s, o, DLC_NAME("__getitem__")))
    s.fail(str("iteration over ", Py_TYPE(o)->tp_name, " goes through its __getitem__"));
  return plainIterator(o);
}

Obj consumable(Session &s, PyObject *o) {
  if (s.failed() || isSymbolic(o) || Session::isScalar(o))
    return plainNumber(o);
  if (iteratesAsSequence(o)) {
    s.readAll(o);
    return Obj::borrow(o);
  }
  if (isTensor(o)) { // rows, whoever iterates
    Obj sizes = s.symbolicSizes(tensorOf(o));
    if (sizes && PyTuple_GET_SIZE(sizes.get()))
      s.concretize(PyTuple_GET_ITEM(sizes.get(), 0));
    return Obj::borrow(o);
  }
  if (isDictLike(o) && s.isKnown(o))
    return s.dictKeys(o);
  if (isDictLike(o))
    return Obj::borrow(o);
  if (PyAnySet_CheckExact(o)) {
    iterate(s, o);
    return Obj::borrow(o);
  }
  if (!Py_TYPE(o)->tp_iter && !PySequence_Check(o))
    return Obj::borrow(o);
  return iterate(s, o);
}

Obj unpack(Session *s, PyObject *value, Py_ssize_t n, Py_ssize_t star) {
  if (!Py_TYPE(value)->tp_iter && !PySequence_Check(value))
    return Obj::borrow(value);
  std::vector<Obj> items;
  if (iteratesAsSequence(value)) {
    if (s && s->isKnown(value)) {
      Obj length = s->length(value);
      s->concretize(length.get());
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i)
      items.push_back(s ? s->item(value, i) : Obj::borrow(PySequence_Fast_GET_ITEM(value, i)));
  } else {
    Obj iterator = s ? iterate(*s, value) : plainIterator(value);
    while (star >= 0 || static_cast<Py_ssize_t>(items.size()) <= n) {
      Obj item(PyIter_Next(iterator.get()));
      if (!item)
        break;
      items.push_back(std::move(item));
    }
    if (PyErr_Occurred())
      throw PythonError{};
  }
  Py_ssize_t count = static_cast<Py_ssize_t>(items.size()), after = n - 1 - star;
  if (star >= 0 && count < n - 1) {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %zd, got %zd)", n - 1, count);
    throw PythonError{};
  }
  Obj tuple = Obj::check(PyTuple_New(star < 0 ? count : n));
  Obj rest = star < 0 ? Obj() : Obj::check(PyList_New(count - (n - 1)));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *item = items[static_cast<size_t>(i)].release();
    if (star < 0 || i < star)
      PyTuple_SET_ITEM(tuple.get(), i, item);
    else if (i < count - after)
      PyList_SET_ITEM(rest.get(), i - star, item);
    else
      PyTuple_SET_ITEM(tuple.get(), n - (count - i), item);
  }
  if (star >= 0)
    PyTuple_SET_ITEM(tuple.get(), star, rest.release());
  return tuple;
}

Obj contextManager(Session &s, PyObject *manager) {
  if (s.failed())
    return Obj::borrow(manager);
  if (specialMethod(s, manager, DLC_NAME("__enter__")))
    return makeStand(contextType, manager);
  bool mode = std::strncmp(Py_TYPE(manager)->tp_name, "dlc.", 4) == 0;
  if (_PyType_Lookup(Py_TYPE(manager), DLC_NAME("__enter__")) && (!mode || s.isKnown(manager)))
    s.fail(
        str("`with` on a ", Py_TYPE(manager)->tp_name, mode ? " from outside" : "", " is not known to be replayable"));
  return Obj::borrow(manager);
}

Obj observedCallable(PyObject *f, Results results) {
  Obj self = makeStand(callableType, f);
  standOf(self.get())->at = static_cast<Py_ssize_t>(results);
  return self;
}

void initIteration() {
  auto fn = [](auto *f) { return reinterpret_cast<void *>(f); };
  sequenceIteratorType =
      makeStandType("dlc._SequenceIterator", {{Py_tp_iter, fn(PyObject_SelfIter)}, {Py_tp_iternext, fn(sequenceNext)}});
  userIteratorType =
      makeStandType("dlc._UserIterator", {{Py_tp_iter, fn(PyObject_SelfIter)}, {Py_tp_iternext, fn(userNext)}});
  contextType = makeStandType("dlc._Context", {{Py_tp_methods, contextMethods}});
  callableType = makeStandType("dlc._Callable", {{Py_tp_call, fn(callableCall)}});
}

} // namespace dlc::py
