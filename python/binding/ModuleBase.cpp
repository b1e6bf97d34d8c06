// The base type of dlc.nn.Module: attribute look-up that knows parameters, submodules and buffers. In Python, as
// __getattr__, each use of a parameter would first raise and drop an AttributeError.
#include "python/binding/Binding.h"

namespace dlc::py {
namespace {

PyObject *tableNames[3];

PyObject *lookUp(PyObject *self, PyObject *name) {
  constexpr int kNoError = 1;
  if (PyObject *found = _PyObject_GenericGetAttrWithDict(self, name, nullptr, kNoError))
    return found;
  if (PyErr_Occurred())
    return nullptr;
  for (PyObject *tableName : tableNames) {
    PyObject *table = _PyObject_GenericGetAttrWithDict(self, tableName, nullptr, kNoError);
    if (!table) {
      if (PyErr_Occurred())
        return nullptr;
      continue;
    }
    PyObject *entry = PyDict_Check(table) ? PyDict_GetItemWithError(table, name) : nullptr;
    Py_XINCREF(entry);
    Py_DECREF(table);
    if (entry || PyErr_Occurred())
      return entry;
  }
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name);
  return nullptr;
}

PyType_Slot slots[] = {{Py_tp_getattro, reinterpret_cast<void *>(lookUp)}, {0, nullptr}};
PyType_Spec spec = {"dlc._ModuleBase", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

} // namespace

void initModuleBase(PyObject *module) {
  const char *names[] = {"_parameters", "_modules", "_buffers"};
  for (int i = 0; i < 3; ++i)
    tableNames[i] = Obj::check(PyUnicode_InternFromString(names[i])).release();
  Obj type = Obj::check(PyType_FromSpec(&spec));
  if (PyModule_AddObjectRef(module, "_ModuleBase", type.get()) < 0)
    throw PythonError{};
}

} // namespace dlc::py
