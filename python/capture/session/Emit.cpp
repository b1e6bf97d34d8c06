// The end of a session: effects and results as instructions, and the last guards.
#include "python/capture/session/SessionState.h"
#include <cstring>
#include <structmember.h>

namespace dlc::py {

/// Emits the making of objects of the call into `out`. Known objects are their registers; a fresh object is made once.
class Emitter {
public:
  Emitter(Session &session, Session::State &s, std::vector<Instr> &out, std::unordered_map<PyObject *, Reg> &made)
      : session_(session), s_(s), out_(out), made_(made) {}

  Reg value(PyObject *o);
  Reg push(Instr i) {
    i.dst = s_.path.objs++;
    i.loc = loc_;
    out_.push_back(std::move(i));
    return out_.back().dst;
  }
  void effect(Instr i, const std::vector<Obj> &values);

private:
  Reg constant(PyObject *o);
  Reg sequence(PyObject *o, PyTypeObject *type);
  Reg dict(PyObject *o);
  Reg tensor(PyObject *o);
  Reg instance(PyObject *o);
  Reg function(PyObject *o);
  Reg cell(PyObject *o);
  Reg make(PyObject *o);
  std::vector<Reg> values(PyObject *const *items, Py_ssize_t n) {
    std::vector<Reg> regs;
    for (Py_ssize_t k = 0; k < n; ++k)
      regs.push_back(value(items[k]));
    return regs;
  }
  std::vector<Reg> dictRegs(PyObject *o);

  Session &session_;
  Session::State &s_;
  std::vector<Instr> &out_;
  std::unordered_map<PyObject *, Reg> &made_;
  std::unordered_set<PyObject *> open_; // being made: cycles
  uint32_t loc_ = markLoc();
};

Reg Emitter::constant(PyObject *o) {
  Instr i;
  i.op = Do::Const;
  i.object = Obj::borrow(o);
  return push(std::move(i));
}

Reg Emitter::value(PyObject *o) {
  if (session_.failed())
    return kNoReg;
  if (Reg known = session_.regOf(o); known != kNoReg)
    return known;
  if (auto it = made_.find(o); it != made_.end())
    return it->second;
  Instr i;
  Dim d;
  if (Py_TYPE(o) == symbolicIntType && dimOf(o, d)) {
    auto data = std::make_shared<DimValue>();
    data->dim = d;
    i.op = Do::MakeInt;
    i.data = data;
    return push(std::move(i));
  }
  if (NumberNode *n = numberNodeOf(o)) {
    i.op = Do::MakeNumber;
    i.a = n->num;
    return push(std::move(i));
  }
  if (Session::isScalar(o) || PyType_Check(o) || PyModule_Check(o) || PyCode_Check(o) || isDType(o) ||
      Py_TYPE(o) == deviceType)
    return constant(o);
  if (!open_.insert(o).second) {
    session_.fail("an object that contains itself leaves the function");
    return kNoReg;
  }
  Reg r = make(o);
  open_.erase(o);
  made_[o] = r;
  s_.keepMade.push_back(Obj::borrow(o));
  return r;
}

namespace {
bool isDeque(PyObject *o) { return std::strcmp(Py_TYPE(o)->tp_name, "collections.deque") == 0; }
} // namespace

Reg Emitter::make(PyObject *o) {
  PyTypeObject *type = Py_TYPE(o);
  if (isTensor(o))
    return tensor(o);
  if (type == &PyList_Type || type == &PySet_Type || type == &PyFrozenSet_Type || PyTuple_Check(o))
    return sequence(o, type);
  if (isDeque(o))
    return sequence(o, type);
  if (type == &PyDict_Type || type == &PyODict_Type)
    return dict(o);
  if (PyFunction_Check(o))
    return function(o);
  if (PyCell_Check(o))
    return cell(o);
  Instr i;
  if (PyMethod_Check(o)) {
    i.op = Do::MakeMethod;
    i.a = value(PyMethod_GET_FUNCTION(o));
    i.b = value(PyMethod_GET_SELF(o));
    return push(std::move(i));
  }
  if (PySlice_Check(o)) {
    auto *slice = reinterpret_cast<PySliceObject *>(o);
    PyObject *parts[] = {slice->start, slice->stop, slice->step};
    i.op = Do::MakeSlice;
    i.regs = values(parts, 3);
    return push(std::move(i));
  }
  if (PyRange_Check(o) && !session_.containsSymbolic(o))
    return constant(o); // immutable
  if (PyCFunction_Check(o) && (!PyCFunction_GET_SELF(o) || PyModule_Check(PyCFunction_GET_SELF(o))))
    return constant(o);
  return instance(o);
}

Reg Emitter::sequence(PyObject *o, PyTypeObject *type) {
  Instr i;
  i.op = Do::MakeSequence;
  i.object = Obj::borrow(reinterpret_cast<PyObject *>(type));
  if (PyTuple_Check(o) && type != &PyTuple_Type && type->tp_dictoffset != 0) {
    PyObject **d = _PyObject_GetDictPtr(o);
    if (d && *d && PyDict_GET_SIZE(*d)) {
      session_.fail(str("a ", type->tp_name, " with attributes of its own leaves the function"));
      return kNoReg;
    }
  }
  if (isDeque(o)) {
    Obj limit = Obj::check(PyObject_GetAttrString(o, "maxlen"));
    i.imm = limit.get() == Py_None ? 0 : PyLong_AsLongLong(limit.get());
    Obj items = Obj::check(PySequence_List(o));
    i.regs = values(PySequence_Fast_ITEMS(items.get()), PyList_GET_SIZE(items.get()));
    if ((i.imm == 0 && limit.get() != Py_None) || session_.containsSymbolic(items.get()))
      session_.fail("a deque of no length or with numbers that vary leaves the function");
  } else if (PyAnySet_Check(o)) {
    Obj items = Obj::check(PySequence_Tuple(o));
    i.regs = values(&PyTuple_GET_ITEM(items.get(), 0), PyTuple_GET_SIZE(items.get()));
  } else {
    i.regs = values(PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o));
  }
  return push(std::move(i));
}

std::vector<Reg> Emitter::dictRegs(PyObject *o) {
  std::vector<Reg> regs;
  Obj items = Obj::check(PyODict_Check(o) ? PyObject_CallMethod(o, "items", nullptr) : PyDict_Items(o));
  Obj list = Obj::check(PySequence_List(items.get()));
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list.get()); ++k)
    for (int part = 0; part < 2; ++part)
      regs.push_back(value(PyTuple_GET_ITEM(PyList_GET_ITEM(list.get(), k), part)));
  return regs;
}

Reg Emitter::dict(PyObject *o) {
  Instr i;
  i.op = Do::MakeDict;
  i.object = Obj::borrow(reinterpret_cast<PyObject *>(Py_TYPE(o)));
  i.regs = dictRegs(o);
  return push(std::move(i));
}

Reg Emitter::tensor(PyObject *o) {
  const dlc::Tensor &t = tensorOf(o);
  PyObject **attributes = _PyObject_GetDictPtr(o);
  if (attributes && *attributes && PyDict_GET_SIZE(*attributes)) {
    session_.fail("a new tensor with attributes of its own leaves the function");
    return kNoReg;
  }
  s_.leaving.push_back({t, kNoReg, out_.size(), &out_});
  Instr i;
  i.op = Do::MakeTensor;
  i.object = Obj::borrow(reinterpret_cast<PyObject *>(Py_TYPE(o)));
  i.imm = isLeaf(t) && requiresGrad(t);
  Reg r = push(std::move(i));
  s_.leaving.back().object = r;
  session_.rememberMeta(t);
  return r;
}

/// Instances of Python classes whose state is their instance dictionary.
Reg Emitter::instance(PyObject *o) {
  PyTypeObject *type = Py_TYPE(o);
  PyObject **dictionary = _PyObject_GetDictPtr(o);
  static PyObject *const newName = PyUnicode_InternFromString("__new__");
  bool plain =
      (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_new == PyBaseObject_Type.tp_new && type->tp_itemsize == 0;
  (void)newName;
  // C state besides the dictionary and the list of weak references (slots, bases with fields) can't be made anew.
  Py_ssize_t extra = type->tp_basicsize - PyBaseObject_Type.tp_basicsize;
  extra -= (type->tp_dictoffset > 0 ? 1 : 0) * static_cast<Py_ssize_t>(sizeof(PyObject *));
  extra -= (type->tp_weaklistoffset > 0 ? 1 : 0) * static_cast<Py_ssize_t>(sizeof(PyObject *));
  if (!plain || extra > 0) {
    session_.fail(str("a new object of type ", type->tp_name, " leaves the function"));
    return kNoReg;
  }
  Instr i;
  i.op = Do::MakeObject;
  i.object = Obj::borrow(reinterpret_cast<PyObject *>(type));
  Obj state = Obj::borrow(dictionary ? *dictionary : nullptr);
  Obj names = Obj::check(PyTuple_New(state ? PyDict_GET_SIZE(state.get()) : 0));
  PyObject *key, *item;
  Py_ssize_t k = 0;
  if (state)
    for (Py_ssize_t at = 0; PyDict_Next(state.get(), &at, &key, &item);) {
      PyTuple_SET_ITEM(names.get(), k++, Py_NewRef(key));
      i.regs.push_back(value(item));
    }
  i.key = names;
  return push(std::move(i));
}

Reg Emitter::cell(PyObject *o) {
  if (Reg r = session_.cellReg(o); r != kNoReg)
    return r;
  Instr i;
  i.op = Do::MakeCell;
  if (PyObject *content = PyCell_GET(o))
    i.a = value(content);
  return push(std::move(i));
}

Reg Emitter::function(PyObject *o) {
  auto *f = reinterpret_cast<PyFunctionObject *>(o);
  Instr i;
  i.op = Do::MakeFunction;
  i.object = Obj::borrow(f->func_code);
  if (f->func_dict && PyDict_GET_SIZE(f->func_dict)) {
    session_.fail("a new function with attributes leaves the function");
    return kNoReg;
  }
  i.regs.push_back(session_.constant(f->func_globals));
  i.regs.push_back(constant(f->func_name));
  i.regs.push_back(value(f->func_defaults ? f->func_defaults : Py_None));
  i.regs.push_back(value(f->func_kwdefaults ? f->func_kwdefaults : Py_None));
  if (f->func_closure) {
    Instr closure;
    closure.op = Do::MakeSequence;
    closure.object = Obj::borrow(reinterpret_cast<PyObject *>(&PyTuple_Type));
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(f->func_closure); ++k)
      closure.regs.push_back(value(PyTuple_GET_ITEM(f->func_closure, k)));
    i.regs.push_back(push(std::move(closure)));
  } else {
    i.regs.push_back(constant(Py_None));
  }
  i.extra = Obj::borrow(f->func_qualname);
  return push(std::move(i));
}

void Emitter::effect(Instr i, const std::vector<Obj> &given) {
  std::vector<Reg> regs;
  for (const Obj &v : given)
    regs.push_back(v ? value(v.get()) : kNoReg);
  if (!regs.empty())
    i.a = regs[0];
  if (regs.size() > 1)
    i.b = regs[1];
  if (regs.size() > 2)
    i.regs.assign(regs.begin() + 2, regs.end());
  out_.push_back(std::move(i));
}

// --- effects

namespace {
Instr effectOf(Do op, PyObject *key = nullptr) {
  Instr i;
  i.op = op;
  i.key = Obj::borrow(key);
  i.loc = markLoc();
  return i;
}
} // namespace

/// A gradient that is replaced before anybody outside can see it is not stored at all: it need not be computed into
/// memory of its own then. Its setter is dlc's, so leaving it out shows nowhere.
void Session::dropGrad(PyObject *tensor, PyObject *name) {
  auto isIt = [&](PyObject *object, PyObject *key) { return object == tensor && key == name; };
  auto e = s_->effects.rbegin();
  while (e != s_->effects.rend() && e->instr.op == Do::SetAttr && e->prepared.empty() &&
         !isIt(e->values[0].get(), e->instr.key.get()))
    ++e;
  if (e == s_->effects.rend() || e->instr.op != Do::SetAttr || !e->prepared.empty())
    return;
  s_->effects.erase(std::next(e).base());
  for (auto w = s_->writes.rbegin(); w != s_->writes.rend(); ++w)
    if (w->slot == Slot::Attr && isIt(w->object.get(), w->key.get())) {
      w->value = Obj();
      break;
    }
}

void Session::effectSetAttr(PyObject *o, PyObject *name, PyObject *value) {
  if (failed_ || !isKnown(o))
    return;
  if (isTensor(o) && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "grad") == 0)
    dropGrad(o, name);
  noteWrite(o, Slot::Attr, name, value);
  s_->effects.push_back({effectOf(Do::SetAttr, name), {Obj::borrow(o), Obj::borrow(value)}, {}});
}

void Session::effectSetItem(PyObject *container, PyObject *key, PyObject *value) {
  if (failed_ || !isKnown(container))
    return;
  noteWrite(container, Slot::Item, key, value);
  std::vector<Obj> values{Obj::borrow(container), Obj::borrow(key)};
  if (value)
    values.push_back(Obj::borrow(value));
  s_->effects.push_back({effectOf(Do::SetItem), std::move(values), {}});
}

void Session::effectSetCell(PyObject *cell, PyObject *value) {
  if (failed_ || cellReg(cell) == kNoReg)
    return;
  noteWrite(cell, Slot::Whole, nullptr, value);
  s_->effects.push_back({effectOf(Do::SetCell), {Obj::borrow(cell), Obj::borrow(value)}, {}});
}

void Session::effectSetGlobal(PyObject *dict, PyObject *name, PyObject *value) {
  if (failed_)
    return;
  constant(dict);
  noteWrite(dict, Slot::Item, name, value);
  s_->effects.push_back({effectOf(Do::SetGlobal, name), {Obj::borrow(dict), Obj::borrow(value)}, {}});
}

void Session::effectCall(PyObject *callable, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  if (failed_)
    return;
  std::vector<Obj> values{Obj::borrow(callable), Obj()};
  Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  for (Py_ssize_t k = 0; k < n; ++k) {
    values.push_back(Obj::borrow(args[k]));
    if (isSymbolic(args[k]) && nargs > 0)
      s_->symbolicStores.push_back({Obj::borrow(args[0]), Obj::borrow(args[k])});
  }
  constantCallable(callable);
  if (nargs > 0 && isKnown(args[0]))
    noteChanged(args[0]);
  s_->effects.push_back({effectOf(Do::Call, kwnames), std::move(values), {}});
}

namespace {
void collectStorages(PyObject *o, std::set<const Storage *> &out, int levels) {
  if (isTensor(o)) {
    out.insert(tensorOf(o).storageRef().get());
  } else if (levels > 0 && (PyList_Check(o) || PyTuple_Check(o))) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
      collectStorages(PySequence_Fast_GET_ITEM(o, k), out, levels - 1);
  } else if (levels > 0 && PyDict_Check(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      collectStorages(value, out, levels - 1);
  }
}
} // namespace

void Session::effectDeferred(PyObject *callable, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  if (failed_)
    return;
  constantCallable(callable);
  std::vector<Instr> prepared;
  std::unordered_map<PyObject *, Reg> copies; // as they are now, not as they will be at the end
  Emitter emit(*this, *s_, prepared, copies);
  std::vector<Obj> values{Obj::borrow(callable), Obj()};
  Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  for (Py_ssize_t k = 0; k < n; ++k) {
    values.push_back(Obj::borrow(args[k]));
    collectStorages(args[k], s_->shown, 8);
  }
  emit.effect(effectOf(Do::Call, kwnames), values);
  resolveLeaving();
  s_->effects.push_back({Instr(), {}, std::move(prepared)});
}

/// C functions may be kept alive by a program; anything else must be known.
void Session::constantCallable(PyObject *callable) {
  if (!isKnown(callable) && (PyCFunction_Check(callable) || PyType_Check(callable) ||
                             Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type))
    constant(callable);
}

/// Tensors emitted so far whose memory exists get their registers.
void Session::resolveLeaving() {
  for (Leaving &l : s_->leaving) {
    if (failed_ || l.done || !l.out)
      continue;
    l.done = true;
    (*l.out)[l.at].a = tensOf(l.tensor);
    GradMeta *meta = gradMetaOrNull(l.tensor);
    if (meta && (meta->base.defined() || !isLeaf(l.tensor)))
      s_->histories.emplace_back(l.tensor, (*l.out)[l.at].dst);
  }
  s_->leaving.clear();
}

// --- the end

namespace {
/// The object with plain numbers in place of symbolic ones: mutable containers in place, tuples anew.
Obj plainly(PyObject *o, std::unordered_set<PyObject *> &seen, bool objects = true) {
  if (isSymbolic(o))
    return plainNumber(o);
  if (!seen.insert(o).second)
    return Obj::borrow(o);
  if (PyList_CheckExact(o)) {
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(o); ++k)
      PyList_SetItem(o, k, plainly(PyList_GET_ITEM(o, k), seen, objects).release());
  } else if (PyTuple_Check(o)) {
    bool changed = false;
    Py_ssize_t n = PyTuple_GET_SIZE(o);
    std::vector<Obj> items;
    for (Py_ssize_t k = 0; k < n; ++k) {
      items.push_back(plainly(PyTuple_GET_ITEM(o, k), seen, objects));
      changed |= items.back().get() != PyTuple_GET_ITEM(o, k);
    }
    if (!changed)
      return Obj::borrow(o);
    Obj plain = Obj::check(PyTuple_New(n));
    for (Py_ssize_t k = 0; k < n; ++k)
      PyTuple_SET_ITEM(plain.get(), k, items[static_cast<size_t>(k)].release());
    if (PyTuple_CheckExact(o))
      return plain;
    Obj args = Obj::check(PyTuple_Pack(1, plain.get()));
    return Obj::check(PyTuple_Type.tp_new(Py_TYPE(o), args.get(), nullptr));
  } else if (PyDict_Check(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
      Obj plain = plainly(value, seen, objects);
      if (plain.get() != value && PyDict_SetItem(o, key, plain.get()) < 0)
        throw PythonError{};
    }
  } else if (PyExceptionInstance_Check(o)) {
    auto *e = reinterpret_cast<PyBaseExceptionObject *>(o);
    Obj args = plainly(e->args, seen, objects);
    Py_SETREF(e->args, args.release());
  } else if (PyFunction_Check(o) && PyFunction_GET_CLOSURE(o)) {
    PyObject *closure = PyFunction_GET_CLOSURE(o);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(closure); ++k) {
      PyObject *cell = PyTuple_GET_ITEM(closure, k), *content = PyCell_GET(cell);
      if (!content)
        continue;
      Obj plain = plainly(content, seen, objects);
      if (plain.get() != content)
        PyCell_Set(cell, plain.get());
    }
  } else if (PyObject **d = objects && PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE) && !isTensor(o)
                                ? _PyObject_GetDictPtr(o)
                                : nullptr;
             d && *d) {
    plainly(*d, seen);
  }
  return Obj::borrow(o);
}
} // namespace

Obj Session::beforeExit(PyObject *result) {
  if (!failed_ && modeWord() != s_->mode)
    fail("the gradient mode or the default dtype is another one when the call ends");
  if (!failed_) {
    Emitter emit(*this, *s_, s_->commit, s_->made);
    for (Effect &e : s_->effects) {
      if (e.prepared.empty())
        emit.effect(e.instr, e.values);
      else
        s_->commit.insert(s_->commit.end(), e.prepared.begin(), e.prepared.end());
    }
    s_->result = emit.value(result);
  }
  if (!s_->anySymbolic)
    return Obj::borrow(result);
  std::unordered_set<PyObject *> seen;
  for (Effect &e : s_->effects)
    for (const Obj &v : e.values)
      if (v)
        plainly(v.get(), seen);
  return plainly(result, seen);
}

void Session::settle(PyObject *value) {
  const Session *s = failedOne();
  if (!s || !s->s_->anySymbolic || !value)
    return;
  std::unordered_set<PyObject *> seen;
  plainly(value, seen, /*objects=*/false);
}

void Session::requireDistinct(PyObject *a, PyObject *b) {
  std::set<Reg> &regs = s_->distinct[Py_TYPE(a)];
  regs.insert({regOf(a), regOf(b)});
}

/// What was found to be different objects must be, and objects that the call changed must not be another one that it
/// read: in another call they could be the same. One guard a type: all objects of it that matter differ.
void Session::guardDistinct() {
  for (const Obj &changed : s_->changed)
    for (const Obj &other : s_->keep)
      if (other.get() != changed.get() && Py_TYPE(other.get()) == Py_TYPE(changed.get()) &&
          !PyModule_Check(other.get()) && !PyFunction_Check(other.get()) && isKnown(other.get()))
        requireDistinct(changed.get(), other.get());
  std::vector<std::vector<Reg>> groups;
  for (const auto &[type, regs] : s_->distinct)
    groups.emplace_back(regs.begin(), regs.end());
  std::sort(groups.begin(), groups.end()); // by registers, which every capture of the same way numbers alike
  for (std::vector<Reg> &regs : groups) {
    Instr i;
    i.op = regs.size() == 2 ? Do::NotSame : Do::Distinct;
    if (regs.size() == 2) {
      i.a = regs[0];
      i.b = regs[1];
    } else {
      i.regs = std::move(regs);
    }
    guard(std::move(i));
  }
}

Captured Session::finish() {
  Captured result;
  if (!failed_)
    resolveLeaving();
  if (!failed_)
    drainFacts();
  if (!failed_) {
    guardDistinct();
    checkAliases(); // views made at the end look for the memory of what the function knows
  }
  if (!failed_)
    attachTape();
  if (failed_) {
    result.why = why_;
    result.loc = failLoc_;
    return result;
  }
  for (auto &[generator, blocks] : s_->draws) {
    auto data = std::make_shared<RngEffect>();
    data->generator = generator;
    data->blocks = blocks;
    Instr i;
    i.op = Do::RngTake;
    i.data = data;
    s_->commit.push_back(std::move(i));
  }
  Instr ret;
  ret.op = Do::Return;
  ret.a = s_->result;
  s_->commit.push_back(std::move(ret));
  orderBody();
  s_->path.commit = std::move(s_->commit);
  result.ok = true;
  result.path = std::move(s_->path);
  return result;
}

/// Guards of the state at entry that were found late go before the last piece: it then is the last thing that can miss,
/// and may write inputs in place. Outputs that nobody uses are left out.
void Session::orderBody() {
  std::vector<Instr> &body = s_->path.body;
  size_t last = body.size();
  for (size_t k = 0; k < body.size(); ++k)
    if (body[k].op == Do::Segment)
      last = k;
  if (last == body.size())
    return;
  auto readsData = [](const Instr &i) {
    return i.op == Do::ReadBool || i.op == Do::ReadInt || i.op == Do::ReadNum || i.op == Do::SizeOf ||
           i.op == Do::Eager;
  };
  // A choice on data after the piece: what follows belongs to one of its ways.
  bool misses = std::any_of(body.begin() + static_cast<std::ptrdiff_t>(last), body.end(), readsData);
  auto at = body.begin() + static_cast<std::ptrdiff_t>(last);
  if (!misses)
    at = std::stable_partition(
        at, body.end(), [](const Instr &i) { return i.op != Do::View && i.op != Do::TensorOf && i.op != Do::Segment; });
  std::set<Reg> used;
  auto use = [&](const std::vector<Instr> &list) {
    for (const Instr &i : list) {
      if (i.op == Do::View || i.op == Do::ReadBool || i.op == Do::ReadInt || i.op == Do::ReadNum ||
          i.op == Do::SizeOf || i.op == Do::MakeTensor)
        used.insert(i.a);
      if (auto *s = dynamic_cast<const SegmentCall *>(i.data.get()))
        used.insert(s->inputs.begin(), s->inputs.end());
      if (auto *t = dynamic_cast<const TapeEffect *>(i.data.get())) {
        std::vector<Reg> objs, tens;
        t->reads(objs, tens);
        used.insert(tens.begin(), tens.end());
      }
      if (auto *e = dynamic_cast<const EagerCall *>(i.data.get()))
        for (const GVal &v : e->args.values())
          used.insert(v.id);
    }
  };
  use(body);
  use(s_->commit);
  for (auto it = body.begin(); it != body.end(); ++it)
    if (auto *s = dynamic_cast<const SegmentCall *>(it->data.get())) {
      auto *call = const_cast<SegmentCall *>(s); // made here, not shared yet
      call->last = it == at && !misses;
      for (SegmentCall::Out &o : call->outputs)
        if (o.writeBack < 0 && !used.count(o.tens))
          o.tens = kNoReg;
    }
}

} // namespace dlc::py
