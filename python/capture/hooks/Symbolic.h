// Symbolic numbers in operators and as arguments of C code.
#pragma once
#include "python/capture/hooks/Hooks.h"

namespace dlc::py {

/// A copy with plain numbers, their values guarded; `o` itself if there is nothing symbolic. `inside`: also in fresh
/// builtin containers.
Obj concretizeDeep(Session &s, PyObject *o, bool inside);
/// Arithmetic that stays symbolic; null if it does not, and the plain operation on constants follows.
Obj symbolicBinary(Session &s, int op, PyObject *a, PyObject *b);
Obj symbolicUnary(Session &s, int op, PyObject *a);
/// a < b, ... (Py_LT ...) of numbers; the outcome is guarded.
bool compareNumbers(Session &s, int op, PyObject *a, PyObject *b);
bool isNumber(PyObject *o); ///< plain or symbolic int, float or bool
bool isDictView(PyObject *o);
/// float(o), abs(o) of a symbolic number.
Obj symbolicFloat(Session &s, PyObject *o);
Obj symbolicAbs(Session &s, PyObject *o);

} // namespace dlc::py
