// Values of a session: loads, guards and the containers of the state at entry.
#include "python/capture/session/SessionState.h"
#include <atomic>

namespace dlc::py {
namespace {

thread_local Session *active = nullptr;
constexpr Py_ssize_t kMaxItems = 1000;
constexpr size_t kMaxDepth = 100;

bool isExactContainer(PyObject *o) {
  return PyList_Check(o) || PyTuple_Check(o) || PyDict_Check(o) || PyAnySet_Check(o);
}

/// Objects that a session may keep alive and compare by identity.
bool isStatic(PyObject *o) {
  if (PyType_Check(o) || PyModule_Check(o) || PyCode_Check(o) || isDType(o) || Py_TYPE(o) == deviceType ||
      Py_TYPE(o) == generatorType) // of a generator the state is read at each call
    return true;
  if (PyCFunction_Check(o)) {
    PyObject *self = PyCFunction_GET_SELF(o);
    return !self || PyModule_Check(self) || PyType_Check(self);
  }
  PyTypeObject *t = Py_TYPE(o);
  return t == &PyMethodDescr_Type || t == &PyClassMethodDescr_Type || t == &PyGetSetDescr_Type ||
         t == &PyMemberDescr_Type || t == &PyWrapperDescr_Type || t == &PyProperty_Type || t == &PyStaticMethod_Type ||
         t == &PyClassMethod_Type;
}

template <class T> void putBytes(std::string &s, T v) { s.append(reinterpret_cast<const char *>(&v), sizeof v); }

} // namespace

std::string contentOf(const Instr &i) {
  std::string s;
  putBytes(s, i.op);
  putBytes(s, i.kind);
  putBytes(s, i.a);
  putBytes(s, i.b);
  putBytes(s, i.imm);
  putBytes(s, i.object.get());
  putBytes(s, i.key.get());
  putBytes(s, i.extra.get());
  putBytes(s, i.data.get());
  for (Reg r : i.regs)
    putBytes(s, r);
  return s;
}

Session::Session(PyObject *callee, Py_ssize_t nargs, PyObject *kwnames, const std::set<std::string> &varying)
    : s_(std::make_unique<State>()) {
  s_->callee = Obj::borrow(callee);
  s_->varying = varying;
  s_->path.nargs = nargs;
  s_->path.kwnames = Obj::borrow(kwnames);
  static std::atomic<uint64_t> sessions{0};
  s_->previousEpoch = setNumberEpoch(++sessions);
  s_->previous = active;
  active = this;
  Instr mode;
  mode.op = Do::Mode;
  mode.imm = s_->mode = modeWord();
  guard(mode);
  Instr load;
  load.op = Do::Callee;
  Reg reg = this->load(callee, load, "");
  know(callee, reg, "");
  if (PyFunction_Check(callee))
    identify(callee, reg, "");
  if (PyMethod_Check(callee)) {
    Instr part;
    part.a = reg;
    part.op = Do::MethodFunc;
    read(PyMethod_GET_FUNCTION(callee), part, "");
    part.op = Do::MethodSelf;
    read(PyMethod_GET_SELF(callee), part, "self");
  }
}

Session::~Session() {
  active = s_->previous;
  setNumberEpoch(s_->previousEpoch);
}

Session *Session::current() { return active && !active->failed_ && active->depth == 0 ? active : nullptr; }

const Session *Session::failedOne() { return active && active->failed_ ? active : nullptr; }

void Session::fail(const std::string &why) {
  if (failed_)
    return;
  failed_ = true;
  why_ = why;
  failLoc_ = locText(markLoc());
}

// --- registers

bool Session::isScalar(PyObject *o) {
  return o == Py_None || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || PyUnicode_CheckExact(o) ||
         PyBytes_CheckExact(o) || PyComplex_CheckExact(o) || o == Py_Ellipsis || o == Py_NotImplemented;
}

Reg Session::regOf(PyObject *o) const {
  auto it = s_->regs.find(o);
  return it == s_->regs.end() ? kNoReg : it->second;
}

std::string Session::sourceOf(PyObject *o) const {
  auto it = s_->names.find(o);
  return it == s_->names.end() ? "" : it->second;
}

size_t Session::timesRead(PyObject *o) const {
  return static_cast<size_t>(
      std::count_if(s_->seen.begin(), s_->seen.end(), [&](const auto &entry) { return entry.second.get() == o; }));
}

void Session::know(PyObject *o, Reg reg, std::string source) {
  if (s_->regs.emplace(o, reg).second) {
    s_->keep.push_back(Obj::borrow(o));
    s_->names[o] = std::move(source);
  }
}

void Session::guard(Instr i) {
  if (!s_->guards.insert(contentOf(i)).second)
    return;
  i.loc = markLoc();
  s_->path.body.push_back(std::move(i));
}

void Session::guardTypeAttr(PyTypeObject *type, PyObject *name) {
  Instr i;
  i.op = Do::TypeAttrIs;
  i.object = Obj::borrow(reinterpret_cast<PyObject *>(type));
  i.key = Obj::borrow(name);
  i.extra = Obj::borrow(_PyType_Lookup(type, name));
  guard(std::move(i));
}

Reg Session::load(PyObject *value, Instr i, std::string source) {
  std::string content = contentOf(i);
  auto it = s_->loads.find(content);
  if (it != s_->loads.end())
    return it->second;
  i.dst = s_->path.objs++;
  i.loc = markLoc();
  i.source = std::move(source);
  s_->loads.emplace(std::move(content), i.dst);
  s_->keep.push_back(Obj::borrow(value));
  s_->path.body.push_back(std::move(i));
  return s_->path.body.back().dst;
}

Reg Session::constant(PyObject *o) {
  if (Reg r = regOf(o); r != kNoReg)
    return r;
  Instr i;
  i.op = Do::Const;
  i.object = Obj::borrow(o);
  Reg r = load(o, std::move(i), "");
  if (!isScalar(o))
    know(o, r, "");
  return r;
}

namespace {
Instr on(Do op, Reg a, PyObject *object = nullptr) {
  Instr i;
  i.op = op;
  i.a = a;
  i.object = Obj::borrow(object);
  return i;
}
} // namespace

Obj Session::read(PyObject *value, Instr i, std::string source) {
  if (isStale(value))
    fail("a number that another call left behind is used");
  if (failed_ || isSymbolic(value))
    return Obj::borrow(value);
  Reg dst = load(value, std::move(i), source);
  if (auto it = s_->seen.find(dst); it != s_->seen.end())
    return it->second;
  Obj result = Obj::borrow(value);
  Dim constant;
  if (isScalar(value)) {
    bool varies = s_->varying.count(source) != 0;
    bool modest = dimOf(value, constant) && constant.value() < INT64_MAX / 4 && constant.value() > INT64_MIN / 4;
    if (varies && modest) {
      Instr sym = on(Do::SymInt, dst);
      sym.dst = s_->path.syms++;
      sym.source = source;
      sym.loc = markLoc();
      result = wrapDim(Dim::symbol(static_cast<uint32_t>(sym.dst), constant.value()));
      s_->anySymbolic = true;
      s_->path.body.push_back(std::move(sym));
    } else if (varies && PyFloat_CheckExact(value)) {
      Instr num = on(Do::NumFloat, dst);
      num.source = source;
      s_->anySymbolic = true;
      result = wrapNumberNode(newNumber(std::move(num), PyFloat_AS_DOUBLE(value)));
    } else {
      bool single = value == Py_None || PyBool_Check(value) || value == Py_Ellipsis || value == Py_NotImplemented;
      Instr g = on(single ? Do::Is : Do::Equals, dst, value);
      g.source = source;
      guard(std::move(g));
    }
    s_->seen[dst] = result;
    return result;
  }
  if (Reg known = regOf(value); known != kNoReg && known != dst) {
    Instr same = on(Do::Same, known);
    same.b = dst;
    guard(std::move(same));
    return result;
  }
  know(value, dst, source);
  identify(value, dst, source);
  return result;
}

/// What makes the object in `dst` act like `value` in another call.
void Session::identify(PyObject *value, Reg dst, const std::string &source) {
  if (isStatic(value)) {
    Instr g = on(Do::Is, dst, value);
    g.source = source;
    guard(std::move(g));
    if (PyModule_Check(value)) // whose class can be set
      guard(on(Do::IsType, dst, reinterpret_cast<PyObject *>(Py_TYPE(value))));
  } else if (PyFunction_Check(value)) {
    guard(on(Do::CodeIs, dst, PyFunction_GET_CODE(value)));
  } else if (isTensor(value)) {
    guard(on(Do::IsType, dst, reinterpret_cast<PyObject *>(Py_TYPE(value))));
    identifyTensor(value, dst, source);
  } else {
    guard(on(Do::IsType, dst, reinterpret_cast<PyObject *>(Py_TYPE(value))));
    if (PyMethod_Check(value)) {
      read(PyMethod_GET_FUNCTION(value), on(Do::MethodFunc, dst), source);
      read(PyMethod_GET_SELF(value), on(Do::MethodSelf, dst), source);
    }
  }
}

// --- containers

Obj Session::length(PyObject *o) {
  Py_ssize_t now = PyObject_Size(o);
  if (now < 0)
    throw PythonError{};
  Reg reg = regOf(o);
  if (failed_ || reg == kNoReg || !isExactContainer(o))
    return Obj::check(PyLong_FromSsize_t(now));
  auto changed = s_->entry.find(o);
  Py_ssize_t before = changed == s_->entry.end() ? now : PyObject_Size(changed->second.get());
  if (changed != s_->entry.end() && !PyList_Check(o)) { // a store adds an entry or not
    if (PyDict_Check(o)) {
      Instr g = on(Do::DictKeys, reg, Obj::check(PySequence_Tuple(changed->second.get())).get());
      g.source = str("keys of ", sourceOf(o));
      guard(std::move(g));
    } else {
      readEntry(o);
    }
    return Obj::check(PyLong_FromSsize_t(now));
  }
  std::string source = str("len(", sourceOf(o), ")");
  if (!s_->varying.count(source) || PyTuple_Check(o)) {
    Instr g = on(Do::Length, reg);
    g.imm = before;
    g.source = source;
    guard(std::move(g));
    return Obj::check(PyLong_FromSsize_t(now));
  }
  Dim &d = s_->lengths[o];
  if (d.isConst()) {
    Instr sym = on(Do::SymLength, reg);
    sym.dst = s_->path.syms++;
    sym.source = source;
    sym.loc = markLoc();
    d = Dim::symbol(static_cast<uint32_t>(sym.dst), before);
    s_->anySymbolic = true;
    s_->path.body.push_back(std::move(sym));
  }
  return wrapDim(d + Dim(static_cast<int64_t>(now - before)));
}

/// A symbolic number stored in a container whose items are looked at now: its value becomes a guard.
void Session::settleStores(PyObject *container) {
  for (auto &[where, number] : s_->symbolicStores)
    if (where.get() == container)
      concretize(number.get());
}

bool Session::readEntry(PyObject *o) {
  auto it = s_->entry.find(o);
  if (it == s_->entry.end())
    return false;
  settleStores(o);
  Obj before = it->second;
  Reg reg = regOf(o);
  std::string name = sourceOf(o);
  if (PyList_Check(o)) {
    Instr g = on(Do::Length, reg);
    g.imm = PyList_GET_SIZE(before.get());
    g.source = str("len(", name, ")");
    guard(std::move(g));
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(before.get()); ++k) {
      Instr item = on(Do::Item, reg);
      item.imm = k;
      concretize(read(PyList_GET_ITEM(before.get(), k), std::move(item), str(name, "[", k, "]")).get());
    }
  } else if (PyDict_Check(o)) {
    Obj keys = Obj::check(PySequence_Tuple(before.get()));
    Instr g = on(Do::DictKeys, reg, keys.get());
    g.source = str("keys of ", name);
    guard(std::move(g));
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(before.get(), &at, &key, &value);)
      concretize(readDictItem(o, key, value).get());
  } else {
    readSet(o, before.get());
  }
  return true;
}

void Session::readSet(PyObject *o, PyObject *content) {
  Obj items = Obj::check(PySequence_Tuple(content));
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(items.get()); ++k)
    if (!isScalar(PyTuple_GET_ITEM(items.get(), k)))
      return fail("the items of a set that are no numbers or texts decide what the program does");
  Instr g = on(Do::SetItems, regOf(o), items.get());
  g.source = str("items of ", sourceOf(o));
  guard(std::move(g));
}

Obj Session::item(PyObject *sequence, Py_ssize_t k) {
  PyObject *value = PyList_Check(sequence) ? PyList_GET_ITEM(sequence, k) : PyTuple_GET_ITEM(sequence, k);
  Reg reg = regOf(sequence);
  if (failed_ || reg == kNoReg || readEntry(sequence))
    return Obj::borrow(value);
  Instr i = on(Do::Item, reg);
  i.imm = k;
  return read(value, std::move(i), str(sourceOf(sequence), "[", k, "]"));
}

namespace {
/// Whether a key can be found again: by value, or as a known object by identity.
bool plainKey(PyObject *key) {
  if (Session::isScalar(key) || PyType_Check(key))
    return true;
  if (!PyTuple_CheckExact(key))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    if (!plainKey(PyTuple_GET_ITEM(key, i)))
      return false;
  return true;
}

std::string keyText(PyObject *key) {
  Obj text(PyObject_Repr(key));
  const char *s = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  return s ? s : "?";
}
} // namespace

Obj Session::readDictItem(PyObject *dict, PyObject *key, PyObject *value) {
  Instr i = on(Do::DictGet, regOf(dict));
  if (plainKey(key)) {
    i.key = Obj::borrow(key);
  } else {
    i.b = regOf(key);
    if (i.b == kNoReg || (Py_TYPE(key)->tp_hash != PyBaseObject_Type.tp_hash && !isTensor(key))) {
      fail(str("a dict is read with a key of type ", Py_TYPE(key)->tp_name));
      return Obj::borrow(value);
    }
  }
  return read(value, std::move(i), plainKey(key) ? str(sourceOf(dict), "[", keyText(key), "]") : "");
}

Obj Session::dictGet(PyObject *dict, PyObject *key) {
  Obj plain = plainNumber(key);
  if (isSymbolic(key))
    concretize(key);
  PyObject *value = PyDict_GetItemWithError(dict, plain.get());
  if (!value && PyErr_Occurred())
    throw PythonError{};
  Reg reg = regOf(dict);
  if (failed_ || reg == kNoReg)
    return Obj::borrow(value);
  if (wroteTo(dict, Slot::Item, plain.get())) { // a method may have taken it out since
    PyObject *stored = written(dict, Slot::Item, plain.get());
    return value && stored ? Obj::borrow(stored) : Obj::borrow(value);
  }
  if (auto it = s_->entry.find(dict); it != s_->entry.end()) {
    settleStores(dict);
    PyObject *before = PyDict_GetItemWithError(it->second.get(), plain.get());
    if (value != before && before)
      readDictItem(dict, plain.get(), before);
    else if (value != before)
      dictLacks(dict, plain.get());
    if (value != before)
      return Obj::borrow(value);
  }
  if (value)
    return readDictItem(dict, plain.get(), value);
  dictLacks(dict, plain.get());
  return Obj();
}

void Session::dictLacks(PyObject *dict, PyObject *key) {
  Instr i = on(Do::DictLacks, regOf(dict));
  if (plainKey(key))
    i.key = Obj::borrow(key);
  else if ((i.b = regOf(key)) == kNoReg)
    return; // a fresh object with hash by identity can't be a key yet
  i.source = str(sourceOf(dict), "[", keyText(key), "]");
  guard(std::move(i));
}

Obj Session::dictKeys(PyObject *dict) {
  if (!failed_ && isKnown(dict) && !readEntry(dict)) {
    Obj keys = Obj::check(PySequence_Tuple(dict));
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keys.get()); ++k)
      if (!plainKey(PyTuple_GET_ITEM(keys.get(), k)))
        return readObjectKeys(dict, keys);
    Instr g = on(Do::DictKeys, regOf(dict), keys.get());
    g.source = str("keys of ", sourceOf(dict));
    guard(std::move(g));
    return keys;
  }
  return Obj::check(PySequence_Tuple(dict));
}

/// Keys that are objects: each must be the known object it is now, at its place.
Obj Session::readObjectKeys(PyObject *dict, const Obj &keys) {
  Instr g = on(Do::Length, regOf(dict));
  g.imm = PyTuple_GET_SIZE(keys.get());
  guard(std::move(g));
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keys.get()); ++k) {
    Instr i = on(Do::DictKeyAt, regOf(dict));
    i.imm = k;
    read(PyTuple_GET_ITEM(keys.get(), k), std::move(i), str("key ", k, " of ", sourceOf(dict)));
  }
  return keys;
}

bool Session::readAll(PyObject *o) {
  if (failed_)
    return false;
  if (!isKnown(o))
    return true;
  if (PyObject_Size(o) > kMaxItems) {
    fail(str("a container of ", PyObject_Size(o), " items is read as a whole"));
    return false;
  }
  if (readEntry(o))
    return !failed_;
  if (PyList_Check(o) || PyTuple_Check(o)) {
    Obj n = length(o);
    concretize(n.get());
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
      concretize(item(o, k).get()); // who reads the container itself sees plain numbers
  } else if (PyDict_Check(o)) {
    Obj keys = dictKeys(o);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keys.get()); ++k) {
      PyObject *key = PyTuple_GET_ITEM(keys.get(), k);
      if (PyObject *value = PyDict_GetItemWithError(o, key))
        concretize(readDictItem(o, key, value).get());
    }
  } else if (PyAnySet_Check(o)) {
    readSet(o, o);
  } else {
    fail(str("an object of type ", Py_TYPE(o)->tp_name, " is read as a whole"));
  }
  return !failed_;
}

bool Session::readDeep(PyObject *o) {
  if (isScalar(o) || isSymbolic(o) || isStatic(o))
    return !failed_;
  if (isTensor(o) || PySlice_Check(o) || PyRange_Check(o))
    return !failed_;
  if (!isExactContainer(o)) {
    fail(str("an object of type ", Py_TYPE(o)->tp_name, " is given to a C function"));
    return false;
  }
  if (s_->reading.size() > kMaxDepth) {
    fail("a container nested very deeply is read as a whole");
    return false;
  }
  if (!s_->reading.insert(o).second) // contains itself
    return !failed_;
  bool ok = readAll(o);
  if (PyDict_Check(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; ok && PyDict_Next(o, &at, &key, &value);)
      ok = readDeep(key) && readDeep(value);
  } else if (!PyAnySet_Check(o)) {
    for (Py_ssize_t k = 0; ok && k < PySequence_Fast_GET_SIZE(o); ++k)
      ok = readDeep(PySequence_Fast_GET_ITEM(o, k));
  }
  s_->reading.erase(o);
  return ok;
}

// --- writes

namespace {
bool sameKey(PyObject *a, PyObject *b) {
  if (a == b)
    return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b) || !plainKey(a))
    return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}
} // namespace

bool Session::wroteTo(PyObject *o, Slot slot, PyObject *key) const {
  for (auto it = s_->writes.rbegin(); it != s_->writes.rend(); ++it)
    if (it->object.get() == o && it->slot == slot && sameKey(it->key.get(), key))
      return true;
  return false;
}

PyObject *Session::written(PyObject *o, Slot slot, PyObject *key) const {
  for (auto it = s_->writes.rbegin(); it != s_->writes.rend(); ++it)
    if (it->object.get() == o && it->slot == slot && sameKey(it->key.get(), key))
      return it->value.get();
  return nullptr;
}

void Session::beforeChange(PyObject *o) {
  if (failed_ || !isKnown(o) || s_->entry.count(o))
    return;
  Obj copy = Obj::check(PyList_Check(o)    ? PyList_GetSlice(o, 0, PyList_GET_SIZE(o))
                        : PyODict_Check(o) ? PyObject_CallOneArg(reinterpret_cast<PyObject *>(&PyODict_Type), o)
                        : PyDict_Check(o)  ? PyDict_Copy(o)
                                           : PySequence_List(o));
  s_->entry[o] = copy;
  noteChanged(o);
}

void Session::noteChanged(PyObject *o) {
  for (const Obj &c : s_->changed)
    if (c.get() == o)
      return;
  s_->changed.push_back(Obj::borrow(o));
}

void Session::noteWrite(PyObject *o, Slot slot, PyObject *key, PyObject *value) {
  s_->writes.push_back({Obj::borrow(o), Obj::borrow(key), Obj::borrow(value), slot});
  noteChanged(o);
  if (value && isSymbolic(value))
    s_->symbolicStores.push_back({Obj::borrow(o), Obj::borrow(value)});
}

// --- functions

void Session::knowCells(PyObject *function) {
  Reg reg = regOf(function);
  PyObject *closure = PyFunction_GET_CLOSURE(function);
  if (reg == kNoReg || !closure)
    return;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(closure); ++k) {
    PyObject *cell = PyTuple_GET_ITEM(closure, k);
    Instr i = on(Do::CellObject, reg);
    i.imm = k;
    Reg r = load(cell, std::move(i), "");
    if (auto known = s_->cells.find(cell); known == s_->cells.end()) {
      s_->cells[cell] = r;
      know(cell, r, "");
    } else if (known->second != r) { // functions that share a variable
      Instr same = on(Do::Same, known->second);
      same.b = r;
      guard(std::move(same));
    }
  }
}

Reg Session::cellReg(PyObject *cell) const {
  auto it = s_->cells.find(cell);
  return it == s_->cells.end() ? kNoReg : it->second;
}

} // namespace dlc::py
