// Settings and queries that concern no tensor in particular: seeds, threads, memory, dtypes.
#include "runtime/core/Machine.h"
#include "python/binding/Internal.h"
#include "runtime/core/Allocator.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/ThreadPool.h"
#include <unistd.h>

namespace dlc::py {
namespace {

PyObject *manualSeed(PyObject *, PyObject *seed) {
  return guarded([&]() -> PyObject * {
    uint64_t value = PyLong_Check(seed) ? PyLong_AsUnsignedLongLongMask(seed)
                                        : static_cast<uint64_t>(requireInt(seed, "manual_seed", "seed"));
    if (PyErr_Occurred())
      throw PythonError{};
    defaultGenerator().manualSeed(value);
    Py_RETURN_NONE;
  });
}
PyObject *initialSeed(PyObject *, PyObject *) { return PyLong_FromUnsignedLongLong(defaultGenerator().seed()); }

PyObject *getThreads(PyObject *, PyObject *) { return PyLong_FromLong(getNumThreads()); }
PyObject *setThreads(PyObject *, PyObject *n) {
  return guarded([&]() -> PyObject * {
    int64_t count = requireInt(n, "set_num_threads", "n");
    DLC_REQUIRE(count >= 1 && count <= 256, Value, "set_num_threads: `n` is ", count, "\nuse 1 to 256");
    ReleaseGil release;
    setNumThreads(static_cast<int>(count));
    return Py_None;
  });
}

PyObject *getDefault(PyObject *, PyObject *) { return wrap(defaultDType()); }
PyObject *setDefault(PyObject *, PyObject *d) {
  return guarded([&]() -> PyObject * {
    DType t;
    DLC_REQUIRE(isDType(d) && toDType(d, t), Type, "set_default_dtype: `d` must be a floating dtype, not ",
                Py_TYPE(d)->tp_name);
    setDefaultDType(t);
    Py_RETURN_NONE;
  });
}

PyObject *stats(PyObject *, PyObject *) {
  MemoryStats s = memoryStats();
  return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L}", "allocated", (long long)s.allocated, "peak_allocated",
                       (long long)s.peakAllocated, "reserved", (long long)s.reserved, "allocations",
                       (long long)s.allocations, "system_allocations", (long long)s.systemAllocations);
}
PyObject *resetPeak(PyObject *, PyObject *) {
  resetPeakMemory();
  Py_RETURN_NONE;
}
PyObject *emptyCacheFn(PyObject *, PyObject *) {
  emptyCache();
  Py_RETURN_NONE;
}

// --- type promotion

/// Dimensioned tensors, then 0-d tensors, then numbers: a later class counts only if its category is higher.
struct PromotionState {
  std::optional<DType> classes[3];
  void add(int cls, DType t) { classes[cls] = classes[cls] ? promoteTypes(*classes[cls], t) : t; }
  DType result() const {
    std::optional<DType> r;
    for (const auto &c : classes)
      if (c && (!r || categoryOf(*c) > categoryOf(*r)))
        r = r && c == classes[2] && categoryOf(*c) == Category::Float ? defaultDType() : *c;
    return *r;
  }
};

void addOperand(PromotionState &s, PyObject *o) {
  Number n;
  if (isTensor(o))
    s.add(tensorOf(o).dim() > 0 ? 0 : 1, tensorOf(o).dtype());
  else if (toNumber(o, n))
    s.add(2, n.dtype());
  else
    fail(ErrorKind::Type, "result_type: operands must be tensors or numbers, not ", Py_TYPE(o)->tp_name);
}

PyObject *resultTypeFn(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("result_type", 2, 2, "tensor1", "tensor2");
    PromotionState s;
    addOperand(s, slot[0]);
    addOperand(s, slot[1]);
    return wrap(s.result());
  });
}
DType requireDType(PyObject *o, const char *op, const char *param) {
  DType t;
  DLC_REQUIRE(toDType(o, t), Type, op, ": `", param, "` must be a dtype, not ", Py_TYPE(o)->tp_name);
  return t;
}
PyObject *promote(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("promote_types", 2, 2, "type1", "type2");
    return wrap(
        promoteTypes(requireDType(slot[0], "promote_types", "type1"), requireDType(slot[1], "promote_types", "type2")));
  });
}
PyObject *canCast(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&] {
    DLC_ARGS("can_cast", 2, 2, "from_", "to");
    DType from = requireDType(slot[0], "can_cast", "from_"), to = requireDType(slot[1], "can_cast", "to");
    return PyBool_FromLong(categoryOf(from) <= categoryOf(to));
  });
}

/// Asked by the thread pool during long loops, without the GIL: has the user pressed Ctrl-C? Only the main thread is
/// told.
bool interrupted() {
  if (gettid() != getpid() || !Py_IsInitialized() || !mayWaitForGil())
    return false;
  HoldGil hold;
  return PyErr_CheckSignals() < 0;
}

// --- settings (the DLC_* environment variables), by their C++ names

PyObject *knobValue(const std::string &v) { return PyUnicode_FromString(v.c_str()); }
PyObject *knobValue(int64_t v) { return PyLong_FromLongLong(v); }
PyObject *knobValue(bool v) { return PyBool_FromLong(v); }
void readKnob(PyObject *o, const char *name, std::string &v) {
  DLC_REQUIRE(PyUnicode_Check(o), Type, "config.", name, " must be a str, not ", Py_TYPE(o)->tp_name);
  v = PyUnicode_AsUTF8(o);
}
void readKnob(PyObject *o, const char *name, int64_t &v) { v = requireInt(o, "config", name); }
void readKnob(PyObject *o, const char *name, bool &v) {
  DLC_REQUIRE(PyBool_Check(o), Type, "config.", name, " must be a bool, not ", Py_TYPE(o)->tp_name);
  v = o == Py_True;
}

/// All settings as a dict of (value, environment variable, documentation).
PyObject *getKnobs(PyObject *, PyObject *) {
  return guarded([]() -> PyObject * {
    Obj dict = Obj::check(PyDict_New());
#define DLC_X(name, type, def, env, doc)                                                                               \
  if (PyDict_SetItemString(dict.get(), #name,                                                                          \
                           Obj::check(Py_BuildValue("(Nss)", knobValue(knobs().name), env, doc)).get()) < 0)           \
    throw PythonError{};
    DLC_FOR_EACH_KNOB(DLC_X)
#undef DLC_X
    return dict.release();
  });
}
PyObject *setKnob(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("_set_knob", 2, 2, "name", "value");
    std::string_view wanted = PyUnicode_Check(slot[0]) ? PyUnicode_AsUTF8(slot[0]) : "";
#define DLC_X(name, type, def, env, doc)                                                                               \
  if (wanted == #name) {                                                                                               \
    type value;                                                                                                        \
    readKnob(slot[1], #name, value);                                                                                   \
    std::string fault = knobFault(#name, value);                                                                       \
    DLC_REQUIRE(fault.empty(), Value, "config.", #name, ": ", fault, "\ngive a value that dlc.show_config() allows");  \
    knobs().name = value;                                                                                              \
    Py_RETURN_NONE;                                                                                                    \
  }
    DLC_FOR_EACH_KNOB(DLC_X)
#undef DLC_X
    fail(ErrorKind::Attribute, "config has no setting '", wanted, "'");
  });
}

/// " (file.py:12)" of the nearest frame outside of the package.
PyObject *userLocationFn(PyObject *, PyObject *) { return PyUnicode_FromString(userLocation().c_str()); }

/// _fma_peak(all_threads): GFLOP/s.
PyObject *fmaPeakFn(PyObject *, PyObject *all) {
  return guarded([&]() -> PyObject * {
    double rate;
    {
      ReleaseGil release;
      rate = fmaPeak(all == Py_True);
    }
    return PyFloat_FromDouble(rate);
  });
}

/// _bandwidth(bytes, copy, all_threads): GB/s.
PyObject *bandwidthFn(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return guarded([&]() -> PyObject * {
    DLC_ARGS("_bandwidth", 3, 3, "bytes", "copy", "all_threads");
    int64_t bytes = requireInt(slot[0], "_bandwidth", "bytes");
    double rate;
    {
      ReleaseGil release;
      rate = bandwidth(static_cast<size_t>(std::max<int64_t>(bytes, 0)), slot[1] == Py_True, slot[2] == Py_True);
    }
    return PyFloat_FromDouble(rate);
  });
}

/// _cache_bytes(level)
PyObject *cacheBytesFn(PyObject *, PyObject *level) {
  return guarded(
      [&] { return PyLong_FromSize_t(cacheBytes(static_cast<int>(requireInt(level, "_cache_bytes", "level")))); });
}

PyMethodDef functions[] = {
    {"manual_seed", manualSeed, METH_O, "Starts the default generator's stream of `seed`."},
    {"initial_seed", initialSeed, METH_NOARGS, "The seed of the default generator."},
    {"get_num_threads", getThreads, METH_NOARGS, "Threads that kernels use, the caller included."},
    {"set_num_threads", setThreads, METH_O, "Sets how many threads kernels use."},
    {"get_default_dtype", getDefault, METH_NOARGS, "The dtype of float tensors made without one."},
    {"set_default_dtype", setDefault, METH_O, "Sets the dtype of float tensors made without one."},
    {"memory_stats", stats, METH_NOARGS, "Byte and call counts of the caching allocator."},
    {"reset_peak_memory_stats", resetPeak, METH_NOARGS, "Makes the current allocation the peak."},
    {"empty_cache", emptyCacheFn, METH_NOARGS, "Returns cached memory to the system."},
    {"_user_location", userLocationFn, METH_NOARGS, nullptr},
    {"_fma_peak", fmaPeakFn, METH_O, nullptr},
    {"_cache_bytes", cacheBytesFn, METH_O, nullptr},
    fastMethod("_bandwidth", bandwidthFn, nullptr),
    {"_get_knobs", getKnobs, METH_NOARGS, nullptr},
    fastMethod("_set_knob", setKnob, nullptr),
    fastMethod("result_type", resultTypeFn, "The dtype of arithmetic between two operands."),
    fastMethod("promote_types", promote, "The smallest dtype that both convert to."),
    fastMethod("can_cast", canCast, "Whether type promotion allows the conversion."),
    {}};

} // namespace

void initMisc(PyObject *module) {
  setInterruptCheck(interrupted);
  if (PyModule_AddFunctions(module, functions) < 0)
    throw PythonError{};
}

} // namespace dlc::py
