// The types of symbolic numbers. An int's expression is kept beside it: an int has no room for more.
#include "python/capture/session/Numbers.h"
#include <unordered_map>

namespace dlc::py {

PyTypeObject *symbolicIntType, *symbolicFloatType;

namespace {

struct Expression {
  Dim dim;
  uint64_t epoch; ///< of the session that it belongs to
};
std::unordered_map<PyObject *, Expression> &dims() {
  static auto *m = new std::unordered_map<PyObject *, Expression>; // outlives the interpreter
  return *m;
}

struct SymbolicFloat {
  PyFloatObject base;
  NumberNode *node;
  uint64_t epoch;
};
thread_local uint64_t epoch = 0;

void freeInt(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  dims().erase(self);
  type->tp_free(self);
  Py_DECREF(type);
}
void freeFloat(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot intSlots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(freeInt)}, {0, nullptr}};
PyType_Spec intSpec = {"dlc._SymbolicInt", 0, 0, Py_TPFLAGS_DEFAULT, intSlots};
PyType_Slot floatSlots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(freeFloat)}, {0, nullptr}};
PyType_Spec floatSpec = {"dlc._SymbolicFloat", sizeof(SymbolicFloat), 0, Py_TPFLAGS_DEFAULT, floatSlots};

PyTypeObject *derive(PyType_Spec &spec, PyTypeObject &base) {
  Obj bases = Obj::check(PyTuple_Pack(1, &base));
  return reinterpret_cast<PyTypeObject *>(Obj::check(PyType_FromSpecWithBases(&spec, bases.get())).release());
}

} // namespace

uint64_t setNumberEpoch(uint64_t e) { return std::exchange(epoch, e); }

bool isStale(PyObject *o) {
  if (Py_TYPE(o) == symbolicIntType)
    return dims().at(o).epoch != epoch;
  return Py_TYPE(o) == symbolicFloatType && reinterpret_cast<SymbolicFloat *>(o)->epoch != epoch;
}

Obj wrapDim(const Dim &d) {
  Obj plain = Obj::check(PyLong_FromLongLong(d.value()));
  if (d.isConst())
    return plain;
  Obj args = Obj::check(PyTuple_Pack(1, plain.get()));
  Obj self = Obj::check(PyLong_Type.tp_new(symbolicIntType, args.get(), nullptr));
  dims()[self.get()] = {d, epoch};
  return self;
}

bool dimOf(PyObject *o, Dim &out) {
  if (Py_TYPE(o) == symbolicIntType) {
    const Expression &e = dims().at(o);
    out = e.epoch == epoch ? e.dim : Dim(e.dim.value());
    return true;
  }
  if (!PyLong_CheckExact(o))
    return false;
  int overflow;
  long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  out = Dim(static_cast<int64_t>(v));
  return !overflow;
}

Obj wrapNumberNode(NumberNode *node) {
  Obj plain = Obj::check(PyFloat_FromDouble(node->plain())), args = Obj::check(PyTuple_Pack(1, plain.get()));
  Obj self = Obj::check(PyFloat_Type.tp_new(symbolicFloatType, args.get(), nullptr));
  reinterpret_cast<SymbolicFloat *>(self.get())->node = node;
  reinterpret_cast<SymbolicFloat *>(self.get())->epoch = epoch;
  return self;
}

NumberNode *numberNodeOf(PyObject *o) {
  return Py_TYPE(o) == symbolicFloatType && !isStale(o) ? reinterpret_cast<SymbolicFloat *>(o)->node : nullptr;
}

Obj plainNumber(PyObject *o) {
  if (Py_TYPE(o) == symbolicIntType)
    return Obj::check(PyLong_FromLongLong(dims().at(o).dim.value()));
  if (Py_TYPE(o) == symbolicFloatType)
    return Obj::check(PyFloat_FromDouble(PyFloat_AS_DOUBLE(o)));
  return Obj::borrow(o);
}

void initNumbers(PyObject *module) {
  symbolicIntType = derive(intSpec, PyLong_Type);
  symbolicFloatType = derive(floatSpec, PyFloat_Type);
  symbolicIntType->tp_name = "int"; // messages speak of what they stand for
  symbolicFloatType->tp_name = "float";
  if (PyModule_AddObjectRef(module, "_SymbolicInt", reinterpret_cast<PyObject *>(symbolicIntType)) < 0 ||
      PyModule_AddObjectRef(module, "_SymbolicFloat", reinterpret_cast<PyObject *>(symbolicFloatType)) < 0)
    throw PythonError{};
}

} // namespace dlc::py
