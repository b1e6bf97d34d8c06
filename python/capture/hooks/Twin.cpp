// Entering Python functions through their twins: code by dlc._capture, the original's globals, closure and default
// values, and the hooks as hidden keyword-only parameters.
#include "frontend/import/Install.h"
#include "python/binding/Imported.h"
#include "python/capture/hooks/Hooks.h"
#include "python/capture/hooks/HookTable.h"
#include "runtime/core/PhaseTimes.h"
#include <cstring>
#include <memory>
#include <utility>

namespace dlc::py {
namespace {

/// What twin_of said about a code object: kept with it by the interpreter.
struct TwinCode {
  Obj code; ///< null if there is none, because of
  std::string why;
};

Py_ssize_t extraIndex() {
  static const Py_ssize_t index = _PyEval_RequestCodeExtraIndex([](void *p) { delete static_cast<TwinCode *>(p); });
  return index;
}

//===--- The persistent cache, for dlc._capture ---===//

PyObject *loadTwin(PyObject *, PyObject *key) {
  char *data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(key, &data, &size) < 0)
    return nullptr;
  std::optional<std::string> found = loadKept(std::string(data, static_cast<size_t>(size)));
  if (!found)
    Py_RETURN_NONE;
  return PyBytes_FromStringAndSize(found->data(), static_cast<Py_ssize_t>(found->size()));
}

PyObject *saveTwin(PyObject *, PyObject *args) {
  const char *key, *value;
  Py_ssize_t keySize, valueSize;
  if (!PyArg_ParseTuple(args, "y#y#", &key, &keySize, &value, &valueSize))
    return nullptr;
  storeKept(std::string(key, static_cast<size_t>(keySize)), std::string(value, static_cast<size_t>(valueSize)));
  Py_RETURN_NONE;
}

PyMethodDef keepers[] = {{"load", loadTwin, METH_O, ""}, {"save", saveTwin, METH_VARARGS, ""}};

void keepTwins(PyObject *module) {
  Obj load = Obj::check(PyCFunction_New(&keepers[0], nullptr)),
      save = Obj::check(PyCFunction_New(&keepers[1], nullptr));
  Obj::check(PyObject_CallMethod(module, "keep_in", "OO", load.get(), save.get()));
}

TwinCode makeTwinCode(PyObject *function) {
  PhaseTimer timer("twins of functions");
  static Imported module("dlc._capture");
  static bool kept = false; // guarded by the GIL
  if (!std::exchange(kept, true))
    keepTwins(module.get());
  Obj code(PyObject_CallMethod(module.get(), "twin_of", "O", function));
  if (code)
    return {code, ""};
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (type && !PyErr_GivenExceptionMatches(type, PyExc_Exception)) { // Ctrl-C says nothing about the function
    PyErr_Restore(type, value, trace);
    return {Obj::check(nullptr), ""};
  }
  PyErr_NormalizeException(&type, &value, &trace);
  Obj t(type), v(value), tb(trace);
  Obj reason(v ? PyObject_GetAttrString(v.get(), "reason") : nullptr);
  PyErr_Clear();
  Obj text(reason ? reason.release() : PyObject_Str(v.get()));
  PyErr_Clear();
  return {Obj(), textOf(text.get())};
}

const TwinCode &twinCodeOf(PyObject *function) {
  PyObject *code = PyFunction_GET_CODE(function);
  void *extra = nullptr;
  if (extraIndex() >= 0 && _PyCode_GetExtra(code, extraIndex(), &extra) < 0)
    throw PythonError{};
  if (!extra) {
    auto made = std::make_unique<TwinCode>(makeTwinCode(function));
    if (extraIndex() < 0 || _PyCode_GetExtra(code, extraIndex(), &extra) < 0)
      throw PythonError{};
    if (!extra) { // another thread may have made one meanwhile, and uses it
      if (_PyCode_SetExtra(code, extraIndex(), made.get()) < 0)
        throw PythonError{};
      extra = made.release();
    }
  }
  return *static_cast<TwinCode *>(extra);
}

Obj makeTwin(PyObject *function, PyObject *code) {
  auto *f = reinterpret_cast<PyFunctionObject *>(function);
  Obj twin = Obj::check(PyFunction_NewWithQualName(code, PyFunction_GET_GLOBALS(function), f->func_qualname));
  Obj kwdefaults = Obj::check(PyDict_Copy(hookDict()));
  if (f->func_kwdefaults && PyDict_Update(kwdefaults.get(), f->func_kwdefaults) < 0)
    throw PythonError{};
  if (PyDict_SetItem(kwdefaults.get(), DLC_NAME("_dlc_fn"), function) < 0 ||
      PyFunction_SetKwDefaults(twin.get(), kwdefaults.get()) < 0 ||
      (f->func_defaults && PyFunction_SetDefaults(twin.get(), f->func_defaults) < 0) ||
      (f->func_closure && PyFunction_SetClosure(twin.get(), f->func_closure) < 0) ||
      PyObject_SetAttr(twin.get(), DLC_NAME("__name__"), f->func_name) < 0)
    throw PythonError{};
  return twin;
}

/// A default value that the call uses; true if the program is to see another object in its place.
bool readDefault(Session &s, Reg holder, Do op, PyObject *key, Py_ssize_t i, PyObject *value, const std::string &source,
                 Obj &seen) {
  seen = s.read(value, instr(op, holder, key, i), source);
  return seen.get() != value;
}

bool isGiven(PyObject *name, PyObject *kwnames) {
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
    if (PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, k), name) == 0)
      return true;
  return false;
}

/// Names and values of parameters whose defaults the program sees as symbolic numbers.
using Replaced = std::vector<std::pair<Obj, Obj>>;

void readDefaults(Session &s, PyObject *function, Given args, Replaced &replaced) {
  auto *f = reinterpret_cast<PyFunctionObject *>(function);
  auto *code = reinterpret_cast<PyCodeObject *>(f->func_code);
  Reg reg = s.regOf(function);
  Obj names = Obj::check(PyCode_GetVarnames(code));
  Py_ssize_t numDefaults = f->func_defaults ? PyTuple_GET_SIZE(f->func_defaults) : 0;
  Reg tuple = kNoReg, dict = kNoReg;
  std::string callee = textOf(f->func_qualname);
  Obj seen;
  auto load = [&](Reg &r, PyObject *holder, FunctionField field) {
    if (r == kNoReg)
      r = s.load(holder, instr(Do::FunctionGet, reg, nullptr, static_cast<int64_t>(field)), "");
    return r;
  };
  for (Py_ssize_t i = std::min<Py_ssize_t>(args.n, code->co_argcount); i < code->co_argcount; ++i) {
    PyObject *name = PyTuple_GET_ITEM(names.get(), i);
    Py_ssize_t d = i - (code->co_argcount - numDefaults);
    if (isGiven(name, args.kwnames))
      continue;
    if (d < 0)
      return s.fail(str("`", callee, "` is called without its argument `", textOf(name), "`"));
    if (readDefault(s, load(tuple, f->func_defaults, FunctionField::Defaults), Do::Item, nullptr, d,
                    PyTuple_GET_ITEM(f->func_defaults, d), str("default ", textOf(name), " of ", callee), seen))
      i < code->co_posonlyargcount ? void(s.concretize(seen.get()))
                                   : void(replaced.emplace_back(Obj::borrow(name), seen));
  }
  for (Py_ssize_t i = code->co_argcount; i < code->co_argcount + code->co_kwonlyargcount; ++i) {
    PyObject *name = PyTuple_GET_ITEM(names.get(), i);
    if (isGiven(name, args.kwnames))
      continue;
    PyObject *value = f->func_kwdefaults ? PyDict_GetItemWithError(f->func_kwdefaults, name) : nullptr;
    if (!value)
      return s.fail(str("`", callee, "` is called without its argument `", textOf(name), "`"));
    if (readDefault(s, load(dict, f->func_kwdefaults, FunctionField::KwDefaults), Do::DictGet, name, 0, value,
                    str("default ", textOf(name), " of ", callee), seen))
      replaced.emplace_back(Obj::borrow(name), seen);
  }
}

/// The globals of a known function are known; another function of the module must have the same.
void readGlobals(Session &s, PyObject *function) {
  PyObject *globals = PyFunction_GET_GLOBALS(function);
  Reg mine = s.load(
      globals, instr(Do::FunctionGet, s.regOf(function), nullptr, static_cast<int64_t>(FunctionField::Globals)), "");
  if (Reg known = s.regOf(globals); known == kNoReg) {
    s.know(globals, mine, "globals()");
  } else if (known != mine) {
    Instr same = instr(Do::Same, known);
    same.b = mine;
    s.guard(std::move(same));
  }
}

/// The call with default values written out where the program is to see symbolic numbers.
Obj callReplaced(PyObject *twin, Given args, const Replaced &replaced) {
  Obj kwargs = Obj::check(PyDict_New());
  for (Py_ssize_t k = 0; k < args.numKeywords(); ++k)
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(args.kwnames, k), args.v[args.n + k]) < 0)
      throw PythonError{};
  for (const auto &[name, value] : replaced)
    if (PyDict_SetItem(kwargs.get(), name.get(), value.get()) < 0)
      throw PythonError{};
  Obj tuple = Obj::check(PyTuple_New(args.n));
  for (Py_ssize_t i = 0; i < args.n; ++i)
    PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args.v[i]));
  return Obj::check(PyObject_Call(twin, tuple.get(), kwargs.get()));
}

} // namespace

void readFunction(Session &s, PyObject *function, Given args) {
  Replaced ignored;
  if (s.isKnown(function))
    readDefaults(s, function, args, ignored);
}

Obj enter(Session &s, PyObject *function, Given args) {
  if (s.failed())
    return callConverted(function, args);
  if (Obj known = callGenerated(s, function, args))
    return known;
  const TwinCode &twin = twinCodeOf(function);
  if (!twin.code) {
    s.fail(str("`", textOf(reinterpret_cast<PyFunctionObject *>(function)->func_qualname),
               "` can't be followed: ", twin.why));
    return callConverted(function, args);
  }
  Replaced replaced;
  if (s.isKnown(function)) {
    readGlobals(s, function);
    s.knowCells(function);
    readDefaults(s, function, args, replaced);
  }
  auto &[original, made] = s.twins[function];
  if (!made) {
    original = Obj::borrow(function);
    made = makeTwin(function, twin.code.get());
  }
  Obj twinFunction = made;
  return replaced.empty() ? callPlain(twinFunction.get(), args) : callReplaced(twinFunction.get(), args, replaced);
}

PyObject *hookCall(PyObject *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    Session *s = Session::current();
    Given given{args, nargs, kwnames};
    return (s ? callObject(*s, f, given) : callConverted(f, given)).release();
  });
}

} // namespace dlc::py
