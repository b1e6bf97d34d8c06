// Numbers that a captured program may not look at: int and float subclasses that carry an expression. They exist only
// between hooks of a twin; whoever takes them for plain numbers sees their present value, and the hooks see to it that
// nobody does without a guard.
#pragma once
#include "python/binding/Internal.h"
#include <cstring>
#include <cstring>

namespace dlc::py {

/// A float (or an int made by float arithmetic) as a register of the replay program.
struct NumberNode {
  int32_t num;  ///< register of nums
  Number value; ///< in this call; its ref() names the node
  Dim dim = 0;  ///< of an int: its expression
  double plain() const {
    int64_t bits = value.rawBits(); // not toDouble(): that counts as looking at it
    double d;
    std::memcpy(&d, &bits, sizeof d);
    return d;
  }
};

extern PyTypeObject *symbolicIntType, *symbolicFloatType;

inline bool isSymbolic(PyObject *o) { return Py_TYPE(o) == symbolicIntType || Py_TYPE(o) == symbolicFloatType; }
/// Symbolic numbers belong to the session of their time: those of another one (left behind by a call that failed) are
/// plain numbers. Returns the epoch before.
uint64_t setNumberEpoch(uint64_t epoch);
bool isStale(PyObject *o);
/// A plain int for a constant, else a symbolic int.
Obj wrapDim(const Dim &d);
/// The expression of a plain or symbolic int; false if it is neither or does not fit 64 bits. bool is not an int here.
bool dimOf(PyObject *o, Dim &out);
/// A symbolic float of a node that lives as long as the session.
Obj wrapNumberNode(NumberNode *node);
NumberNode *numberNodeOf(PyObject *o); ///< null unless a symbolic float
/// A symbolic number as the operand of an op; plain where no session learns.
Number numberOf(PyObject *o);
Dim dimOperand(PyObject *o);
/// The plain int or float.
Obj plainNumber(PyObject *o);

void initNumbers(PyObject *module);

} // namespace dlc::py
