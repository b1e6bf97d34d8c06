// Equality of instructions and of their data: what decides where two programs of a function part.
#include "python/capture/program/Program.h"
#include <cstring>

namespace dlc::py {

bool sameScalar(PyObject *a, PyObject *b) {
  if (a == b)
    return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b))
    return false;
  if (PyUnicode_CheckExact(a))
    return PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0;
  if (PyFloat_CheckExact(a)) {
    double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyLong_CheckExact(a) || PyBytes_CheckExact(a))
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1; // C code of these types: can't fail
  if (PyComplex_CheckExact(a)) {
    Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyTuple_CheckExact(a)) {
    bool same = PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b);
    for (Py_ssize_t i = 0; same && i < PyTuple_GET_SIZE(a); ++i)
      same = sameScalar(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
    return same;
  }
  return false;
}

namespace {

template <class T> bool sameDims(const T &a, const T &b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = a[i].same(b[i]);
  return same;
}

template <class T> const T *as(const Data &d) { return dynamic_cast<const T *>(&d); }

bool sameSource(const trace::NumberSource &a, const trace::NumberSource &b) {
  // `ref` names a number of one session; what it stands for is compared by register.
  return a.kind == b.kind && (a.kind != trace::NumberSource::Kind::Constant || a.value == b.value) &&
         a.generator == b.generator && a.blocks.same(b.blocks) && a.size.same(b.size) &&
         a.value.category() == b.value.category();
}

bool sameNumbers(const std::vector<NumberOperand> &a, const std::vector<NumberOperand> &b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = sameSource(a[i].source, b[i].source) && a[i].num == b[i].num && a[i].dim.same(b[i].dim);
  return same;
}

bool sameArg(const Arg<GVal> &a, const Arg<GVal> &b) {
  if (a.tag != b.tag)
    return false;
  switch (a.tag) {
  case ArgTag::None:
    return true;
  case ArgTag::Value:
  case ArgTag::ValueList: {
    bool same = a.values().size() == b.values().size();
    for (size_t i = 0; same && i < a.values().size(); ++i)
      same = a.values()[i].id == b.values()[i].id;
    return same;
  }
  case ArgTag::Num:
    return a.num == b.num || (a.num.ref() && b.num.ref()); // those are compared as operands
  case ArgTag::Dim:
    return a.dim.same(b.dim);
  case ArgTag::DimList:
    return sameDims(a.dimList(), b.dimList());
  case ArgTag::IntList:
    return equal(a.intList(), b.intList());
  case ArgTag::Str:
    return a.str() == b.str();
  case ArgTag::DType:
    return a.dtype == b.dtype;
  case ArgTag::Rng:
    return a.rng == b.rng;
  case ArgTag::Int:
  case ArgTag::Bool:
  case ArgTag::Float:
    return a.i == b.i;
  }
  return false;
}

} // namespace

bool sameInstr(const Instr &a, const Instr &b) {
  if (a.op != b.op || a.kind != b.kind || a.dst != b.dst || a.a != b.a || a.b != b.b || a.imm != b.imm)
    return false;
  if (!sameScalar(a.object.get(), b.object.get()) || !sameScalar(a.key.get(), b.key.get()) ||
      !sameScalar(a.extra.get(), b.extra.get()) || a.regs != b.regs)
    return false;
  return a.data == b.data || (a.data && b.data && a.data->equals(*b.data));
}

bool TensorGuard::equals(const Data &d) const {
  const TensorGuard *o = as<TensorGuard>(d);
  return o && type == o->type && dtype == o->dtype && requiresGrad == o->requiresGrad && leaf == o->leaf &&
         hooked == o->hooked && wrapped == o->wrapped && foreign == o->foreign && sizes == o->sizes &&
         strides == o->strides && contiguous == o->contiguous && offset == o->offset && bytes == o->bytes;
}

bool AliasGuard::equals(const Data &d) const {
  const AliasGuard *o = as<AliasGuard>(d);
  return o && tensors == o->tensors && group == o->group && offsets == o->offsets;
}

bool FactGuard::equals(const Data &d) const {
  const FactGuard *o = as<FactGuard>(d);
  return o && facts == o->facts;
}

bool DimValue::equals(const Data &d) const {
  const DimValue *o = as<DimValue>(d);
  return o && dim.same(o->dim);
}

bool ViewOf::equals(const Data &d) const {
  const ViewOf *o = as<ViewOf>(d);
  return o && dtype == o->dtype && offset.same(o->offset) && sameDims(sizes, o->sizes) && sameDims(strides, o->strides);
}

bool SegmentCall::equals(const Data &d) const {
  const SegmentCall *o = as<SegmentCall>(d);
  if (!o || code != o->code || inputs != o->inputs || wholeStorage != o->wholeStorage ||
      !sameDims(symbols, o->symbols) || !sameNumbers(numbers, o->numbers) || outputs.size() != o->outputs.size())
    return false;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].tens != o->outputs[i].tens || outputs[i].writeBack != o->outputs[i].writeBack ||
        outputs[i].versionBumps != o->outputs[i].versionBumps)
      return false;
  return true;
}

bool EagerCall::equals(const Data &d) const {
  const EagerCall *o = as<EagerCall>(d);
  if (!o || op != o->op || form != o->form || !sameNumbers(numbers, o->numbers) || outs != o->outs ||
      args.args().size() != o->args.args().size())
    return false;
  for (size_t i = 0; i < args.args().size(); ++i)
    if (!sameArg(args.args()[i], o->args.args()[i]))
      return false;
  return true;
}

bool RngEffect::equals(const Data &d) const {
  const RngEffect *o = as<RngEffect>(d);
  return o && generator == o->generator && blocks.same(o->blocks);
}

} // namespace dlc::py
