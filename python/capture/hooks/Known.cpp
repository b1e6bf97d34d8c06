// The kinds of known C functions, and finding a function's kind.
#include "python/capture/hooks/Known.h"
#include "python/capture/hooks/Symbolic.h"
#include <cstring>

namespace dlc::py {
namespace {

/// The object of a pure method that is no container: new, or immutable and the same in every call.
bool isPlainSelf(Session &s, PyObject *o) {
  bool container = PyList_Check(o) || PyTuple_Check(o) || PyDict_Check(o) || PyAnySet_Check(o);
  if (!s.isKnown(o))
    return !container && !isTensor(o);
  const char *type = Py_TYPE(o)->tp_name;
  if (std::strcmp(type, "re.Pattern") != 0 && std::strncmp(type, "operator.", 9) != 0 && !isDType(o))
    return false;
  guardIdentity(s, o);
  return true;
}

/// Functions are found by their definition: a bound method is a new object at each read.
const void *keyOf(PyObject *f) {
  if (PyCFunction_Check(f))
    return reinterpret_cast<PyCFunctionObject *>(f)->m_ml;
  if (Py_TYPE(f) == &PyMethodDescr_Type || Py_TYPE(f) == &PyClassMethodDescr_Type)
    return reinterpret_cast<PyMethodDescrObject *>(f)->d_method;
  return f;
}

// --- kinds

/// Arguments that C iterates over are read one level deep, what is in them passes through.
Obj callStructural(Session &s, const CCall &c) {
  ArgList list(c.args);
  for (Py_ssize_t i = 0; i < c.args.total(); ++i)
    list.set(i, consumable(s, concretizeDeep(s, c.args.v[i], false).get()));
  if (c.self && !PyType_Check(c.self))
    consumable(s, c.self);
  return c.plain(list.given());
}

/// Arguments are kept as they are.
Obj callThrough(Session &s, const CCall &c) {
  if (c.self && s.isKnown(c.self) && !PyType_Check(c.self))
    notKnown(s, c.name());
  return c.plain();
}

/// A method that changes its object: the change, and an effect if the object is from outside.
Obj change(Session &s, const CCall &c, bool consumes, bool reads) {
  ArgList list(c.args), seen(c.args);
  if (!c.self)
    return c.plain();
  bool known = s.isKnown(c.self);
  if ((PyAnySet_Check(c.self) || PyDict_Check(c.self)) && !consumes && c.args.n > 0) {
    checkKey(s, c.args.v[0]);
    list.set(0, concretizeDeep(s, c.args.v[0], true));
    seen.set(0, Obj::borrow(list.given().v[0]));
  }
  // What is in a set, or is left after taking, depends on the value.
  bool byValue = reads || PyAnySet_Check(c.self) || PyDict_Check(c.self);
  for (Py_ssize_t i = 0; i < c.args.total() && byValue && !consumes; ++i) {
    list.set(i, concretizeDeep(s, c.args.v[i], true));
    seen.set(i, concretizeDeep(s, c.args.v[i], true));
  }
  for (Py_ssize_t i = 0; i < c.args.total() && consumes; ++i) {
    Obj items = consumable(s, c.args.v[i]);
    if (known && !PyDict_Check(items.get()))
      items = Obj::check(PySequence_Tuple(items.get()));
    if (PyAnySet_Check(c.self) && (PyTuple_Check(items.get()) || PyList_Check(items.get())))
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(items.get()); ++k)
        checkKey(s, PySequence_Fast_GET_ITEM(items.get(), k));
    if (known || PyAnySet_Check(c.self) || PyDict_Check(c.self)) // of keys the value counts, also in new ones
      items = concretizeDeep(s, items.get(), true);
    list.set(i, items);
    seen.set(i, items);
  }
  if (!known)
    return c.plain(list.given());
  for (Py_ssize_t i = 0; i < c.args.total(); ++i) // a tuple that leaves can't be made plain in place later
    if (PyTuple_Check(list.given().v[i])) {
      list.set(i, concretizeDeep(s, list.given().v[i], true));
      seen.set(i, Obj::borrow(list.given().v[i]));
    }
  if (PyDict_Check(c.self) && ownerOf(s, c.self))
    s.fail("the dictionary of an object is changed");
  // Nothing reads a deque from outside, so it need not be known what is in it.
  bool written = !reads && !consumes && std::strcmp(Py_TYPE(c.self)->tp_name, "collections.deque") == 0;
  if (!PyList_Check(c.self) && !PyDict_Check(c.self) && !PyAnySet_Check(c.self) && !written)
    notKnown(s, str(c.name(), " of an object from outside"));
  if (reads || PyAnySet_Check(c.self))
    s.readAll(c.self);
  if (s.failed())
    return callPlain(c.f, c.bound ? list.given() : ArgList(list.given(), c.self).given());
  if (PyList_Check(c.self) && c.args.total() == 0) { // clear(): what is left depends on no length
    Obj length = s.length(c.self);
    s.concretize(length.get());
  }
  if (written)
    s.noteWrite(c.self, Session::Slot::Whole, nullptr, nullptr);
  else
    s.beforeChange(c.self);
  for (Py_ssize_t i = 0; i < c.args.total(); ++i)
    list.set(i, plainNumber(list.given().v[i]));
  Obj result = c.plain(list.given());
  PyObject *method = methodOf(c.self, textOf(Obj::check(PyObject_GetAttrString(c.f, "__name__")).get()));
  ArgList all(seen.given(), c.self);
  s.effectCall(method, all.given().v, all.given().n, all.given().kwnames);
  return result;
}
Obj callStores(Session &s, const CCall &c) { return change(s, c, false, false); }
Obj callExtends(Session &s, const CCall &c) { return change(s, c, true, false); }
Obj callTakes(Session &s, const CCall &c) { return change(s, c, false, true); }

/// Output: performed now and, in other calls, at its place among the effects.
Obj callDeferred(Session &s, const CCall &c) {
  Obj result;
  {
    Unobserved quiet(s);
    result = c.plain();
  }
  if (result.get() != Py_None)
    s.fail(str("`", c.name(), "` gives a result"));
  s.effectDeferred(c.f, c.args.v, c.args.n, c.args.kwnames);
  return result;
}

Obj callInput(Session &s, const CCall &c) {
  s.fail(str("`", c.name(), "` gives something else at each call"));
  return c.plain();
}

Obj callOp(Session &s, const CCall &c) {
  for (Py_ssize_t i = 0; i < c.args.total(); ++i)
    readOperand(s, c.args.v[i]);
  return c.plain();
}

/// Whether an argument is the value that reduce or accumulate starts with.
bool isStart(const CCall &c, Py_ssize_t i) {
  if (i >= c.args.n)
    return std::strcmp(textOf(PyTuple_GET_ITEM(c.args.kwnames, i - c.args.n)), "initial") == 0;
  auto *f = PyCFunction_Check(c.f) ? reinterpret_cast<PyCFunctionObject *>(c.f) : nullptr;
  return i == 2 && f && std::strcmp(f->m_ml->ml_name, "reduce") == 0;
}

/// Calls back: callables go through the session, iterables are read.
Obj callBack(Session &s, const CCall &c, Results results) {
  if (c.self && !isPlainSelf(s, c.self))
    notKnown(s, str(c.name(), " of an object from outside"));
  ArgList list(c.args);
  for (Py_ssize_t i = 0; i < c.args.total(); ++i) {
    PyObject *a = c.args.v[i];
    if (isStart(c, i)) {
      list.set(i, concretizeDeep(s, a, false));
      continue;
    }
    bool callable = PyCallable_Check(a) && !Py_TYPE(a)->tp_iter;
    list.set(i, callable ? observedCallable(a, results) : consumable(s, concretizeDeep(s, a, false).get()));
  }
  return c.plain(list.given());
}
Obj callCalls(Session &s, const CCall &c) { return callBack(s, c, Results::AsTheyAre); }
Obj callTests(Session &s, const CCall &c) {
  if (c.args.n == 0 || c.args.v[0] != Py_None)
    return callBack(s, c, Results::Tested);
  ArgList list(c.args); // C would test the items themselves: bool() does the same and is seen
  list.set(0, Obj::borrow(asObject(&PyBool_Type)));
  return callBack(s, {c.f, c.self, list.given(), c.bound}, Results::Tested);
}
Obj callGroups(Session &s, const CCall &c) { return callBack(s, c, Results::Compared); }

} // namespace

Obj CCall::plain(Given changed) const {
  return bound || !self ? callPlain(f, changed) : callPlain(f, ArgList(changed, self).given());
}

void notKnown(Session &s, const std::string &name) { s.fail(str("`", name, "` is not known to be replayable")); }

PyObject *methodOf(PyObject *o, const char *name) {
  Obj key = Obj::check(PyUnicode_InternFromString(name));
  PyTypeObject *base = PyList_Check(o)     ? &PyList_Type
                       : PyODict_Check(o)  ? &PyODict_Type
                       : PyDict_Check(o)   ? &PyDict_Type
                       : PyAnySet_Check(o) ? &PySet_Type
                                           : Py_TYPE(o);
  return _PyType_Lookup(base, key.get());
}

void readForC(Session &s, PyObject *o) {
  if (Session::isScalar(o) || isSymbolic(o) || isTensor(o) || PyType_Check(o) || !s.isKnown(o) || isEnumMember(o))
    return;
  if (PyList_Check(o) || PyTuple_Check(o) || PyDict_Check(o) || PyAnySet_Check(o))
    s.readAll(o);
  else if (PyRange_Check(o) || PySlice_Check(o))
    readNumbers(s, o);
  else if (baseInC(Py_TYPE(o)) != &PyBaseObject_Type)
    notKnown(s, str("the state of a ", Py_TYPE(o)->tp_name, " from outside"));
}

bool readPure(Session &s, PyObject *o) {
  Level level(s);
  if (level.tooDeep())
    return false;
  if (isTensor(o)) {
    s.fail("the value of a tensor is read by C code");
    return false;
  }
  if (isEnumMember(o) || isDictView(o) || isNewNumpy(s, o))
    return true;
  if (PyRange_Check(o) || PySlice_Check(o)) {
    readNumbers(s, o);
    return true;
  }
  if (!s.readDeep(o))
    return false;
  if (PyList_Check(o) || PyTuple_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (!readPure(s, PySequence_Fast_GET_ITEM(o, i)))
        return false;
  } else if (PyDict_Check(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (!readPure(s, value))
        return false;
  }
  return true;
}

void guardIdentity(Session &s, PyObject *o) {
  if (!s.isKnown(o))
    return;
  Instr same = instr(Do::Is, s.regOf(o));
  same.object = Obj::borrow(o);
  s.guard(std::move(same));
}

bool isNewNumpy(Session &s, PyObject *o) {
  return std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) == 0 && !s.isKnown(o);
}

Obj callPure(Session &s, const CCall &c) {
  ArgList list(c.args);
  for (Py_ssize_t i = 0; i < c.args.total(); ++i) {
    PyObject *a = c.args.v[i];
    bool iterator = PyIter_Check(a) && !s.isKnown(a); // made in the call: its items are read now
    Obj items = iterator ? Obj::check(PySequence_List(a)) : Obj::borrow(a);
    if (!readPure(s, items.get()))
      s.fail(str("`", c.name(), "` is given an object that is not known"));
    list.set(i, concretizeDeep(s, items.get(), true));
  }
  if (c.self && !PyType_Check(c.self) && !isSymbolic(c.self) && !isPlainSelf(s, c.self) && !readPure(s, c.self))
    s.fail(str("`", c.name(), "` of an object that is not known"));
  Unobserved quiet(s);
  return c.plain(list.given());
}

void readOperand(Session &s, PyObject *o) {
  if (PyRange_Check(o) || PySlice_Check(o))
    return readNumbers(s, o);
  if (Session::isScalar(o) || isSymbolic(o) || isTensor(o) || isDType(o) || PyType_Check(o) ||
      Py_TYPE(o) == deviceType || Py_TYPE(o) == generatorType || PySlice_Check(o) || PyRange_Check(o) ||
      isNewNumpy(s, o))
    return;
  if (!isListLike(o) && !isTupleLike(o) && !isDictLike(o))
    return s.fail(str("an op is given an object of type ", Py_TYPE(o)->tp_name));
  if (!s.readAll(o))
    return;
  if (PyDict_Check(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      readOperand(s, value);
    return;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    readOperand(s, PySequence_Fast_GET_ITEM(o, i));
}

Handler handlerNamed(const char *name) {
  static const std::pair<const char *, Handler> kinds[] = {
      {"pure", callPure},       {"structural", callStructural}, {"through", callThrough},   {"stores", callStores},
      {"extends", callExtends}, {"takes", callTakes},           {"deferred", callDeferred}, {"input", callInput},
      {"op", callOp},           {"calls", callCalls},           {"tests", callTests},       {"groups", callGroups}};
  for (const auto &[kind, handler] : kinds)
    if (std::strcmp(kind, name) == 0)
      return handler;
  for (auto find : {numberHandler, containerHandler, objectHandler, libraryHandler})
    if (Handler handler = find(name))
      return handler;
  return nullptr;
}

using KnownTable = std::unordered_map<const void *, Handler>;

/// Filled at the first question: the table names functions of many modules. Not by the initialisation of a static:
/// another thread would wait for it with the GIL, which the imports give up.
static const KnownTable &knownTable() {
  static const KnownTable *table = nullptr;
  if (!table) {
    auto *keep = new std::vector<Obj>; // keys stay valid
    KnownTable t;
    Obj module = Obj::check(PyImport_ImportModule("dlc._capture.known"));
    Obj entries = Obj::check(PyObject_CallMethod(module.get(), "entries", nullptr));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.get()); ++i) {
      PyObject *pair = PyList_GET_ITEM(entries.get(), i), *kind = PyTuple_GET_ITEM(pair, 0);
      Handler handler = handlerNamed(textOf(kind));
      DLC_CHECK(handler, "no handler ", textOf(kind));
      keep->push_back(Obj::borrow(PyTuple_GET_ITEM(pair, 1)));
      t.emplace(keyOf(PyTuple_GET_ITEM(pair, 1)), handler);
    }
    if (!table)
      table = new KnownTable(std::move(t));
  }
  return *table;
}

Handler knownHandler(PyObject *f) {
  const KnownTable &table = knownTable();
  const void *key = keyOf(f);
  if (auto it = table.find(key); it != table.end())
    return it->second;
  bool op = key != f && isOpFunction(static_cast<const PyMethodDef *>(key));
  return op ? callOp : nullptr;
}

} // namespace dlc::py
