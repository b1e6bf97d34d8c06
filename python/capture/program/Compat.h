// What differs between versions of CPython, for the replay tier: dictionary and type versions, instance attributes
// without making dictionaries. Needs the GIL.
#pragma once
#include "python/binding/Binding.h"

namespace dlc::py::compat {

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

/// A number that no other state of any dictionary has, or 0 where this Python has no such thing. From 3.13 on, stores
/// to an object's inline values bypass it.
inline uint64_t dictVersion(PyObject *dict) {
#if PY_VERSION_HEX < 0x030D0000
  return reinterpret_cast<PyDictObject *>(dict)->ma_version_tag;
#else
  (void)dict;
  return 0;
#endif
}

/// A number that changes with the type's attributes and those of its bases; 0: not known at the moment.
inline uint64_t typeVersion(PyTypeObject *type) {
#if PY_VERSION_HEX < 0x030E0000
  return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
#else
  return type->tp_version_tag;
#endif
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/// What the type finds for `name` through its MRO, not bound and borrowed; null if nothing.
inline PyObject *typeLookup(PyTypeObject *type, PyObject *name) { return _PyType_Lookup(type, name); }

/// Where an instance keeps its attributes: a dictionary, or (3.11) values beside the keys of its type.
struct Instance {
  PyObject *dict = nullptr;
  PyObject **values = nullptr;
  const void *keys = nullptr; ///< of `values`: shared with the type's other instances, only ever added to
};
Instance slowInstanceOf(PyObject *o);
/// 1: the layout of 3.11's instances has been tested and found as expected.
inline int layoutKnown = 0;
inline Instance instanceOf(PyObject *o) {
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
  PyTypeObject *type = Py_TYPE(o);
  if (layoutKnown == 1 && PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT)) {
    Instance i;
    i.values = reinterpret_cast<PyObject ***>(o)[-4];
    i.dict = reinterpret_cast<PyObject **>(o)[-3];
    i.keys = i.values ? reinterpret_cast<PyHeapTypeObject *>(type)->ht_cached_keys : nullptr;
    return i;
  }
#endif
  return slowInstanceOf(o);
}
/// Position of `name` in `keys`, or -1. `hint`: where it was last time.
Py_ssize_t inlineIndex(const void *keys, PyObject *name, Py_ssize_t hint);
Py_ssize_t inlineCount(const void *keys);

/// Keeps the garbage collector, hence finalizers, from running.
class NoCollection {
public:
  NoCollection() : was_(PyGC_Disable()) {}
  ~NoCollection() {
    if (was_)
      PyGC_Enable();
  }
  NoCollection(const NoCollection &) = delete;

private:
  int was_;
};

} // namespace dlc::py::compat
