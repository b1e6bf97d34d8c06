// dlc.compile as Python sees it: a callable that runs a function inside a recording region, and where that stands in
// the user's code. The rest (what to wrap, Modules) is python/dlc/compiler.
#include "frontend/compile/Background.h"
#include "frontend/compile/Compile.h"
#include "frontend/import/Install.h"
#include "python/binding/Internal.h"
#include "python/capture/Dispatch.h"
#include "python/capture/hooks/Hooks.h"
#include "python/capture/session/Numbers.h"
#include "runtime/core/ForkSafe.h"
#include "runtime/core/StorageWatch.h"
#include "runtime/exec/DerivedValues.h"
#include "runtime/exec/Profile.h"
#include <frameobject.h>
#include <structmember.h>
#include <unordered_map>

namespace dlc::py {
namespace {

// --- the user's position, as a number a recorder can keep

/// A line of a code object. Not an instruction: which one a frame stands at differs between the first iterations of a
/// loop and later ones, which run specialised instructions, and a step of a loop must look the same each time.
struct Mark {
  PyCodeObject *code;
  int line;
  std::string text; // what describe() found
};
struct Marks {
  ForkMutex mutex; // describe() may run without the GIL being ours when the table grows
  std::vector<Mark> all{{nullptr, 0, ""}};
  std::unordered_map<uint64_t, uint32_t> ids;    ///< by code and offset
  std::unordered_map<uint64_t, uint32_t> lines;  ///< by code and line
  std::unordered_map<PyCodeObject *, bool> ours; ///< code of the dlc package; keeps the code alive
};
Marks &marks() {
  static Marks *m = new Marks; // outlives the interpreter
  return *m;
}

bool isOurs(PyCodeObject *code) {
  Marks &m = marks();
  auto [it, isNew] = m.ours.try_emplace(code, false);
  if (isNew) {
    Py_INCREF(code);
    it->second = isPackageFile(code->co_filename);
  }
  return it->second;
}

uint32_t mark() {
  if (!PyGILState_Check())
    return 0;
  // Frame objects made here may not start a collection: a __del__ would run in the middle of recording an op.
  struct NoCollection {
    int was = PyGC_Disable();
    ~NoCollection() {
      if (was)
        PyGC_Enable();
    }
  } noCollection;
  auto *frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    bool inside = isOurs(code); // keeps the code alive
    Py_DECREF(code);
    if (!inside) {
      int offset = PyFrame_GetLasti(frame);
      Py_DECREF(frame);
      Marks &m = marks();
      uint64_t codeKey = reinterpret_cast<uint64_t>(code) * 0x9e3779b97f4a7c15ull;
      auto [it, isNew] = m.ids.try_emplace(codeKey + static_cast<uint64_t>(offset + 1), 0);
      if (isNew) {
        int line = PyCode_Addr2Line(code, offset);
        std::lock_guard<ForkMutex> lock(m.mutex);
        auto [known, isNewLine] =
            m.lines.try_emplace(codeKey + static_cast<uint64_t>(line + 1), static_cast<uint32_t>(m.all.size()));
        if (isNewLine)
          m.all.push_back({code, line, ""});
        it->second = known->second;
      }
      return it->second;
    }
    PyFrameObject *back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return 0;
}

/// Asks Python the first time only, since later askers may be where nobody can wait for the GIL.
std::string describeMark(uint32_t id) {
  Mark found{};
  {
    std::lock_guard<ForkMutex> lock(marks().mutex);
    if (id < marks().all.size())
      found = marks().all[id];
  }
  if (!found.code || !found.text.empty() || !Py_IsInitialized() || !mayWaitForGil())
    return found.text;
  {
    HoldGil hold;
    const char *path = PyUnicode_AsUTF8(found.code->co_filename);
    found.text = path ? str(path, ":", found.line) : "";
  }
  std::lock_guard<ForkMutex> lock(marks().mutex);
  marks().all[id].text = found.text;
  return found.text;
}

// --- the compiled callable

struct PyCompiled {
  PyObject_HEAD PyObject *function, *dict, *weakrefs;
  vectorcallfunc call;
  Ref<CompiledFunction> compiled;
  ReplayCache *replay;
};
PyTypeObject *compiledType;
PyCompiled *compiledOf(PyObject *o) { return reinterpret_cast<PyCompiled *>(o); }

PyObject *callCompiled(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames) {
  PyCompiled *c = compiledOf(self);
  Obj keep = Obj::borrow(self), function = Obj::borrow(c->function);
  return callCompiledFunction(*c->replay, c->compiled, function.get(), args, PyVectorcall_NARGS(nargs), kwnames);
}

PyObject *compiledNew(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"function",   "name",           "fullgraph",       "quiet", "dynamic",
                                "background", "tuning_seconds", "tuning_progress", nullptr};
  PyObject *function, *dynamic = Py_None, *progress = Py_None;
  const char *name;
  int fullgraph = 0, quiet = 0, background = 0;
  double seconds = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os|ppOpdO:_Compiled", const_cast<char **>(names), &function, &name,
                                   &fullgraph, &quiet, &dynamic, &background, &seconds, &progress))
    return nullptr;
  return guarded([&] {
    Obj self = Obj::check(type->tp_alloc(type, 0));
    PyCompiled *c = compiledOf(self.get());
    c->function = Py_NewRef(function);
    c->call = callCompiled;
    CompileOptions options;
    options.fullgraph = fullgraph != 0;
    options.quiet = quiet != 0;
    options.background = background != 0;
    options.tuningSeconds = seconds;
    options.tuningProgress = progress == Py_None ? 0 : progress == Py_True ? 1 : 2;
    options.dynamic = dynamic == Py_None   ? CompileOptions::Dynamic::Auto
                      : dynamic == Py_True ? CompileOptions::Dynamic::Always
                                           : CompileOptions::Dynamic::Never;
    new (&c->compiled) Ref<CompiledFunction>(makeRef<CompiledFunction>(name, options));
    c->replay = new ReplayCache;
    return self.release();
  });
}
int compiledTraverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(compiledOf(self)->function);
  Py_VISIT(compiledOf(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return compiledOf(self)->replay ? compiledOf(self)->replay->tree.traverse(visit, arg) : 0;
}
int compiledClear(PyObject *self) {
  if (compiledOf(self)->replay)
    compiledOf(self)->replay->clear();
  Py_CLEAR(compiledOf(self)->function);
  Py_CLEAR(compiledOf(self)->dict);
  return 0;
}
void compiledFree(PyObject *self) {
  PyObject_GC_UnTrack(self);
  if (compiledOf(self)->weakrefs)
    PyObject_ClearWeakRefs(self);
  compiledClear(self);
  PyTypeObject *type = Py_TYPE(self);
  delete compiledOf(self)->replay;
  compiledOf(self)->compiled.~Ref<CompiledFunction>();
  type->tp_free(self);
  Py_DECREF(type);
}
/// As a class attribute it binds like a function.
PyObject *compiledBind(PyObject *self, PyObject *object, PyObject *) {
  return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyObject *explainMethod(PyObject *self, PyObject *) {
  return guarded([&] {
    PyCompiled *c = compiledOf(self);
    return PyUnicode_FromString((c->compiled->explain() + c->replay->explain()).c_str());
  });
}
/// A list of (text, place).
PyObject *guardsMethod(PyObject *self, PyObject *) {
  return guarded([&]() -> PyObject * {
    Obj list = Obj::check(PyList_New(0));
    for (const auto &[text, place] : compiledOf(self)->replay->tree.guards()) {
      Obj item = Obj::check(Py_BuildValue("(ss)", text.c_str(), place.c_str()));
      if (PyList_Append(list.get(), item.get()) < 0)
        throw PythonError{};
    }
    return list.release();
  });
}
PyObject *explainJsonMethod(PyObject *self, PyObject *) {
  return guarded([&] { return PyUnicode_FromString(compiledOf(self)->compiled->explainJson().c_str()); });
}
PyObject *resetMethod(PyObject *self, PyObject *) {
  compiledOf(self)->compiled->reset();
  compiledOf(self)->replay->clear();
  Py_RETURN_NONE;
}
PyObject *graphJsonMethod(PyObject *self, PyObject *) {
  return guarded([&] { return PyUnicode_FromString(compiledOf(self)->compiled->graphJson().c_str()); });
}
PyObject *eventsMethod(PyObject *self, PyObject *) {
  return guarded([&]() -> PyObject * {
    static const char *const kinds[] = {"compile", "recompile", "break", "fallback", "limit"};
    Obj list = Obj::check(PyList_New(0));
    for (const CompileEvent &e : compiledOf(self)->compiled->events()) {
      Obj item = Obj::check(Py_BuildValue("{s:s,s:s,s:s,s:s}", "kind", kinds[static_cast<int>(e.kind)], "loc",
                                          e.loc.c_str(), "text", e.text.c_str(), "action", e.action.c_str()));
      if (PyList_Append(list.get(), item.get()) < 0)
        throw PythonError{};
    }
    return list.release();
  });
}
PyObject *getEntries(PyObject *self, void *) { return PyLong_FromSize_t(compiledOf(self)->compiled->numEntries()); }
PyObject *getFullgraph(PyObject *self, void *) {
  return PyBool_FromLong(compiledOf(self)->compiled->options().fullgraph);
}

PyObject *sameObject(PyObject *self, PyObject *) { return Py_NewRef(self); }
/// Copies and pickles are made in Python, see dlc.compiler.
PyObject *deepcopyMethod(PyObject *self, PyObject *memo) {
  Obj module(PyImport_ImportModule("dlc.compiler"));
  return module ? PyObject_CallMethod(module.get(), "deepcopy_compiled", "OO", self, memo) : nullptr;
}
PyObject *reduceMethod(PyObject *self, PyObject *) {
  Obj module(PyImport_ImportModule("dlc.compiler"));
  return module ? PyObject_CallMethod(module.get(), "reduce_compiled", "O", self) : nullptr;
}

PyMethodDef compiledMethods[] = {
    {"__copy__", sameObject, METH_NOARGS, nullptr},
    {"__deepcopy__", deepcopyMethod, METH_O, nullptr},
    {"__reduce__", reduceMethod, METH_NOARGS, nullptr},
    {"explain", explainMethod, METH_NOARGS, "All graphs, guards and events as text."},
    {"guards", guardsMethod, METH_NOARGS, "What replays check, a tuple of text and file:line each."},
    {"explain_json", explainJsonMethod, METH_NOARGS, "Graphs, guards, times, memory and lines as a JSON list."},
    {"reset", resetMethod, METH_NOARGS, "Drops the compiled code."},
    {"graph_json", graphJsonMethod, METH_NOARGS, "The largest fused graph as JSON."},
    {"events", eventsMethod, METH_NOARGS, "Compilations, breaks and fallbacks, a dict each."},
    {}};
PyObject *getQuiet(PyObject *self, void *) { return PyBool_FromLong(compiledOf(self)->compiled->options().quiet); }
PyObject *getName(PyObject *self, void *) { return PyUnicode_FromString(compiledOf(self)->compiled->name().c_str()); }
PyObject *getDynamic(PyObject *self, void *) {
  CompileOptions::Dynamic d = compiledOf(self)->compiled->options().dynamic;
  return Py_NewRef(d == CompileOptions::Dynamic::Auto     ? Py_None
                   : d == CompileOptions::Dynamic::Always ? Py_True
                                                          : Py_False);
}
PyObject *getBackground(PyObject *self, void *) {
  return PyBool_FromLong(compiledOf(self)->compiled->options().background);
}

PyObject *getTuningSeconds(PyObject *self, void *) {
  return PyFloat_FromDouble(compiledOf(self)->compiled->options().tuningSeconds);
}
PyObject *getTuningProgress(PyObject *self, void *) {
  int progress = compiledOf(self)->compiled->options().tuningProgress;
  return Py_NewRef(progress == 0 ? Py_None : progress == 1 ? Py_True : Py_False);
}

PyGetSetDef compiledGetters[] = {{"num_entries", getEntries, nullptr, "How many graphs are cached.", nullptr},
                                 {"fullgraph", getFullgraph, nullptr, "Whether breaks raise.", nullptr},
                                 {"quiet", getQuiet, nullptr, "Whether breaks are not told of.", nullptr},
                                 {"name", getName, nullptr, "What messages call the function.", nullptr},
                                 {"dynamic", getDynamic, nullptr, "When sizes are lifted.", nullptr},
                                 {"background", getBackground, nullptr, "Whether a thread compiles.", nullptr},
                                 {"tuning_seconds", getTuningSeconds, nullptr, "The budget of the tuner.", nullptr},
                                 {"tuning_progress", getTuningProgress, nullptr, "Whether it shows a bar.", nullptr},
                                 {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                 {}};
PyMemberDef compiledMembers[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyCompiled, dict), READONLY, nullptr},
                                 {"__weaklistoffset__", T_PYSSIZET, offsetof(PyCompiled, weakrefs), READONLY, nullptr},
                                 {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyCompiled, call), READONLY, nullptr},
                                 {"__wrapped__", T_OBJECT, offsetof(PyCompiled, function), READONLY, nullptr},
                                 {}};
PyType_Slot compiledSlots[] = {
    {Py_tp_new, reinterpret_cast<void *>(compiledNew)},
    {Py_tp_dealloc, reinterpret_cast<void *>(compiledFree)},
    {Py_tp_traverse, reinterpret_cast<void *>(compiledTraverse)},
    {Py_tp_clear, reinterpret_cast<void *>(compiledClear)},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void *>(compiledBind)},
    {Py_tp_methods, compiledMethods},
    {Py_tp_getset, compiledGetters},
    {Py_tp_members, compiledMembers},
    {Py_tp_doc, const_cast<char *>("A function that records what it does and runs it compiled.")},
    {0, nullptr}};
PyType_Spec compiledSpec = {
    "dlc._Compiled", sizeof(PyCompiled), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, compiledSlots};

// --- functions

PyObject *statsFn(PyObject *, PyObject *) {
  CompileStats s = compileStats();
  ReplayStats r = replayStats();
  return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:d}", "replays", (long long)r.replays,
                       "captures", (long long)r.captures, "traced", (long long)r.traced, "compilations",
                       (long long)s.compilations, "breaks", (long long)s.breaks, "fallbacks", (long long)s.fallbacks,
                       "hits", (long long)s.hits, "small_pieces", (long long)s.smallPieces, "kernels",
                       (long long)s.kernels, "library_calls", (long long)s.libraryCalls, "other_steps",
                       (long long)s.otherSteps, "llvm_compilations", (long long)s.llvmCompilations, "cache_hits",
                       (long long)s.cacheHits, "compile_seconds", s.compileSeconds);
}
PyObject *resetStats(PyObject *, PyObject *) {
  resetCompileStats();
  resetReplayStats();
  Py_RETURN_NONE;
}
PyObject *isCompilingFn(PyObject *, PyObject *) { return PyBool_FromLong(isCompiling()); }

constexpr const char *kDisabled = "a function or block marked with dlc.compiler.disable";

/// _call_disabled(recursive, function, *args, **kwargs): a call whose ops run eagerly.
PyObject *callDisabled(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_REQUIRE(nargs > 1, Type, "_call_disabled: a function is needed");
    DisableScope scope(kDisabled, args[0] == Py_True);
    return callPython(args[1], args + 2, static_cast<size_t>(nargs - 2), kwnames);
  });
}

/// Blocks of this thread that run eagerly, innermost last.
std::vector<std::unique_ptr<DisableScope>> &disabledBlocks() {
  static thread_local std::vector<std::unique_ptr<DisableScope>> blocks;
  return blocks;
}
PyObject *beginDisabled(PyObject *, PyObject *recursive) {
  return guarded([&]() -> PyObject * {
    disabledBlocks().push_back(std::make_unique<DisableScope>(kDisabled, recursive == Py_True));
    Py_RETURN_NONE;
  });
}
PyObject *endDisabled(PyObject *, PyObject *) {
  if (!disabledBlocks().empty())
    disabledBlocks().pop_back();
  Py_RETURN_NONE;
}

/// _reset_compiler(): drops the code of all compiled functions.
PyObject *resetCompilerFn(PyObject *, PyObject *) {
  resetCompiler();
  Py_RETURN_NONE;
}

/// _wait_for_background(seconds): whether the background thread has nothing left to compile.
PyObject *waitFn(PyObject *, PyObject *seconds) {
  return guarded([&]() -> PyObject * {
    double limit = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred())
      return nullptr;
    bool idle = false;
    for (double waited = 0; !idle && waited <= limit; waited += 0.1) {
      {
        ReleaseGil release;
        idle = waitForBackground(100);
      }
      if (PyErr_CheckSignals() < 0)
        return nullptr;
    }
    return PyBool_FromLong(idle);
  });
}

/// The attribute of a Python tensor that holds (dynamic, fixed), a bit a dimension.
PyObject *marksName() {
  static PyObject *name = PyUnicode_InternFromString("_dlc_dim_marks");
  return name;
}

void readDimMarks(const Tensor &t, trace::DimMarks &out) {
  auto *object = static_cast<PyTensor *>(t.impl()->pyObject);
  if (!object || !PyGILState_Check() || !object->dict)
    return;
  PyObject *marks = PyDict_GetItemWithError(object->dict, marksName());
  if (!marks || !PyTuple_Check(marks) || PyTuple_GET_SIZE(marks) != 2)
    return PyErr_Clear();
  out.dynamic = static_cast<uint32_t>(PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(marks, 0)));
  out.fixed = static_cast<uint32_t>(PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(marks, 1)));
}

bool belongsToModule(const Tensor &t) {
  auto *object = static_cast<PyObject *>(t.impl()->pyObject);
  return (object && Py_TYPE(object) != tensorType) || StorageWatch::isMarkedState(t.storage());
}

/// _mark_state(tensor): its memory is a module's from now on. Returns the tensor; None stays None.
PyObject *markState(PyObject *, PyObject *tensor) {
  if (isTensor(tensor))
    StorageWatch::markState(tensorOf(tensor).storage());
  return Py_NewRef(tensor);
}

/// _derived_stats(): what compiled programs keep of parameters in other forms.
PyObject *derivedStatsFn(PyObject *, PyObject *) {
  DerivedStats s = derivedStats();
  return Py_BuildValue("{s:L,s:L,s:L}", "runs", (long long)s.runs, "values", (long long)s.values, "bytes",
                       (long long)s.bytes);
}

/// _use_dim_marks(): recorders read the marks from now on.
PyObject *useDimMarks(PyObject *, PyObject *) {
  trace::Recorder::readMarks = readDimMarks;
  Py_RETURN_NONE;
}

/// _start_profile(): plans time their steps from now on.
PyObject *startProfileFn(PyObject *, PyObject *) {
  startProfile();
  Py_RETURN_NONE;
}

/// _take_profile(): the steps since _start_profile as (kind, name, ops, shapes, calls, seconds, bytes, flops) tuples.
PyObject *takeProfileFn(PyObject *, PyObject *) {
  return guarded([]() -> PyObject * {
    Obj list = Obj::check(PyList_New(0));
    for (const ProfileRow &r : takeProfile()) {
      Obj ops = Obj::check(PyList_New(0));
      for (const std::string &op : r.ops)
        if (PyList_Append(ops.get(), Obj::check(PyUnicode_FromString(op.c_str())).get()) < 0)
          throw PythonError{};
      Obj row = Obj::check(Py_BuildValue("(ssOsLdLL)", r.kind.c_str(), r.name.c_str(), ops.get(), r.shapes.c_str(),
                                         static_cast<long long>(r.calls), r.seconds, static_cast<long long>(r.bytes),
                                         static_cast<long long>(r.flops)));
      if (PyList_Append(list.get(), row.get()) < 0)
        throw PythonError{};
    }
    return list.release();
  });
}

PyObject *tuningEntriesFn(PyObject *, PyObject *) {
  return guarded([&]() -> PyObject * {
    auto entries = dlc::tuningEntries();
    Obj list = Obj::check(PyList_New(0));
    for (const auto &[key, value] : entries) {
      Obj item = Obj::check(Py_BuildValue("ss", key.c_str(), value.c_str()));
      if (PyList_Append(list.get(), item.get()) < 0)
        throw PythonError{};
    }
    return list.release();
  });
}
PyObject *tuningLoad(PyObject *, PyObject *args) {
  const char *key, *value;
  if (!PyArg_ParseTuple(args, "ss:_tuning_load", &key, &value))
    return nullptr;
  return guarded([&] { return PyBool_FromLong(loadTuningEntry(key, value)); });
}
PyObject *tuningHostFn(PyObject *, PyObject *) {
  return guarded([&] { return PyUnicode_FromString(tuningHost().c_str()); });
}

PyMethodDef functions[] = {{"_tuning_entries", tuningEntriesFn, METH_NOARGS, nullptr},
                           {"_tuning_load", tuningLoad, METH_VARARGS, nullptr},
                           {"_tuning_host", tuningHostFn, METH_NOARGS, nullptr},
                           {"_compile_stats", statsFn, METH_NOARGS, nullptr},
                           {"_reset_compile_stats", resetStats, METH_NOARGS, nullptr},
                           {"_reset_compiler", resetCompilerFn, METH_NOARGS, nullptr},
                           {"_wait_for_background", waitFn, METH_O, nullptr},
                           {"_begin_disabled", beginDisabled, METH_O, nullptr},
                           {"_end_disabled", endDisabled, METH_NOARGS, nullptr},
                           {"_mark_state", markState, METH_O, nullptr},
                           {"_derived_stats", derivedStatsFn, METH_NOARGS, nullptr},
                           {"_use_dim_marks", useDimMarks, METH_NOARGS, nullptr},
                           {"_start_profile", startProfileFn, METH_NOARGS, nullptr},
                           {"_take_profile", takeProfileFn, METH_NOARGS, nullptr},
                           {"_is_compiling", isCompilingFn, METH_NOARGS, nullptr},
                           fastMethod("_call_disabled", callDisabled, nullptr),
                           {}};

} // namespace

/// Compiling, and waiting for others that do: not with the GIL, whoever called.
static void withoutGil(void (*body)(void *), void *context) {
  ReleaseGil release(PyGILState_Check());
  body(context);
}

void initCompile(PyObject *module) {
  setBlockingScope(withoutGil);
  installCompile();
  installCompiler();
  trace::Recorder::belongsToModule = belongsToModule;
  setLocator({mark, describeMark});
  initNumbers(module);
  initHooks(module);
  compiledType = reinterpret_cast<PyTypeObject *>(Obj::check(PyType_FromSpec(&compiledSpec)).release());
  if (PyModule_AddObjectRef(module, "_Compiled", reinterpret_cast<PyObject *>(compiledType)) < 0 ||
      PyModule_AddFunctions(module, functions) < 0)
    throw PythonError{};
}

} // namespace dlc::py
