// Instance attributes as this version of CPython stores them. The layout of 3.11 is mirrored here and tested at start;
// where the test fails, and for other versions, objects are asked for their dictionary.
#include "python/capture/program/Compat.h"

namespace dlc::py::compat {
namespace {

struct Keys { // struct _dictkeysobject of 3.11
  Py_ssize_t refs;
  uint8_t log2Size, log2IndexBytes, kind;
  uint32_t version;
  Py_ssize_t usable, count;
  char indices[1];
};
struct Entry {
  PyObject *key, *value;
};
const Entry *entriesOf(const Keys *k) {
  return reinterpret_cast<const Entry *>(k->indices + (size_t(1) << k->log2IndexBytes));
}

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
/// Whether what is read of an object made here is what was stored in it.
bool layoutIsKnown() {
  const char *code = "class C: pass\nc = C()\nc.dlc_a = 'first'\nc.dlc_b = 'second'\n";
  Obj globals(PyDict_New());
  if (!globals || PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins()) < 0)
    return false;
  Obj done(PyRun_String(code, Py_file_input, globals.get(), globals.get()));
  Obj a(PyUnicode_InternFromString("dlc_a")), b(PyUnicode_InternFromString("dlc_b"));
  PyObject *c = PyDict_GetItemString(globals.get(), "c");
  if (!done || !a || !b || !c || !PyType_HasFeature(Py_TYPE(c), Py_TPFLAGS_MANAGED_DICT)) {
    PyErr_Clear();
    return false;
  }
  layoutKnown = 1; // for the next line
  Instance i = instanceOf(c);
  layoutKnown = -1;
  if (i.dict || !i.values || !i.keys || inlineCount(i.keys) != 2 || inlineIndex(i.keys, a.get(), -1) != 0 ||
      inlineIndex(i.keys, b.get(), -1) != 1)
    return false;
  return PyUnicode_Check(i.values[1]) && PyUnicode_CompareWithASCIIString(i.values[1], "second") == 0;
}
#endif

} // namespace

Py_ssize_t inlineCount(const void *keys) { return static_cast<const Keys *>(keys)->count; }

Py_ssize_t inlineIndex(const void *keys, PyObject *name, Py_ssize_t hint) {
  const Keys *k = static_cast<const Keys *>(keys);
  const Entry *e = entriesOf(k);
  if (hint >= 0 && hint < k->count && e[hint].key == name)
    return hint;
  for (Py_ssize_t i = 0; i < k->count; ++i)
    if (e[i].key == name)
      return i;
  for (Py_ssize_t i = 0; i < k->count; ++i)
    if (PyUnicode_Compare(e[i].key, name) == 0)
      return i;
  return -1;
}

Instance slowInstanceOf(PyObject *o) {
  PyTypeObject *type = Py_TYPE(o);
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
  if (layoutKnown == 0) {
    layoutKnown = layoutIsKnown() ? 1 : -1;
    return instanceOf(o);
  }
#endif
  Instance i;
  if (type->tp_dictoffset > 0) {
    i.dict = *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(o) + type->tp_dictoffset);
  } else if (PyObject **slot = _PyObject_GetDictPtr(o)) {
    i.dict = *slot;
  }
  return i;
}

} // namespace dlc::py::compat
