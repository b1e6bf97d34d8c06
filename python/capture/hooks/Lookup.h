// Looking names up in classes, shared by the hooks that read and store attributes.
#pragma once
#include "python/capture/hooks/Hooks.h"
#include <structmember.h>

namespace dlc::py {

/// A class whose attributes can be set.
bool isMutableType(PyTypeObject *type);
/// Whether this call has set the attribute on the class or a base of it.
bool classWrote(Session &s, PyTypeObject *type, PyObject *name);
/// The class whose own attribute `name` is what `type` finds; null if there is none.
PyTypeObject *holderOf(PyTypeObject *type, PyObject *name);
/// What was found for `name` in `type`, read through it.
Obj classEntry(Session &s, PyTypeObject *type, PyObject *name, PyObject *found);
/// What was found in `owner`, bound to `o` (null: to the class `type`).
Obj bindFound(Session &s, PyTypeObject *owner, PyObject *name, PyObject *found, PyObject *o, PyTypeObject *type);
/// object.__getattribute__; null and no error if there is nothing.
Obj genericOrNull(Session &s, PyObject *o, PyObject *name);
/// A special method that the class takes from C, like `__getattr__ = dict.__getitem__`, bound to `o`.
Obj boundInC(Session &s, PyObject *o, PyObject *found, const char *name);
/// The sizes of a tensor become constants.
void concretizeSizes(Session &s, PyObject *tensor);

} // namespace dlc::py
