// The hooks that a twin calls, as Python functions. Each takes its arguments by position, finds the thread's session
// and does the operation through it; without one the operation is the plain one.
#include "python/binding/Imported.h"
#include "python/capture/hooks/Hooks.h"
#include "python/capture/hooks/HookTable.h"
#include "python/capture/hooks/Lookup.h"
#include "python/capture/hooks/Symbolic.h"

namespace dlc::py {
namespace {

PyObject *hooks;

/// Runs `f(session)`, or `plain()` without a session. Errors become Python's.
template <class F, class P> PyObject *hook(F &&f, P &&plain) {
  return guarded([&]() -> PyObject * {
    Session *s = Session::current();
    return s ? f(*s).release() : plain();
  });
}
PyObject *none(int rc) { return rc < 0 ? nullptr : Py_NewRef(Py_None); }
Obj none() { return Obj::borrow(Py_None); }

/// Which closure cell of the function a free variable is; null: it is a variable of its own.
PyObject *cellOf(PyObject *fn, PyObject *name, Py_ssize_t &index) {
  Obj names = Obj::check(PyCode_GetFreevars(reinterpret_cast<PyCodeObject *>(PyFunction_GET_CODE(fn))));
  for (index = 0; index < PyTuple_GET_SIZE(names.get()); ++index)
    if (PyUnicode_Compare(PyTuple_GET_ITEM(names.get(), index), name) == 0)
      return PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(fn), index);
  return nullptr;
}

Obj readGlobal(Session &s, PyObject *fn, PyObject *name, PyObject *value) {
  PyObject *globals = PyFunction_GET_GLOBALS(fn);
  if (!s.isKnown(globals)) {
    s.fail(str("the globals of `", textOf(reinterpret_cast<PyFunctionObject *>(fn)->func_qualname), "` are not known"));
    return Obj::borrow(value);
  }
  if (Obj found = dictValue(s, globals, name))
    return found;
  static Imported builtins("builtins");
  PyObject *dict = PyModule_GetDict(builtins.get());
  if (reinterpret_cast<PyFunctionObject *>(fn)->func_builtins != dict)
    s.fail("a module has builtins of its own");
  if (!s.isKnown(dict))
    s.know(dict, s.load(dict, instr(Do::GetAttr, s.constant(builtins.get()), DLC_NAME("__dict__")), ""), "builtins");
  Obj found = dictValue(s, dict, name);
  return found ? found : Obj::borrow(value);
}

PyObject *globalHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return readGlobal(s, a[0], a[1], a[2]); }, [&] { return Py_NewRef(a[2]); });
}

Obj readCell(Session &s, PyObject *fn, PyObject *name, PyObject *value) {
  Py_ssize_t index;
  PyObject *cell = cellOf(fn, name, index);
  if (!cell || s.cellReg(cell) == kNoReg)
    return Obj::borrow(value);
  if (s.wroteTo(cell, Session::Slot::Whole, nullptr)) {
    PyObject *written = s.written(cell, Session::Slot::Whole, nullptr);
    return Obj::borrow(written ? written : value);
  }
  if (s.isKnown(fn))
    return s.read(value, instr(Do::Cell, s.regOf(fn), nullptr, index), str("variable ", textOf(name)));
  return s.read(value, instr(Do::GetAttr, s.cellReg(cell), DLC_NAME("cell_contents")), str("variable ", textOf(name)));
}
PyObject *cellHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return readCell(s, a[0], a[1], a[2]); }, [&] { return Py_NewRef(a[2]); });
}

PyObject *cellStoreHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook(
      [&](Session &s) {
        Py_ssize_t index;
        PyObject *cell = cellOf(a[0], a[1], index);
        Session::settle(a[2]);
        if (!cell || s.cellReg(cell) == kNoReg)
          return Obj::borrow(a[2]);
        s.effectSetCell(cell, a[2]);
        return plainNumber(a[2]);
      },
      [&] {
        Session::settle(a[2]);
        return plainNumber(a[2]).release();
      });
}
PyObject *globalStoreHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook(
      [&](Session &s) {
        PyObject *globals = PyFunction_GET_GLOBALS(a[0]);
        Session::settle(a[2]);
        if (!s.isKnown(globals))
          s.fail(str("the globals of `", textOf(reinterpret_cast<PyFunctionObject *>(a[0])->func_qualname),
                     "` are not known"));
        s.effectSetGlobal(globals, a[1], a[2]);
        return plainNumber(a[2]);
      },
      [&] {
        Session::settle(a[2]);
        return plainNumber(a[2]).release();
      });
}

PyObject *attrHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return attribute(s, a[0], a[1]); }, [&] { return PyObject_GetAttr(a[0], a[1]); });
}
PyObject *setattrHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return setAttribute(s, a[0], a[1], a[2]), none(); },
              [&] {
                Session::settle(a[2]);
                return none(PyObject_SetAttr(a[0], a[1], plainNumber(a[2]).get()));
              });
}
PyObject *delattrHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return setAttribute(s, a[0], a[1], nullptr), none(); },
              [&] { return none(PyObject_DelAttr(a[0], a[1])); });
}
PyObject *itemHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return getItem(s, a[0], a[1]); },
              [&] { return PyObject_GetItem(a[0], plainNumber(a[1]).get()); });
}
PyObject *setitemHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return setItem(s, a[0], a[1], a[2]), none(); },
              [&] {
                Session::settle(a[2]);
                return none(PyObject_SetItem(a[0], plainNumber(a[1]).get(), plainNumber(a[2]).get()));
              });
}
PyObject *delitemHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return setItem(s, a[0], a[1], nullptr), none(); },
              [&] { return none(PyObject_DelItem(a[0], plainNumber(a[1]).get())); });
}

PyObject *callHook(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kwnames) {
  Given args{a + 1, n - 1, kwnames};
  return hook([&](Session &s) { return callObject(s, a[0], args); },
              [&] {
                if (!PyFunction_Check(a[0]) && !PyMethod_Check(a[0]))
                  for (Py_ssize_t i = 0; i < args.total(); ++i)
                    Session::settle(args.v[i]);
                return callConverted(a[0], args).release();
              });
}
PyObject *methodHook(PyObject *, PyObject *const *a, Py_ssize_t n, PyObject *kwnames) {
  Given args{a + 2, n - 2, kwnames};
  return hook([&](Session &s) { return callMethod(s, a[0], a[1], args); },
              [&] {
                Obj method = Obj::check(PyObject_GetAttr(a[0], a[1]));
                return callConverted(method.get(), args).release();
              });
}

PyObject *truthHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return guarded([&]() -> PyObject * {
    Session *s = Session::current();
    int r = s ? truth(*s, a[0]) : PyObject_IsTrue(a[0]);
    return r < 0 ? nullptr : PyBool_FromLong(r);
  });
}
PyObject *iterHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  if (!Py_TYPE(a[0])->tp_iter && !PySequence_Check(a[0]))
    return Py_NewRef(a[0]); // the plain operation raises
  return hook([&](Session &s) { return iterate(s, a[0]); }, [&] { return PyObject_GetIter(a[0]); });
}
PyObject *unpackHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  Py_ssize_t n = PyLong_AsSsize_t(a[1]), star = PyLong_AsSsize_t(a[2]);
  return guarded([&] { return unpack(Session::current(), a[0], n, star).release(); });
}
PyObject *contextHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return contextManager(s, a[0]); }, [&] { return Py_NewRef(a[0]); });
}

int opOf(PyObject *o) { return static_cast<int>(PyLong_AsLong(o)); }
PyObject *binHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return binary(s, opOf(a[0]), a[1], a[2]); },
              [&] { return plainBinary(opOf(a[0]), a[1], a[2], false).release(); });
}
PyObject *augHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return inPlace(s, opOf(a[0]), a[1], a[2]); },
              [&] { return plainBinary(opOf(a[0]), a[1], a[2], true).release(); });
}
PyObject *unHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return unary(s, opOf(a[0]), a[1]); },
              [&] { return plainUnary(opOf(a[0]), a[1]).release(); });
}
PyObject *cmpHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return compare(s, opOf(a[0]), a[1], a[2]); },
              [&] { return plainCompare(opOf(a[0]), a[1], a[2]).release(); });
}

PyObject *formatHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  int conversion = opOf(a[1]);
  return hook([&](Session &s) { return text(s, a[0], conversion, a[2]); },
              [&] { return plainText(a[0], conversion, a[2]).release(); });
}
PyObject *joinHook(PyObject *, PyObject *const *a, Py_ssize_t n) {
  return guarded([&]() -> PyObject * {
    Obj parts = Obj::check(PyTuple_New(n)), empty = Obj::check(PyUnicode_FromString(""));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(parts.get(), i, Py_NewRef(a[i]));
    return PyUnicode_Join(empty.get(), parts.get());
  });
}

PyObject *keyHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook(
      [&](Session &s) {
        checkKey(s, a[0]);
        return concretizeDeep(s, a[0], true);
      },
      [&] { return plainNumber(a[0]).release(); });
}

/// The operand of `**` as a dict that C may read.
Obj readMapping(Session &s, PyObject *mapping) {
  if (PyDict_Check(mapping)) {
    if (!isDictLike(mapping))
      s.fail(str("`**` of a ", Py_TYPE(mapping)->tp_name, " is not known to be replayable"));
    s.readAll(mapping);
    if (s.isKnown(mapping) && s.containsSymbolic(mapping))
      return concretizeDeep(s, mapping, true);
    return Obj::borrow(mapping);
  }
  if (!attributeOrNull(s, mapping, DLC_NAME("keys")))
    return Obj::borrow(mapping); // raises
  Obj dict = Obj::check(PyDict_New()), keys = callMethod(s, mapping, DLC_NAME("keys"), {nullptr, 0});
  Obj iterator = iterate(s, keys.get());
  while (Obj key = Obj(PyIter_Next(iterator.get())))
    if (PyDict_SetItem(dict.get(), key.get(), getItem(s, mapping, key.get()).get()) < 0)
      throw PythonError{};
  if (PyErr_Occurred())
    throw PythonError{};
  return dict;
}
PyObject *mapHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return readMapping(s, a[0]); }, [&] { return Py_NewRef(a[0]); });
}

PyObject *raiseHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook(
      [&](Session &s) { return PyExceptionClass_Check(a[0]) ? callObject(s, a[0], {nullptr, 0}) : Obj::borrow(a[0]); },
      [&] { return Py_NewRef(a[0]); });
}

PyObject *functionHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook(
      [&](Session &s) {
        if (!PyFunction_Check(a[0]))
          s.fail("a class is made in the function");
        return Obj::borrow(a[0]);
      },
      [&] { return Py_NewRef(a[0]); });
}

/// What an import bound: a module is the same in every call; other values must be what the module still has.
Obj imported(Session &s, PyObject *value, PyObject *moduleName, PyObject *name) {
  if (PyModule_Check(value)) {
    PyObject *modules = PyImport_GetModuleDict();
    Obj key(PyModule_GetNameObject(value));
    PyErr_Clear();
    if (!key || PyDict_GetItemWithError(modules, key.get()) != value) {
      s.fail("a module is imported in the function that sys.modules does not have under its name");
      return Obj::borrow(value);
    }
    s.constant(modules);
    return s.dictGet(modules, key.get());
  }
  Obj owner(PyUnicode_Check(moduleName) ? PyImport_GetModule(moduleName) : nullptr);
  PyErr_Clear();
  if (owner) {
    s.constant(owner.get());
    Obj found = attributeOrNull(s, owner.get(), name);
    if (found && (found.get() == value || isSymbolic(found.get())))
      return found;
  }
  s.fail(str("`", textOf(name), "` is imported in the function from a module that is not known"));
  return Obj::borrow(value);
}
PyObject *importHook(PyObject *, PyObject *const *a, Py_ssize_t) {
  return hook([&](Session &s) { return imported(s, a[0], a[1], a[2]); }, [&] { return Py_NewRef(a[0]); });
}

using PositionalFn = PyObject *(*)(PyObject *, PyObject *const *, Py_ssize_t);
PyMethodDef positional(const char *name, PositionalFn fn) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(fn)), METH_FASTCALL, nullptr};
}

} // namespace

void noteValueRead() {
  Session *s = Session::current();
  if (s && s->reads == 0)
    s->fail("the value of a tensor is read by C code");
}

PyObject *hookDict() { return hooks; }

void initHooks(PyObject *module) {
  initIteration();
  static PyMethodDef defs[] = {positional("_dlc_gl", globalHook),
                               positional("_dlc_cell", cellHook),
                               positional("_dlc_cellw", cellStoreHook),
                               positional("_dlc_glw", globalStoreHook),
                               positional("_dlc_attr", attrHook),
                               positional("_dlc_setattr", setattrHook),
                               positional("_dlc_delattr", delattrHook),
                               positional("_dlc_item", itemHook),
                               positional("_dlc_setitem", setitemHook),
                               positional("_dlc_delitem", delitemHook),
                               fastMethod("_dlc_call", callHook, nullptr),
                               fastMethod("_dlc_meth", methodHook, nullptr),
                               positional("_dlc_truth", truthHook),
                               positional("_dlc_it", iterHook),
                               positional("_dlc_unp", unpackHook),
                               positional("_dlc_ctx", contextHook),
                               positional("_dlc_bin", binHook),
                               positional("_dlc_aug", augHook),
                               positional("_dlc_un", unHook),
                               positional("_dlc_cmp", cmpHook),
                               positional("_dlc_fmt", formatHook),
                               positional("_dlc_join", joinHook),
                               positional("_dlc_key", keyHook),
                               positional("_dlc_map", mapHook),
                               positional("_dlc_exc", raiseHook),
                               positional("_dlc_func", functionHook),
                               positional("_dlc_imp", importHook)};
  hooks = Obj::check(PyDict_New()).release();
  for (PyMethodDef &def : defs) {
    Obj f = Obj::check(PyCFunction_New(&def, nullptr));
    if (PyDict_SetItemString(hooks, def.ml_name, f.get()) < 0)
      throw PythonError{};
  }
  if (PyModule_AddObjectRef(module, "_hooks", hooks) < 0)
    throw PythonError{};
}

} // namespace dlc::py
