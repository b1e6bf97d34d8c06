// Numbers of a session: those that stand for something, what is decided by them, and those that come from data.
#include "python/capture/session/SessionState.h"

namespace dlc::py {

void Session::numberRead(const void *ref) {
  if (!failed_ && isSessionRef(ref))
    pinNumber(s_->numbers[sessionRefId(ref)]);
}

// --- numbers

NumberNode *Session::newNumber(Instr i, Number value) {
  i.dst = s_->path.nums++;
  i.loc = markLoc();
  const void *ref = sessionRef(s_->numbers.size());
  Dim dim = i.op == Do::NumDim ? static_cast<const DimValue &>(*i.data).dim : Dim(0);
  s_->numbers.push_back({i.dst, Number::symbolic(value, ref), dim});
  s_->path.body.push_back(std::move(i));
  return &s_->numbers.back();
}

/// The program depends on the number's value from here on.
void Session::pinNumber(const NumberNode &n) {
  if (!n.value.isFloat()) {
    n.dim.concretize();
    return;
  }
  Instr i;
  i.op = Do::NumIs;
  i.a = n.num;
  i.object = Obj::check(PyFloat_FromDouble(n.plain()));
  std::string key = str("num ", n.num);
  if (!s_->guards.insert(key).second)
    return;
  i.loc = markLoc();
  s_->path.body.push_back(std::move(i));
}

Obj Session::concretize(PyObject *o) {
  Dim d;
  if (Py_TYPE(o) == symbolicIntType && dimOf(o, d)) {
    d.concretize();
  } else if (NumberNode *n = numberNodeOf(o)) {
    pinNumber(*n);
  }
  return plainNumber(o);
}

namespace {
/// Containers may hold themselves: each is looked into once.
bool holdsSymbolic(PyObject *o, std::set<PyObject *> &seen) {
  if (isSymbolic(o))
    return true;
  bool container = PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o);
  if (container && !seen.insert(o).second)
    return false;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
      if (holdsSymbolic(PySequence_Fast_GET_ITEM(o, k), seen))
        return true;
  } else if (PyDict_Check(o)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
      if (holdsSymbolic(key, seen) || holdsSymbolic(value, seen))
        return true;
  } else if (PySlice_Check(o)) {
    auto *slice = reinterpret_cast<PySliceObject *>(o);
    return isSymbolic(slice->start) || isSymbolic(slice->stop) || isSymbolic(slice->step);
  }
  return false;
}
} // namespace

bool Session::containsSymbolic(PyObject *o) const {
  std::set<PyObject *> seen;
  return isSymbolic(o) || (s_->anySymbolic && holdsSymbolic(o, seen));
}

void Session::addFacts(std::vector<Fact> facts) {
  auto data = std::make_shared<FactGuard>();
  for (const Fact &f : facts)
    if (s_->factsSeen.insert({static_cast<int>(f.kind), f.expr}).second)
      data->facts.push_back(f);
  if (data->facts.empty())
    return;
  Instr i;
  i.op = Do::Facts;
  i.data = data;
  i.loc = markLoc();
  s_->path.body.push_back(std::move(i));
}

void Session::drainFacts() {
  if (!failed_)
    addFacts(s_->facts.take());
}

// --- data

Obj Session::readBool(const dlc::Tensor &t, PyObject *plain) {
  if (failed_)
    return Obj::borrow(plain);
  drainFacts();
  Reg reg = tensOf(t);
  if (failed_)
    return Obj::borrow(plain);
  Instr i;
  i.op = Do::ReadBool;
  i.a = reg;
  i.dst = s_->path.syms++;
  i.loc = markLoc();
  s_->path.body.push_back(i);
  Dim outcome = Dim::symbol(static_cast<uint32_t>(i.dst), plain == Py_True);
  (void)(outcome == Dim(0)); // the fact is the choice
  drainFacts();
  return Obj::borrow(plain);
}

Obj Session::readNumber(const dlc::Tensor &t, PyObject *plain) {
  if (failed_)
    return Obj::borrow(plain);
  if (PyBool_Check(plain))
    return readBool(t, plain);
  drainFacts();
  Reg reg = tensOf(t);
  Dim value;
  if (failed_)
    return Obj::borrow(plain);
  Instr i;
  i.a = reg;
  s_->anySymbolic = true;
  if (PyFloat_CheckExact(plain)) {
    i.op = Do::ReadNum;
    return wrapNumberNode(newNumber(std::move(i), PyFloat_AS_DOUBLE(plain)));
  }
  if (!dimOf(plain, value)) {
    fail("a number of data does not fit in 64 bits");
    return Obj::borrow(plain);
  }
  i.op = Do::ReadInt;
  i.dst = s_->path.syms++;
  i.loc = markLoc();
  s_->path.body.push_back(i);
  return wrapDim(Dim::symbol(static_cast<uint32_t>(i.dst), value.value()));
}

} // namespace dlc::py
