// Conversions of plain Python values, reading the arguments of hand-written functions, and errors.
#include "python/binding/Binding.h"
#include "python/capture/session/Numbers.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <cstring>
#include <frameobject.h>

namespace dlc::py {

bool toNumber(PyObject *o, Number &out) {
  if (isSymbolic(o)) {
    out = numberOf(o);
    return true;
  }
  if (PyFloat_Check(o)) { // NumPy's float64 is a subclass
    out = Number(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyBool_Check(o)) {
    out = Number(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    DLC_REQUIRE(!overflow, Runtime, "a Python int given as a number does not fit in int64\nuse a float");
    out = Number(static_cast<int64_t>(v));
    return true;
  }
  // NumPy scalars other than float64, without including NumPy: they say what they are by their type's name.
  const char *name = Py_TYPE(o)->tp_name;
  if (std::strncmp(name, "numpy.", 6) != 0 || std::strcmp(name, "numpy.ndarray") == 0)
    return false;
  if (std::strncmp(name + 6, "bool", 4) == 0) {
    out = Number(PyObject_IsTrue(o) == 1);
    return true;
  }
  if (std::strncmp(name + 6, "float", 5) == 0) {
    double v = PyFloat_AsDouble(o);
    if (v == -1 && PyErr_Occurred())
      throw PythonError{};
    out = Number(v);
    return true;
  }
  if (PyIndex_Check(o)) {
    int64_t v;
    if (!toInt(o, v))
      return false;
    out = Number(v);
    return true;
  }
  return false;
}

bool toInt(PyObject *o, int64_t &out) {
  Dim d;
  if (Py_TYPE(o) == symbolicIntType && dimOf(o, d)) { // whoever wants an int decides by it
    out = d.concretize();
    return true;
  }
  if (PyLong_Check(o)) { // bool too, as in PyTorch
    int overflow;
    out = PyLong_AsLongLongAndOverflow(o, &overflow);
    DLC_REQUIRE(!overflow, Overflow, "an integer argument does not fit in 64 bits\nuse a smaller number");
    return true;
  }
  if (isTensor(o)) {
    const Tensor &t = tensorOf(o);
    if (t.dim() != 0 || categoryOf(t.dtype()) != Category::Int)
      return false;
    noteValueRead();
    out = t.item().toInt();
    return true;
  }
  if (!PyIndex_Check(o) || PySequence_Check(o))
    return false;
  Obj index = Obj::check(PyNumber_Index(o));
  return toInt(index.get(), out);
}

bool toDim(PyObject *o, Dim &out) {
  int64_t v;
  if (Py_TYPE(o) == symbolicIntType) {
    out = dimOperand(o);
    return true;
  }
  if (!toInt(o, v))
    return false;
  out = Dim(v);
  return true;
}

int64_t requireInt(PyObject *o, const char *op, const char *param) {
  int64_t v;
  DLC_REQUIRE(toInt(o, v), Type, op, ": `", param, "` must be an int, not ", Py_TYPE(o)->tp_name,
              "\ngive a whole number");
  return v;
}

bool toInts(PyObject *o, Sizes &out) {
  if (!PyTuple_Check(o) && !PyList_Check(o))
    return false;
  PyObject **items = PySequence_Fast_ITEMS(o);
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  out.clear();
  for (Py_ssize_t i = 0; i < n; ++i) {
    int64_t v;
    if (!toInt(items[i], v))
      return false;
    out.push_back(v);
  }
  return true;
}

bool toDType(PyObject *o, DType &out) {
  if (isDType(o)) {
    out = dtypeOf(o);
    return true;
  }
  if (o == reinterpret_cast<PyObject *>(&PyFloat_Type))
    out = DType::F64; // what PyTorch makes of the type; its default dtype has its own spelling
  else if (o == reinterpret_cast<PyObject *>(&PyLong_Type))
    out = DType::I64;
  else if (o == reinterpret_cast<PyObject *>(&PyBool_Type))
    out = DType::Bool;
  else
    return false;
  return true;
}

PyObject *wrap(const Number &n) {
  switch (n.category()) {
  case Category::Bool:
    return PyBool_FromLong(n.toBool());
  case Category::Int:
    return PyLong_FromLongLong(n.toInt());
  default:
    return PyFloat_FromDouble(n.toDouble());
  }
}

void readArgs(const char *fn, const char *const *names, int required, int kwonly, PyObject *const *args,
              Py_ssize_t nargs, PyObject *kwnames, PyObject **slots) {
  DLC_REQUIRE(nargs <= kwonly, Type, fn, "() takes ", kwonly, " positional arguments but ", nargs, " were given");
  for (Py_ssize_t i = 0; i < nargs; ++i)
    slots[i] = args[i];
  for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
    const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k));
    int i = 0;
    while (names[i] && std::strcmp(names[i], name) != 0)
      ++i;
    DLC_REQUIRE(names[i], Type, fn, "() got an unexpected keyword argument '", name, "'");
    DLC_REQUIRE(!slots[i], Type, fn, "() got multiple values for argument '", name, "'");
    slots[i] = args[nargs + k];
  }
  for (int i = 0; i < required; ++i)
    DLC_REQUIRE(slots[i], Type, fn, "() missing required argument '", names[i], "'");
}

namespace {

/// Caught by `except RuntimeError`, as programs written for PyTorch do, and by `except MemoryError`.
PyObject *outOfMemoryError() {
  static PyObject *const cls = [] {
    Obj bases(PyTuple_Pack(2, PyExc_RuntimeError, PyExc_MemoryError));
    PyObject *made = bases ? PyErr_NewException("dlc.OutOfMemoryError", bases.get(), nullptr) : nullptr;
    PyErr_Clear();
    return made ? made : PyExc_MemoryError;
  }();
  return cls;
}

PyObject *exceptionClass(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::Type:
    return PyExc_TypeError;
  case ErrorKind::Value:
    return PyExc_ValueError;
  case ErrorKind::Index:
    return PyExc_IndexError;
  case ErrorKind::NotImplemented:
    return PyExc_NotImplementedError;
  case ErrorKind::ZeroDivision:
    return PyExc_ZeroDivisionError;
  case ErrorKind::Overflow:
    return PyExc_OverflowError;
  case ErrorKind::Attribute:
    return PyExc_AttributeError;
  case ErrorKind::Memory:
    return outOfMemoryError();
  case ErrorKind::Import:
    return PyExc_ImportError;
  case ErrorKind::Runtime:
  case ErrorKind::Internal:
    break;
  }
  return PyExc_RuntimeError;
}

/// The folder of this package with a trailing slash; frames of files in it are ours, not the user's.
const std::string &packageFolder() {
  static const std::string folder = [] {
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "dlc");
    Obj file(module ? PyObject_GetAttrString(module, "__file__") : nullptr);
    const char *path = file && PyUnicode_Check(file.get()) ? PyUnicode_AsUTF8(file.get()) : nullptr;
    PyErr_Clear();
    std::string s = path ? path : "";
    return s.substr(0, s.find_last_of('/') + 1);
  }();
  return folder;
}

} // namespace

bool isPackageFile(PyObject *path) {
  const std::string &ours = packageFolder();
  const char *text = PyUnicode_AsUTF8(path);
  return text && !ours.empty() && std::strncmp(text, ours.c_str(), ours.size()) == 0;
}

std::string userLocation() {
  Obj frame = Obj::borrow(reinterpret_cast<PyObject *>(PyEval_GetFrame()));
  while (frame) {
    auto *f = reinterpret_cast<PyFrameObject *>(frame.get());
    Obj code(reinterpret_cast<PyObject *>(PyFrame_GetCode(f)));
    PyObject *name = reinterpret_cast<PyCodeObject *>(code.get())->co_filename;
    const char *path = PyUnicode_AsUTF8(name);
    if (path && !isPackageFile(name)) {
      const char *base = std::strrchr(path, '/');
      return str(" (", base ? base + 1 : path, ":", PyFrame_GetLineNumber(f), ")");
    }
    frame = Obj(reinterpret_cast<PyObject *>(PyFrame_GetBack(f)));
  }
  return "";
}

/// Whether the first line ends with " (file:line)".
static bool hasLocation(const std::string &text) {
  std::string first = text.substr(0, text.find('\n'));
  size_t open = first.rfind(" ("), colon = first.rfind(':');
  return !first.empty() && first.back() == ')' && open != std::string::npos && colon != std::string::npos &&
         open < colon && colon + 2 < first.size() &&
         std::all_of(first.begin() + colon + 1, first.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
}

void setPythonError(const Error &e) {
  std::string text = e.what();
  if (!hasLocation(text)) // errors of recorded ops bring the op's own place along
    text.insert(std::min(text.find('\n'), text.size()), userLocation());
  PyErr_SetString(exceptionClass(e.kind()), text.c_str());
}

void setPythonErrorFromCurrentException() noexcept {
  try {
    throw;
  } catch (const PythonError &) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_SystemError, "a Python error was announced but none is set");
  } catch (const Error &e) {
    setPythonError(e);
  } catch (const Interrupted &) { // the interrupt check has set KeyboardInterrupt
    if (!PyErr_Occurred())
      PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &e) {
    PyErr_Format(PyExc_RuntimeError, "internal error: %s", e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "internal error of unknown type");
  }
}

} // namespace dlc::py
