// Known functions of containers that read or change single items: dict.get, list.pop, len, iter, next and the like.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

PyObject *arg(const CCall &c, Py_ssize_t i) { return i < c.args.n ? c.args.v[i] : nullptr; }
/// Whether the call is not the simple one: keywords, or too few arguments, or another kind of object.
bool isOdd(const CCall &c, Py_ssize_t least, Py_ssize_t most) {
  return c.args.kwnames || c.args.n < least || c.args.n > most;
}
bool isDict(const CCall &c) { return c.self && PyDict_Check(c.self); }

Obj dictGet(Session &s, const CCall &c) {
  if (isOdd(c, 1, 2) || !isDict(c))
    return c.plain();
  checkKey(s, arg(c, 0));
  Obj key = concretizeDeep(s, arg(c, 0), true);
  if (Obj value = dictValue(s, c.self, key.get()))
    return value;
  return Obj::borrow(arg(c, 1) ? arg(c, 1) : Py_None);
}

Obj dictContains(Session &s, const CCall &c) {
  checkKey(s, arg(c, 0));
  Obj key = concretizeDeep(s, arg(c, 0), true);
  return Obj::borrow(dictValue(s, c.self, key.get()) ? Py_True : Py_False);
}

Obj dictPop(Session &s, const CCall &c) {
  if (isOdd(c, 1, 2) || !isDict(c))
    return s.isKnown(c.self) ? (notKnown(s, c.name()), c.plain()) : c.plain();
  checkKey(s, arg(c, 0));
  Obj key = concretizeDeep(s, arg(c, 0), true), value = dictValue(s, c.self, key.get());
  if (!value)
    return arg(c, 1) ? Obj::borrow(arg(c, 1)) : c.plain(); // the plain one raises
  setBaseItem(s, c.self, key.get(), nullptr);
  return value;
}

Obj dictSetDefault(Session &s, const CCall &c) {
  if (isOdd(c, 1, 2) || !isDict(c))
    return c.plain();
  checkKey(s, arg(c, 0));
  Obj key = concretizeDeep(s, arg(c, 0), true);
  if (Obj value = dictValue(s, c.self, key.get()))
    return value;
  PyObject *value = arg(c, 1) ? arg(c, 1) : Py_None;
  setBaseItem(s, c.self, key.get(), value);
  return Obj::borrow(value);
}

/// The pairs that dict(x, **kw) and update take, stored one by one.
void storePairs(Session &s, PyObject *dict, Given args) {
  if (args.n == 1) {
    PyObject *source = args.v[0];
    if (PyDict_Check(source)) {
      s.readAll(source);
      if (PyObject *owner = ownerOf(s, source); owner)
        s.fail("the dictionary of an object is copied");
      Obj copy = Obj::check(PyDict_Copy(source));
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(copy.get(), &at, &key, &value);)
        setBaseItem(s, dict, key, value);
    } else if (attributeOrNull(s, source, DLC_NAME("keys"))) {
      Obj keys = callMethod(s, source, DLC_NAME("keys"), {nullptr, 0}), iterator = iterate(s, keys.get());
      while (Obj key = Obj(PyIter_Next(iterator.get())))
        setBaseItem(s, dict, key.get(), getItem(s, source, key.get()).get());
    } else {
      Obj iterator = iterate(s, source);
      while (Obj pair = Obj(PyIter_Next(iterator.get()))) {
        Obj two = unpack(&s, pair.get(), 2, -1);
        if (!PyTuple_Check(two.get()) || PyTuple_GET_SIZE(two.get()) != 2) {
          PyErr_SetString(PyExc_ValueError, "dictionary update sequence elements need a key and a value");
          throw PythonError{};
        }
        setBaseItem(s, dict, PyTuple_GET_ITEM(two.get(), 0), PyTuple_GET_ITEM(two.get(), 1));
      }
    }
    if (PyErr_Occurred())
      throw PythonError{};
  }
  for (Py_ssize_t k = 0; k < args.numKeywords(); ++k)
    setBaseItem(s, dict, PyTuple_GET_ITEM(args.kwnames, k), args.v[args.n + k]);
}

Obj dictUpdate(Session &s, const CCall &c) {
  if (!isDict(c) || c.args.n > 1)
    return c.plain();
  storePairs(s, c.self, c.args);
  return Obj::borrow(Py_None);
}

Obj newDict(Session &s, const CCall &c) {
  if (c.args.n > 1)
    return c.plain();
  Obj dict = Obj::check(PyObject_CallNoArgs(c.f));
  storePairs(s, dict.get(), c.args);
  return dict;
}

/// defaultdict(factory, ...).
Obj newDefaultDict(Session &s, const CCall &c) {
  Obj dict = callPlain(c.f, {c.args.v, std::min<Py_ssize_t>(c.args.n, 1)});
  if (c.args.n > 0)
    storePairs(s, dict.get(), c.args.rest(1));
  return dict;
}

/// keys(), values(), items(): a view; what it shows is read now.
Obj dictView(Session &s, const CCall &c) {
  if (ownerOf(s, c.self) && PyDict_GET_SIZE(c.self)) {
    Obj keys = s.dictKeys(c.self); // fails if attributes were written: the two don't know of each other
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i)
      if (s.wroteTo(ownerOf(s, c.self), Session::Slot::Attr, PyTuple_GET_ITEM(keys.get(), i)))
        s.fail("the dictionary of a changed object is read as a whole");
  }
  s.readAll(c.self);
  return c.plain();
}
Obj dictKeysView(Session &s, const CCall &c) {
  if (isDict(c))
    s.dictKeys(c.self);
  return c.plain();
}

Obj listPop(Session &s, const CCall &c) {
  if (!c.self || !s.isKnown(c.self) || isOdd(c, 0, 1))
    return c.plain();
  Obj length = s.length(c.self);
  s.concretize(length.get());
  Obj index = arg(c, 0) ? concretizeDeep(s, arg(c, 0), false) : Obj::check(PyLong_FromLong(-1));
  Py_ssize_t i = PyNumber_AsSsize_t(index.get(), nullptr), n = PyList_GET_SIZE(c.self);
  i += i < 0 ? n : 0;
  if (i < 0 || i >= n)
    return c.plain(); // raises
  Obj value = s.item(c.self, i);
  s.beforeChange(c.self);
  PyObject *args[] = {c.self, index.get()};
  c.plain({args + 1, 1});
  s.effectCall(methodOf(c.self, "pop"), args, 2, nullptr);
  return value;
}

Obj newSet(Session &s, const CCall &c) {
  if (isOdd(c, 0, 1) || c.args.n == 0)
    return c.plain();
  Obj list = Obj::check(
      PySequence_List(PyAnySet_Check(arg(c, 0)) ? (s.readAll(arg(c, 0)), arg(c, 0)) : consumable(s, arg(c, 0)).get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
    checkKey(s, PyList_GET_ITEM(list.get(), i));
  Obj plain = concretizeDeep(s, list.get(), true);
  PyObject *given = plain.get();
  return c.plain({&given, 1});
}

Obj lengthOf(Session &s, const CCall &c) {
  PyObject *o = arg(c, 0);
  if (isOdd(c, 1, 1))
    return c.plain();
  if (isTensor(o)) {
    Obj sizes = s.symbolicSizes(tensorOf(o));
    return sizes && PyTuple_GET_SIZE(sizes.get()) ? Obj::borrow(PyTuple_GET_ITEM(sizes.get(), 0)) : c.plain();
  }
  if (isListLike(o) || isTupleLike(o) || isDictLike(o) || PyAnySet_CheckExact(o))
    return s.length(o);
  if (Obj method = PyType_Check(o) ? Obj() : specialMethod(s, o, DLC_NAME("__len__"))) {
    Obj n = callSpecial(s, method, o, {nullptr, 0});
    if (PyLong_Check(n.get()) && PyLong_AsSsize_t(n.get()) >= 0)
      return n;
    PyErr_Clear();
    return c.plain(); // raises
  }
  if (PyRange_Check(o))
    iterate(s, o);
  else if (s.isKnown(o) && std::strcmp(Py_TYPE(o)->tp_name, "collections.deque") == 0 &&
           !s.wroteTo(o, Session::Slot::Whole, nullptr))
    s.guard(instr(Do::Length, s.regOf(o), nullptr, PyObject_Size(o)));
  else if (s.isKnown(o) && !Session::isScalar(o))
    notKnown(s, str("len() of a ", Py_TYPE(o)->tp_name));
  return c.plain();
}

Obj iterOf(Session &s, const CCall &c) {
  if (isOdd(c, 1, 1)) {
    notKnown(s, "iter() with a sentinel");
    return c.plain();
  }
  PyObject *o = arg(c, 0);
  if (isListLike(o) || isTupleLike(o)) {
    s.readAll(o);
    return c.plain();
  }
  return Py_TYPE(o)->tp_iter || PySequence_Check(o) ? iterate(s, o) : c.plain();
}

Obj nextOf(Session &s, const CCall &c) {
  PyObject *o = arg(c, 0);
  if (isOdd(c, 1, 2))
    return c.plain();
  Obj method = specialMethod(s, o, DLC_NAME("__next__"));
  if (!method && s.isKnown(o))
    s.fail("an iterator from outside is used up");
  if (!method)
    return c.plain();
  try {
    return callSpecial(s, method, o, {nullptr, 0});
  } catch (const PythonError &) {
    if (!arg(c, 1) || !PyErr_ExceptionMatches(PyExc_StopIteration))
      throw;
    PyErr_Clear();
    return Obj::borrow(arg(c, 1));
  }
}

/// "".join(parts): the parts may come from anything.
Obj joinOf(Session &s, const CCall &c) {
  if (isOdd(c, 1, 1))
    return c.plain();
  Obj items = Obj::check(PySequence_List(consumable(s, arg(c, 0)).get()));
  PyObject *given = items.get();
  return c.plain({&given, 1});
}

/// "...".format(...): fields of the arguments may run anything, so they are read down to scalars.
Obj reversedOf(Session &s, const CCall &c) {
  PyObject *o = arg(c, 0);
  if (isOdd(c, 1, 1))
    return c.plain();
  if (Obj method = specialMethod(s, o, DLC_NAME("__reversed__")))
    return iterate(s, callSpecial(s, method, o, {nullptr, 0}).get());
  if (isListLike(o) || isTupleLike(o))
    s.readAll(o);
  else if (isDictLike(o))
    s.dictKeys(o);
  else if (PyRange_Check(o))
    iterate(s, o);
  else if (!isDictView(o) && s.isKnown(o))
    notKnown(s, str("reversed() of a ", Py_TYPE(o)->tp_name));
  return c.plain();
}

/// collections.deque(iterable, maxlen).
Obj newDeque(Session &s, const CCall &c) {
  ArgList list(c.args);
  if (c.args.n > 0)
    list.set(0, Obj::check(PySequence_List(consumable(s, arg(c, 0)).get())));
  for (Py_ssize_t i = 1; i < c.args.total(); ++i)
    list.set(i, concretizeDeep(s, c.args.v[i], false));
  return c.plain(list.given());
}

} // namespace

Handler containerHandler(const char *name) {
  static const std::pair<const char *, Handler> handlers[] = {{"dict_get", dictGet},
                                                              {"dict_contains", dictContains},
                                                              {"dict_pop", dictPop},
                                                              {"dict_setdefault", dictSetDefault},
                                                              {"dict_update", dictUpdate},
                                                              {"new_dict", newDict},
                                                              {"new_defaultdict", newDefaultDict},
                                                              {"dict_view", dictView},
                                                              {"dict_keys", dictKeysView},
                                                              {"list_pop", listPop},
                                                              {"new_set", newSet},
                                                              {"len", lengthOf},
                                                              {"iter", iterOf},
                                                              {"next", nextOf},
                                                              {"join", joinOf},
                                                              {"reversed", reversedOf},
                                                              {"new_deque", newDeque}};
  for (const auto &[known, handler] : handlers)
    if (std::strcmp(known, name) == 0)
      return handler;
  return nullptr;
}

} // namespace dlc::py
