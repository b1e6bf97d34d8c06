// The end of a program: results and fresh objects first (a failure there changes nothing), then the effects in program
// order. An effect that raises ends the call with its error, as in Python. What effects drop is let go afterwards.
#include "python/capture/program/Code.h"
#include "python/capture/program/Compat.h"

namespace dlc::py::replay {
namespace {

class Committer {
public:
  explicit Committer(Frame &f) : f_(f) {}
  /// Null-free result: false means that a Python error is set.
  bool make(const Step &s, const Instr &i);
  bool effect(const Step &s, const Instr &i);

private:
  PyObject *obj(Reg r) const { return r == kNoReg ? nullptr : f_.objs[static_cast<size_t>(r)]; }
  PyObject *made(const Step &s, const Instr &i);
  PyObject *sequence(PyObject *type, const std::vector<Reg> &regs);
  PyObject *dict(PyObject *type, const std::vector<Reg> &regs);
  PyObject *object(const Instr &i);
  PyObject *function(const Instr &i);
  PyObject *format(const Step &s);
  bool fill(const Step &s, const Instr &i);
  bool call(const Step &s, const Instr &i);
  bool setAttr(const Step &s);
  bool setItem(const Step &s, const Instr &i);
  bool setGrad(const Step &s);
  /// Keeps what an effect is about to drop until all effects are done.
  void later(PyObject *borrowed) {
    Py_XINCREF(borrowed);
    if (borrowed)
      f_.owned.push_back(borrowed);
  }
  Frame &f_;
};

PyObject *Committer::sequence(PyObject *type, const std::vector<Reg> &regs) {
  Py_ssize_t n = static_cast<Py_ssize_t>(regs.size());
  bool list = type == reinterpret_cast<PyObject *>(&PyList_Type);
  Obj items = Obj::check(list ? PyList_New(n) : PyTuple_New(n));
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject *item = Py_NewRef(obj(regs[static_cast<size_t>(k)]));
    if (list)
      PyList_SET_ITEM(items.get(), k, item);
    else
      PyTuple_SET_ITEM(items.get(), k, item);
  }
  auto *t = reinterpret_cast<PyTypeObject *>(type);
  if (list || t == &PyTuple_Type)
    return items.release();
  if (t == &PySet_Type)
    return PySet_New(items.get());
  if (t == &PyFrozenSet_Type)
    return PyFrozenSet_New(items.get());
  // A struct sequence makes itself; a tuple subclass (namedtuple) is made as tuple.__new__ does.
  static PyObject *const fields = PyUnicode_InternFromString("n_sequence_fields");
  if (!PyType_IsSubtype(t, &PyTuple_Type) || compat::typeLookup(t, fields))
    return PyObject_CallOneArg(type, items.get());
  Obj args = Obj::check(PyTuple_Pack(1, items.get()));
  return PyTuple_Type.tp_new(t, args.get(), nullptr);
}

bool put(PyObject *dict, PyObject *key, PyObject *value) {
  return (PyODict_CheckExact(dict) ? PyODict_SetItem(dict, key, value) : PyDict_SetItem(dict, key, value)) == 0;
}

PyObject *Committer::dict(PyObject *type, const std::vector<Reg> &regs) {
  bool plain = type == nullptr || type == reinterpret_cast<PyObject *>(&PyDict_Type);
  Obj d = Obj::check(plain ? PyDict_New() : PyObject_CallNoArgs(type));
  for (size_t k = 0; k + 1 < regs.size(); k += 2)
    if (!put(d.get(), obj(regs[k]), obj(regs[k + 1])))
      return nullptr;
  return d.release();
}

bool setAll(PyObject *o, PyObject *names, const std::vector<PyObject *> &values) {
  Obj dict;
  for (size_t k = 0; k < values.size(); ++k) {
    PyObject *name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(k));
    bool text = PyUnicode_CheckExact(name);
    PyObject *onClass = text ? compat::typeLookup(Py_TYPE(o), name) : nullptr;
    if (text && (!onClass || !Py_TYPE(onClass)->tp_descr_set)) { // needs no dictionary where objects can do without
      if (PyObject_GenericSetAttr(o, name, values[k]) < 0)
        return false;
      continue;
    }
    if (!dict)
      dict = Obj::check(PyObject_GenericGetDict(o, nullptr));
    if (PyDict_SetItem(dict.get(), name, values[k]) < 0)
      return false;
  }
  return true;
}

PyObject *Committer::object(const Instr &i) {
  Obj none = Obj::check(PyTuple_New(0));
  auto *type = reinterpret_cast<PyTypeObject *>(i.object.get());
  Obj o = Obj::check(type->tp_alloc && type->tp_new ? PyBaseObject_Type.tp_new(type, none.get(), nullptr) : nullptr);
  std::vector<PyObject *> values;
  for (Reg r : i.regs)
    values.push_back(obj(r));
  return setAll(o.get(), i.key.get(), values) ? o.release() : nullptr;
}

/// extra: the qualified name. regs: globals, name, defaults, kwdefaults, closure, dict; absent ones are kNoReg or None.
PyObject *Committer::function(const Instr &i) {
  auto at = [&](size_t k) {
    PyObject *o = k < i.regs.size() ? obj(i.regs[k]) : nullptr;
    return o == Py_None ? nullptr : o;
  };
  Obj made = Obj::check(PyFunction_NewWithQualName(i.object.get(), at(0), i.extra.get()));
  auto *f = reinterpret_cast<PyFunctionObject *>(made.get());
  if (at(1)) {
    Obj old(f->func_name);
    f->func_name = Py_NewRef(at(1));
  }
  if ((at(2) && PyFunction_SetDefaults(made.get(), at(2)) < 0) ||
      (at(3) && PyFunction_SetKwDefaults(made.get(), at(3)) < 0) ||
      (at(4) && PyFunction_SetClosure(made.get(), at(4)) < 0))
    return nullptr;
  if (at(5)) {
    Obj old(f->func_dict);
    f->func_dict = Py_NewRef(at(5));
  }
  return made.release();
}

PyObject *Committer::format(const Step &s) {
  Obj value = Obj::borrow(obj(s.a));
  if (s.imm == 's')
    value = Obj::check(PyObject_Str(value.get()));
  else if (s.imm == 'r')
    value = Obj::check(PyObject_Repr(value.get()));
  else if (s.imm == 'a')
    value = Obj::check(PyObject_ASCII(value.get()));
  return PyObject_Format(value.get(), s.key);
}

PyObject *Committer::made(const Step &s, const Instr &i) {
  switch (s.op) {
  case Do::Arg:
    return Py_NewRef(f_.args[s.imm]);
  case Do::Callee:
    return Py_NewRef(f_.callee);
  case Do::Const:
    return Py_NewRef(s.object);
  case Do::MakeTensor: {
    dlc::Tensor t = f_.tensor(s.a);
    if (t.impl()->pyObject) // the register is a tensor that Python has: the result is another object on its memory
      t = dlc::Tensor::viewOf(t.storageRef(), t.sizes(), t.strides(), t.offset(), t.dtype());
    if (s.imm)
      setRequiresGrad(t, true);
    return wrapAs(s.object ? reinterpret_cast<PyTypeObject *>(s.object) : tensorType, std::move(t));
  }
  case Do::MakeInt:
    return PyLong_FromLongLong(evaluate(static_cast<const DimValue *>(s.data)->dim, f_.symbolValues()));
  case Do::MakeNumber:
    return wrap(f_.nums[static_cast<size_t>(s.a)]);
  case Do::MakeSequence: {
    Obj made(sequence(s.object, i.regs));
    if (!made || i.imm == 0)
      return made.release();
    return PyObject_CallFunction(s.object, "OL", made.get(), static_cast<long long>(i.imm));
  }
  case Do::MakeDict:
    return dict(s.object, i.regs);
  case Do::MakeObject:
    return object(i);
  case Do::MakeFunction:
    return function(i);
  case Do::MakeCell:
    return PyCell_New(obj(s.a));
  case Do::MakeMethod:
    return PyMethod_New(obj(s.a), obj(s.b));
  case Do::MakeSlice: {
    auto at = [&](size_t k) { return k < i.regs.size() ? obj(i.regs[k]) : nullptr; };
    return PySlice_New(at(0), at(1), at(2));
  }
  case Do::MakeText: {
    Obj parts(sequence(reinterpret_cast<PyObject *>(&PyTuple_Type), i.regs));
    Obj empty = Obj::check(PyUnicode_FromStringAndSize("", 0));
    return PyUnicode_Join(empty.get(), parts.get());
  }
  case Do::Format:
    return format(s);
  default:
    PyErr_SetString(PyExc_SystemError, "not an instruction of a commit");
    return nullptr;
  }
}

bool Committer::fill(const Step &s, const Instr &i) {
  PyObject *to = obj(s.a);
  if (PyList_Check(to)) {
    for (Reg r : i.regs)
      if (PyList_Append(to, obj(r)) < 0)
        return false;
  } else if (PyDict_Check(to)) {
    for (size_t k = 0; k + 1 < i.regs.size(); k += 2)
      if (!put(to, obj(i.regs[k]), obj(i.regs[k + 1])))
        return false;
  } else if (PySet_Check(to)) {
    for (Reg r : i.regs)
      if (PySet_Add(to, obj(r)) < 0)
        return false;
  } else {
    std::vector<PyObject *> values;
    for (Reg r : i.regs)
      values.push_back(obj(r));
    return setAll(to, i.key.get(), values);
  }
  return true;
}

bool Committer::make(const Step &s, const Instr &i) {
  if (s.op == Do::Fill)
    return fill(s, i);
  PyObject *o = made(s, i);
  if (!o)
    return false;
  f_.own(o, s.dst);
  return true;
}

bool Committer::call(const Step &s, const Instr &i) {
  SmallVec<PyObject *, 8> args;
  for (Reg r : i.regs)
    args.push_back(obj(r));
  size_t named = s.key ? static_cast<size_t>(PyTuple_GET_SIZE(s.key)) : 0;
  PyObject *o = PyObject_Vectorcall(obj(s.a), args.data(), args.size() - named, s.key);
  if (!o)
    return false;
  if (s.dst != kNoReg)
    f_.own(o, s.dst);
  else
    f_.owned.push_back(o);
  return true;
}

bool Committer::setAttr(const Step &s) {
  PyObject *o = obj(s.a);
  if (PyObject *old = PyObject_GenericGetAttr(o, s.key))
    f_.owned.push_back(old);
  else
    PyErr_Clear();
  // Tensors and classes have ways of their own to store attributes, which are C too.
  setattrofunc set = isTensor(o)       ? tensorType->tp_setattro
                     : PyType_Check(o) ? PyType_Type.tp_setattro
                                       : PyObject_GenericSetAttr;
  return set(o, s.key, obj(s.b)) == 0;
}

bool Committer::setItem(const Step &s, const Instr &i) {
  PyObject *o = obj(s.a), *key = obj(s.b);
  if (PyDict_CheckExact(o)) {
    later(PyDict_GetItemWithError(o, key));
    if (PyErr_Occurred())
      return false;
  } else if (PyList_CheckExact(o) && PyLong_CheckExact(key)) {
    if (PyObject *old = PyObject_GetItem(o, key))
      f_.owned.push_back(old);
    else
      return false; // out of range: IndexError, as the store would give
  }
  return (i.regs.empty() ? PyObject_DelItem(o, key) : PyObject_SetItem(o, key, obj(i.regs[0]))) == 0;
}

bool Committer::setGrad(const Step &s) {
  dlc::Tensor &slot = gradMetaOf(tensorOf(obj(s.a))).grad;
  PyObject *to = obj(s.b);
  if (slot.defined())
    f_.ownedTens.push_back(slot);
  slot = to && to != Py_None ? tensorOf(to) : dlc::Tensor();
  return true;
}

bool Committer::effect(const Step &s, const Instr &i) {
  switch (s.op) {
  case Do::Call:
    return call(s, i);
  case Do::SetAttr:
    return setAttr(s);
  case Do::SetItem:
    return setItem(s, i);
  case Do::SetCell:
    later(PyCell_GET(obj(s.a)));
    return PyCell_Set(obj(s.a), obj(s.b)) == 0;
  case Do::SetGlobal:
    later(PyDict_GetItemWithError(obj(s.a), s.key));
    return (s.b == kNoReg ? PyDict_DelItem(obj(s.a), s.key) : PyDict_SetItem(obj(s.a), s.key, obj(s.b))) == 0;
  case Do::Grad:
    return setGrad(s);
  case Do::RngTake: {
    auto &r = *static_cast<const RngEffect *>(s.data);
    Generator &g = r.generator ? *r.generator : defaultGenerator();
    g.take(static_cast<uint64_t>(evaluate(r.blocks, f_.symbolValues())));
    return true;
  }
  case Do::Tape: {
    const Registers r{f_.objs.data(), Frame::handles(f_.tens.data()), f_.symbolValues(), f_.nums.data()};
    static_cast<const TapeEffect *>(static_cast<const Data *>(s.data))->apply(r);
    return true;
  }
  default:
    return make(s, i);
  }
}

bool guardedStep(bool (Committer::*step)(const Step &, const Instr &), Committer &c, const Step &s, const Instr &i) {
  try {
    return (c.*step)(s, i);
  } catch (...) {
    setPythonErrorFromCurrentException();
    return false;
  }
}

} // namespace

Commit commit(const Leaf &l, Frame &f, PyObject *&result) {
  f.keep(l.keep);
  if (!l.afterDirect && PyErr_CheckSignals() < 0)
    return Commit::Raised; // Ctrl-C before anything has changed: the caller rolls back
  Committer c(f);
  for (size_t k = 0; k < l.make.size(); ++k)
    if (!guardedStep(&Committer::make, c, l.make[k], *l.makeOrigins[k].self)) {
      if (PyErr_ExceptionMatches(PyExc_MemoryError))
        return Commit::Raised;
      PyErr_Clear(); // Python's own run raises what there is to raise
      f.failed.push_back({l.makeOrigins[k].self});
      return Commit::Miss;
    }
  if (f.dry) {
    f.finish(l);
    rollBack(f, 0);
    return Commit::Done;
  }
  f.undo.clear(); // from here on there is no way back
  for (auto [storage, count] : f.bumps)
    for (uint32_t k = 0; k < count; ++k)
      storage->bumpVersion();
  for (size_t k = 0; k < l.effects.size(); ++k)
    if (!guardedStep(&Committer::effect, c, l.effects[k], *l.effectOrigins[k].self))
      return Commit::Raised;
  result = Py_NewRef(f.objs[static_cast<size_t>(l.result)]);
  return Commit::Done;
}

} // namespace dlc::py::replay
