// Objects of Python modules that C++ code needs again and again.
#pragma once
#include "python/binding/Binding.h"

namespace dlc::py {

/// A module, or an attribute of one, imported at the first use. For static locals: it is constant-initialised, so that
/// no thread waits with the GIL for the initialisation of another that imports without it. Two threads may both import,
/// which does no harm. Needs the GIL.
class Imported {
public:
  constexpr explicit Imported(const char *module, const char *name = nullptr) : module_(module), name_(name) {}
  /// A borrowed reference. Throws PythonError if there is no such thing.
  PyObject *get() {
    if (!object_) {
      Obj found = Obj::check(PyImport_ImportModule(module_));
      if (name_)
        found = Obj::check(PyObject_GetAttrString(found.get(), name_));
      if (!object_)
        object_ = found.release();
    }
    return object_;
  }

private:
  const char *module_, *name_;
  PyObject *object_ = nullptr;
};

} // namespace dlc::py
