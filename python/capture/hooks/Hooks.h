// What the hooks of a twin do, as C++ functions: each performs an operation exactly as CPython would and tells the
// session what was read or changed. They throw PythonError where the operation raises. All need a session that
// learns; once it has failed they go on plainly.
#pragma once
#include "python/capture/session/Session.h"

namespace dlc::py {

/// Arguments of a vectorcall: n positional ones, then a value for each of kwnames.
struct Given {
  PyObject *const *v;
  Py_ssize_t n;
  PyObject *kwnames = nullptr;
  Py_ssize_t numKeywords() const { return kwnames ? PyTuple_GET_SIZE(kwnames) : 0; }
  Py_ssize_t total() const { return n + numKeywords(); }
  Given rest(Py_ssize_t k) const { return {v + k, n - k, kwnames}; }
};
/// Arguments with one put before them, or changed ones: owns what it holds.
class ArgList {
public:
  explicit ArgList(Given g, PyObject *first = nullptr);
  Given given() const { return {raw_.data(), n_, kwnames_}; }
  void set(Py_ssize_t i, Obj value);

private:
  std::vector<Obj> held_;
  std::vector<PyObject *> raw_;
  Py_ssize_t n_;
  PyObject *kwnames_;
};

/// One level of a container that a hook walks. A container may hold itself: from some depth on the session ends.
class Level {
public:
  explicit Level(Session &s) : s_(s) {
    if (++s_.nesting > 100)
      s_.fail("containers nested very deeply, or in themselves, are read");
  }
  ~Level() { --s_.nesting; }
  Level(const Level &) = delete;
  bool tooDeep() const { return s_.nesting > 100; }

private:
  Session &s_;
};

/// An interned string that lives as long as the process.
#define DLC_NAME(text)                                                                                                 \
  ([]() -> PyObject * {                                                                                                \
    static PyObject *const name = PyUnicode_InternFromString(text);                                                    \
    return name;                                                                                                       \
  }())

// --- attributes (Attributes.cpp, Stores.cpp)
Obj attribute(Session &s, PyObject *o, PyObject *name);
/// null (and no error) instead of AttributeError.
Obj attributeOrNull(Session &s, PyObject *o, PyObject *name);
void setAttribute(Session &s, PyObject *o, PyObject *name, PyObject *value); ///< value null: delete
/// object.__setattr__: with descriptors, but not __setattr__ of the class.
void setPlainAttribute(Session &s, PyObject *o, PyObject *name, PyObject *value);
/// What the class of `o` (or its bases) defines, guarded; borrowed, null if nothing.
PyObject *lookUp(Session &s, PyTypeObject *type, PyObject *name);
/// The Python function that the class defines under `name`, known to the session; null if there is none.
Obj specialMethod(Session &s, PyObject *o, PyObject *name);
/// Calls o.name(args) by the class alone, as operators do. Python functions are entered.
Obj callSpecial(Session &s, const Obj &method, PyObject *o, Given args);
/// The object whose instance dictionary `dict` is; null for other dicts.
PyObject *ownerOf(Session &s, PyObject *dict);
bool isEnumMember(PyObject *o);
bool isIdentity(PyObject *o); ///< what id() gave (Objects.cpp)
bool isEnumClass(PyObject *type);

// --- items (Items.cpp)
Obj getItem(Session &s, PyObject *o, PyObject *key);
void setItem(Session &s, PyObject *o, PyObject *key, PyObject *value); ///< value null: delete
/// list.__getitem__(o, key) and the like: what the C base type does, whatever the class of `o` defines.
Obj getBaseItem(Session &s, PyObject *o, PyObject *key);
void setBaseItem(Session &s, PyObject *o, PyObject *key, PyObject *value);
/// A dict that may be somebody's instance dictionary: value or null.
Obj dictValue(Session &s, PyObject *dict, PyObject *key);
bool iteratesAsSequence(PyObject *o); ///< a list or tuple that iterates as those do
bool isListLike(PyObject *o);         ///< a list that indexes and iterates as lists do
bool isTupleLike(PyObject *o);
bool isDictLike(PyObject *o);
/// False (and failed) if hashing and comparing the key runs Python code or depends on addresses that vary.
bool checkKey(Session &s, PyObject *key);

// --- operators (Operators.cpp)
Obj binary(Session &s, int op, PyObject *a, PyObject *b);
Obj inPlace(Session &s, int op, PyObject *a, PyObject *b);
Obj unary(Session &s, int op, PyObject *a);
Obj compare(Session &s, int op, PyObject *a, PyObject *b); ///< op: index in COMPARE
bool truth(Session &s, PyObject *o);
/// The same without a session.
Obj plainBinary(int op, PyObject *a, PyObject *b, bool inPlace);
Obj plainUnary(int op, PyObject *a);
Obj plainCompare(int op, PyObject *a, PyObject *b);
enum BinaryOp { kAdd, kSub, kMult, kMatMult, kDiv, kFloorDiv, kMod, kPow, kLShift, kRShift, kBitOr, kBitXor, kBitAnd };
enum CompareOp { kEq, kNotEq, kLt, kLtE, kGt, kGtE, kIs, kIsNot, kIn, kNotIn };
/// A plain or symbolic number as one of the replay program, and its register of nums.
NumberNode *numberNode(Session &s, PyObject *o);
Reg numberReg(Session &s, PyObject *o);
/// Guards whether two objects are one.
bool sameObject(Session &s, PyObject *a, PyObject *b);

// --- texts (Texts.cpp)
/// One field of an f-string; conversion: 's', 'r', 'a' or -1.
Obj text(Session &s, PyObject *o, int conversion, PyObject *spec);
Obj plainText(PyObject *o, int conversion, PyObject *spec);

// --- iteration and with (Iteration.cpp)
Obj iterate(Session &s, PyObject *o);
/// The numbers of a range or slice from outside.
void readNumbers(Session &s, PyObject *o);
/// Something that C code may consume without reading what the session does not see: `o` itself after it was read,
/// a copy of its items, or an iterator that enters Python's __iter__ and __next__.
Obj consumable(Session &s, PyObject *o);
/// A tuple of n values (of all there are if they are too few or many); star: which one is a list, or -1.
Obj unpack(Session *s, PyObject *value, Py_ssize_t n, Py_ssize_t star);
Obj contextManager(Session &s, PyObject *manager);

// --- calls (Calls.cpp, Known.cpp, Handlers.cpp, Twin.cpp)
Obj callObject(Session &s, PyObject *f, Given args);
Obj callMethod(Session &s, PyObject *o, PyObject *name, Given args);
Obj callPlain(PyObject *f, Given args);
/// The same with plain numbers in place of symbolic ones.
Obj callConverted(PyObject *f, Given args);
/// Calls a type as type.__call__ does.
Obj callType(Session &s, PyTypeObject *type, Given args);
/// As type.__call__ itself, whatever the metaclass does with calls.
Obj callPlainType(Session &s, PyTypeObject *type, Given args);
/// Calls a Python function through its twin.
Obj enter(Session &s, PyObject *function, Given args);
/// The function's default values, globals and cells become known as far as the call needs them.
void readFunction(Session &s, PyObject *function, Given args);
/// object.__class__ etc. of dataclasses and namedtuples have no source: what they do is known. null: not one of them.
Obj callGenerated(Session &s, PyObject *function, Given args);
/// A read through a C getter of a known object; a fresh one's is returned as it is.
Obj readGetter(Session &s, PyObject *o, PyObject *name, PyObject *value);
/// Guards the order in which the type and its bases are searched.
void guardMro(Session &s, PyTypeObject *type);
std::string nameOfCallable(PyObject *f);

/// Python code run while in scope is not observed: only for what can't read state.
class Unobserved {
public:
  explicit Unobserved(Session &s) : s_(s) { ++s_.depth; }
  ~Unobserved() { --s_.depth; }
  Unobserved(const Unobserved &) = delete;

private:
  Session &s_;
};

/// The value of a tensor is read while in scope, and the session will be told.
class ReadsValue {
public:
  explicit ReadsValue(Session &s) : s_(s) { ++s_.reads; }
  ~ReadsValue() { --s_.reads; }
  ReadsValue(const ReadsValue &) = delete;

private:
  Session &s_;
};

inline Instr instr(Do op, Reg a = kNoReg, PyObject *key = nullptr, int64_t imm = 0) {
  Instr i;
  i.op = op;
  i.a = a;
  i.key = Obj::borrow(key);
  i.imm = imm;
  return i;
}
inline const char *textOf(PyObject *s) {
  const char *t = s && PyUnicode_Check(s) ? PyUnicode_AsUTF8(s) : nullptr;
  if (!t)
    PyErr_Clear();
  return t ? t : "?";
}
inline PyObject *asObject(PyTypeObject *t) { return reinterpret_cast<PyObject *>(t); }
inline PyTypeObject *asType(PyObject *o) { return reinterpret_cast<PyTypeObject *>(o); }

/// The `_dlc_call` hook as C++: calls `f` plainly, its code followed by the current session. As PyObject_Vectorcall,
/// with nargs without the offset flag.
PyObject *hookCall(PyObject *f, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
void initHooks(PyObject *module);
void initIteration();

} // namespace dlc::py
