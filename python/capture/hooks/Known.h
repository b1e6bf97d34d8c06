// The table of C functions that a session understands: what each reads, changes and calls. Made of
// dlc._capture.known; a function that is not in it ends the session.
#pragma once
#include "python/capture/hooks/Hooks.h"

namespace dlc::py {

/// One call of a C function. `self`: the object of a method; null for functions.
struct CCall {
  PyObject *f;
  PyObject *self;
  Given args; ///< without self
  bool bound; ///< f has self in it
  /// The plain call with other arguments in place of these.
  Obj plain(Given changed) const;
  Obj plain() const { return plain(args); }
  std::string name() const { return nameOfCallable(f); }
};

using Handler = Obj (*)(Session &, const CCall &);
/// What the table says of a C function or type; null if it is not in it.
Handler knownHandler(PyObject *f);
/// A handler by the name that the table uses for it; null if there is none.
Handler handlerNamed(const char *name);
Handler numberHandler(const char *name);    // Numeric.cpp
Handler containerHandler(const char *name); // Containers.cpp
Handler objectHandler(const char *name);    // Objects.cpp
Handler libraryHandler(const char *name);   // Library.cpp

/// Ends the session: `name` is not known to be replayable.
void notKnown(Session &s, const std::string &name);
/// All of the argument is read, down to scalars; false (and failed) if something else or a tensor is in it.
bool readPure(Session &s, PyObject *o);
/// The object must be the very same in other calls.
void guardIdentity(Session &s, PyObject *o);
/// An array or scalar of NumPy that the call made of constants.
bool isNewNumpy(Session &s, PyObject *o);
/// The C type that a class's instances are made by.
PyTypeObject *baseInC(PyTypeObject *type);
/// What C may read of an object when it computes with it: containers one level deep. Others from outside end the
/// session.
void readForC(Session &s, PyObject *o);
/// An argument of an op: tensors, numbers, dtypes and lists of them.
void readOperand(Session &s, PyObject *o);
/// Runs a handler's kind on any call: arguments read as a whole, result new.
Obj callPure(Session &s, const CCall &c);
/// Calls what `name` is for objects of C base types: super().__setitem__(...).
Obj callSlotWrapper(Session &s, PyObject *f, Given args);
/// A callable for C that calls back. How its results are used decides what it gives.
enum class Results { AsTheyAre, Compared, Tested };
Obj observedCallable(PyObject *f, Results results);
/// The unbound method of that name of the C base type, for effects.
PyObject *methodOf(PyObject *o, const char *name);

} // namespace dlc::py
