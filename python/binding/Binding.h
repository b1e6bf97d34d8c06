// What the parts of the Python extension share: the Python types, conversions, and the border where C++
// exceptions become Python's. Everything here assumes the GIL unless it says otherwise.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "runtime/core/Generator.h"
#include "runtime/core/Tensor.h"
#include <cxxabi.h>
#include <string>
#include <utility>

namespace dlc::py {

/// A Python error is set; unwinds C++ frames to the nearest `guarded`.
struct PythonError {};

/// An owned reference to a Python object.
class Obj {
public:
  Obj() = default;
  explicit Obj(PyObject *owned) : p_(owned) {}
  static Obj borrow(PyObject *p) {
    Py_XINCREF(p);
    return Obj(p);
  }
  /// Takes a new reference from the C API; throws PythonError if it is null.
  static Obj check(PyObject *owned) {
    if (!owned)
      throw PythonError{};
    return Obj(owned);
  }
  Obj(const Obj &o) : p_(o.p_) { Py_XINCREF(p_); }
  Obj(Obj &&o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Obj &operator=(Obj o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Obj() { Py_XDECREF(p_); }
  PyObject *get() const { return p_; }
  PyObject *release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

private:
  PyObject *p_ = nullptr;
};

struct PyTensor {
  PyObject_HEAD Tensor tensor;
  PyObject *dict;
  PyObject *weakrefs;
};
struct PyDType {
  PyObject_HEAD DType dtype;
};
struct PyDevice {
  PyObject_HEAD bool cuda;
  int index; // -1: none
};
struct PyGenerator {
  PyObject_HEAD Ref<Generator> generator;
};

extern PyTypeObject *tensorType, *dtypeType, *sizeType, *deviceType, *generatorType;

inline bool isTensor(PyObject *o) { return Py_TYPE(o) == tensorType || PyType_IsSubtype(Py_TYPE(o), tensorType); }
inline const Tensor &tensorOf(PyObject *o) { return reinterpret_cast<PyTensor *>(o)->tensor; }
inline bool isDType(PyObject *o) { return Py_TYPE(o) == dtypeType; }
inline DType dtypeOf(PyObject *o) { return reinterpret_cast<PyDType *>(o)->dtype; }

/// The Python object of a tensor: the one it has, or a new plain Tensor. Undefined gives None.
PyObject *wrap(Tensor t);
/// A new object of `type` (Tensor or a subclass) around `t`, which must have none yet.
PyObject *wrapAs(PyTypeObject *type, Tensor t);
PyObject *wrap(DType t);
PyObject *wrap(const Number &n);
PyObject *wrapSize(Ints sizes);
/// The device object of the CPU (a new reference).
PyObject *cpuDevice();
/// Throws unless `o` names the CPU (a device, "cpu", or None).
void requireCpu(PyObject *o, const char *op);

/// A Python or NumPy bool, int or float as a Number; returns false if `o` is none of them.
bool toNumber(PyObject *o, Number &out);
/// An int, an object with __index__, or a 0-d integer tensor; returns false if it is none. Throws on overflow.
bool toInt(PyObject *o, int64_t &out);
/// An int as a size, stride or index: a symbolic one keeps its expression.
bool toDim(PyObject *o, Dim &out);
/// Called before Python sees the value of a tensor: a capture session must know.
void noteValueRead();
int64_t requireInt(PyObject *o, const char *op, const char *param);
/// A list or tuple of ints, or a Size; returns false if it is none.
bool toInts(PyObject *o, Sizes &out);
/// A dtype object, or the Python types bool, int and float; returns false if it is none.
bool toDType(PyObject *o, DType &out);

/// Sets the Python error of `e`, with the user's file:line in its first line.
void setPythonError(const Error &e);
/// Sets the Python error of the exception being handled.
void setPythonErrorFromCurrentException() noexcept;
/// " (file.py:12)" of the nearest frame outside the dlc package, or "".
std::string userLocation();
/// True for files of the dlc package itself.
bool isPackageFile(PyObject *path);

/// For threads that the exiting interpreter would unwind: never returns.
[[noreturn]] void hangThread();
/// PyEval_RestoreThread and PyGILState_Ensure that do not return once the interpreter exits.
void restoreThread(PyThreadState *state);
PyGILState_STATE ensureGil();
/// False where waiting for the GIL could wait for a thread that waits for this one, or where Python knows no thread.
bool mayWaitForGil();
/// Shows a warning through Python's warnings module, from any thread.
void warn(const std::string &text);
/// Runs `call`, which runs Python code. Nothing that Python code does leaves by unwinding, but for the end of a daemon
/// thread: that one stops here, before frames with objects of ours are unwound without the GIL.
template <class F> auto noUnwind(F &&call) -> decltype(call()) {
  struct Frame {
    bool returned = false;
    ~Frame() {
      if (!returned)
        hangThread();
    }
  } frame;
  auto result = call();
  frame.returned = true;
  return result;
}
/// Calls Python code that may run for long.
PyObject *callPython(PyObject *function, PyObject *const *args, size_t nargs, PyObject *kwnames);

/// Runs `f` and turns exceptions into a Python error and a null (or -1) result.
template <class F> auto guarded(F &&f) noexcept -> decltype(f()) {
  using R = decltype(f());
  try {
    return f();
  } catch (abi::__forced_unwind &) { // CPython ends a daemon thread
    hangThread();
  } catch (...) {
    setPythonErrorFromCurrentException();
  }
  if constexpr (std::is_pointer_v<R>)
    return nullptr;
  else
    return static_cast<R>(-1);
}

/// Gives the GIL up while in scope (if `wanted`).
class ReleaseGil {
public:
  explicit ReleaseGil(bool wanted = true) : state_(wanted ? PyEval_SaveThread() : nullptr) {}
  ~ReleaseGil() {
    if (state_)
      restoreThread(state_);
  }
  ReleaseGil(const ReleaseGil &) = delete;

private:
  PyThreadState *state_;
};

/// Holds the GIL while in scope, from any thread.
class HoldGil {
public:
  HoldGil() : state_(ensureGil()) {}
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil &) = delete;

private:
  PyGILState_STATE state_;
};

/// A method table entry for METH_FASTCALL | METH_KEYWORDS functions.
using FastFn = PyObject *(*)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
inline PyMethodDef fastMethod(const char *name, FastFn fn, const char *doc, int flags = 0) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(fn)), METH_FASTCALL | METH_KEYWORDS | flags,
          doc};
}

/// Reads the arguments of one hand-written function: positional, then by keyword, into slots (null if absent).
/// `names` ends with a null; the first `required` must be given, those from `kwonly` on only by keyword.
void readArgs(const char *fn, const char *const *names, int required, int kwonly, PyObject *const *args,
              Py_ssize_t nargs, PyObject *kwnames, PyObject **slots);

/// A METH_FASTCALL wrapper around a function of slots: see DLC_FN.
#define DLC_ARGS(fn, required, kwonly, ...)                                                                            \
  static const char *const argNames[] = {__VA_ARGS__, nullptr};                                                        \
  PyObject *slot[sizeof(argNames) / sizeof(argNames[0])] = {};                                                         \
  readArgs(fn, argNames, required, kwonly, args, nargs, kwnames, slot)

/// Registers the parts with the module; each throws PythonError on failure.
void initTypes(PyObject *module);
void initTensor(PyObject *module);
void initOps(PyObject *module);
void initConvert(PyObject *module);
void initAutograd(PyObject *module);
void initMisc(PyObject *module);
void initModuleBase(PyObject *module);
void initCompile(PyObject *module);
void initGil(PyObject *module);

/// The methods, getters and number slots that go into the Tensor type before it is made.
void addMethods(const PyMethodDef *defs);
void addGetters(const PyGetSetDef *defs);

} // namespace dlc::py
