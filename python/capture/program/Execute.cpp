// The guard program: loads and checks the state at entry. No Python code runs here, nothing is allocated, registers
// borrow what they hold. A load that finds nothing is a miss like a guard that fails.
#include "python/capture/program/Code.h"
#include "python/capture/program/Compat.h"
#include <cstddef>
#include <structmember.h>

namespace dlc::py {

namespace replay {
namespace {

/// Stands for "looked and found nothing" in Step::cached.
char nothing;
PyObject *const kNothing = reinterpret_cast<PyObject *>(&nothing);

/// Versions of keys shared by instances, apart from those of dictionaries.
constexpr uint64_t kSharedKeys = uint64_t(1) << 63;

__attribute__((noinline)) PyObject *findInDict(Step &s, PyObject *dict, uint64_t version) {
  PyObject *found = PyDict_GetItemWithError(dict, s.key);
  if (!found && PyErr_Occurred()) {
    PyErr_Clear();
    return nullptr;
  }
  s.version = version;
  s.cached = found ? found : kNothing;
  return s.cached;
}

/// The entry of a dict, kNothing if there is none, null for what is no dict. An unchanged dictionary has what it had.
inline PyObject *dictEntry(Step &s, PyObject *dict) {
  if (!PyDict_Check(dict))
    return nullptr;
  uint64_t version = compat::dictVersion(dict);
  return version && version == s.version ? s.cached : findInDict(s, dict, version);
}

/// Likewise where the key is an object in a register; `imm` remembers which one it was.
inline PyObject *keyedEntry(Step &s, PyObject *dict, PyObject *key) {
  if (!PyDict_Check(dict))
    return nullptr;
  uint64_t version = compat::dictVersion(dict);
  if (version && version == s.version && s.imm == reinterpret_cast<int64_t>(key))
    return s.cached;
  PyObject *found = PyDict_GetItemWithError(dict, key);
  if (!found && PyErr_Occurred()) {
    PyErr_Clear();
    return nullptr;
  }
  s.version = version;
  s.imm = reinterpret_cast<int64_t>(key);
  s.cached = found ? found : kNothing;
  return s.cached;
}

/// Likewise for the instance attributes of an object.
inline PyObject *instanceEntry(Step &s, PyObject *o) {
  compat::Instance i = compat::instanceOf(o);
  if (i.dict)
    return dictEntry(s, i.dict);
  if (!i.values)
    return kNothing;
  // `imm` remembers the position; `cached` how many keys there were when the name was not among them.
  uint64_t version = reinterpret_cast<uint64_t>(i.keys) | kSharedKeys;
  PyObject *count = reinterpret_cast<PyObject *>(compat::inlineCount(i.keys));
  if (s.version == version && s.cached == count)
    return kNothing;
  Py_ssize_t at = compat::inlineIndex(i.keys, s.key, s.imm);
  if (at < 0) {
    s.version = version;
    s.cached = count;
    return kNothing;
  }
  s.imm = at;
  return i.values[at] ? i.values[at] : kNothing;
}

/// What a type finds through its MRO; kNothing if nothing.
inline PyObject *typeEntry(Step &s, PyTypeObject *type) {
  uint64_t version = compat::typeVersion(type);
  if (version && version == s.version)
    return s.cached;
  PyObject *found = compat::typeLookup(type, s.key);
  s.version = compat::typeVersion(type); // the look-up may have assigned one
  s.cached = found ? found : kNothing;
  return s.cached;
}

/// Whether an iterator that `type` makes of `o` gives the items of a tuple, in that order.
bool iterates(PyTypeObject &type, PyObject *o, PyObject *wanted) {
  compat::NoCollection pause;
  Py_ssize_t n = PyTuple_GET_SIZE(wanted), k = 0;
  Obj iterator(type.tp_iter(o));
  for (; iterator && k < n; ++k) {
    Obj item(PyIter_Next(iterator.get()));
    if (!item || !sameScalar(item.get(), PyTuple_GET_ITEM(wanted, k)))
      break;
  }
  PyErr_Clear();
  return k == n;
}

bool sameItems(PyObject *set, PyObject *wanted) {
  return PyAnySet_Check(set) && PySet_GET_SIZE(set) == PyTuple_GET_SIZE(wanted) && iterates(PySet_Type, set, wanted);
}

/// Key number imm in the dict's own order; null if there are fewer.
PyObject *keyAt(Step &s, PyObject *dict) {
  if (!PyDict_Check(dict) || s.imm >= PyDict_GET_SIZE(dict))
    return nullptr;
  if (PyODict_Check(dict)) {
    compat::NoCollection pause;
    Obj iterator(PyODict_Type.tp_iter(dict)), key;
    for (int64_t k = 0; iterator && k <= s.imm; ++k)
      key = Obj(PyIter_Next(iterator.get()));
    PyErr_Clear();
    return key.get(); // the dict has it
  }
  uint64_t version = compat::dictVersion(dict);
  if (version && version == s.version)
    return s.cached;
  PyObject *key = nullptr, *value;
  Py_ssize_t pos = 0;
  for (int64_t k = 0; k <= s.imm; ++k)
    if (!PyDict_Next(dict, &pos, &key, &value))
      return nullptr;
  s.version = version;
  return s.cached = key;
}

bool sameKeys(Step &s, PyObject *dict, PyObject *wanted) {
  Py_ssize_t n = PyTuple_GET_SIZE(wanted), k = 0, pos = 0;
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != n)
    return false;
  if (PyODict_Check(dict)) // its order is its own, and changes without the dictionary's version
    return iterates(PyODict_Type, dict, wanted);
  uint64_t version = compat::dictVersion(dict);
  if (version && version == s.version)
    return true;
  for (PyObject *key, *value; PyDict_Next(dict, &pos, &key, &value); ++k)
    if (k >= n || !sameScalar(key, PyTuple_GET_ITEM(wanted, k)))
      return false;
  s.version = version;
  return true;
}

inline bool sameDims(const Sizes &have, const Sizes &want) {
  size_t n = want.size();
  if (have.size() != n)
    return false;
  int64_t differ = 0;
  for (size_t i = 0; i < n; ++i)
    differ |= have[i] ^ want[i];
  return differ == 0;
}

bool freeDimsHold(const dlc::Tensor &t, const TensorGuard &g) {
  const Sizes &sizes = t.impl()->sizes, &strides = t.impl()->strides;
  if (sizes.size() != g.sizes.size())
    return false;
  for (size_t i = 0; i < g.sizes.size(); ++i)
    if (g.sizes[i] >= 0 && g.sizes[i] != sizes[i])
      return false;
  if (g.contiguous) { // exactly: a stride of a dimension of size 1 can be seen too
    int64_t stride = 1;
    for (size_t i = g.sizes.size(); i-- > 0;) {
      if (strides[i] != stride)
        return false;
      stride *= std::max<int64_t>(sizes[i], 1);
    }
    return true;
  }
  for (size_t i = 0; i < g.strides.size(); ++i)
    if (g.strides[i] >= 0 && g.strides[i] != strides[i])
      return false;
  return true;
}

/// Whether the tensor's history is as wanted: it requires a gradient, and is a leaf.
inline bool historyHolds(const dlc::Tensor &t, const TensorGuard &g) {
  auto *meta = static_cast<const GradMeta *>(t.impl()->autograd.get());
  if (!meta || (!meta->node && !meta->base.defined())) {
    const GradNode *leaf = meta ? meta->accumulator.get() : nullptr;
    bool hooked = leaf && (!leaf->hooks.empty() || !leaf->retained.empty());
    return t.impl()->requiresGrad == g.requiresGrad && g.leaf && hooked == g.hooked;
  }
  return requiresGrad(t) == g.requiresGrad && isLeaf(t) == g.leaf && hasGradHooks(t) == g.hooked;
}

inline bool tensorHolds(const Step &s, PyObject *o, const TensorGuard &g) {
  if (s.object ? reinterpret_cast<PyObject *>(Py_TYPE(o)) != s.object : !isTensor(o))
    return false;
  const dlc::Tensor &t = tensorOf(o);
  const TensorImpl &impl = *t.impl();
  if (impl.dtype != g.dtype || impl.wrapped != g.wrapped || impl.storage->foreign() != g.foreign)
    return false;
  if (g.bytes >= 0 && (impl.offset != g.offset || static_cast<int64_t>(impl.storage->bytes()) != g.bytes))
    return false;
  if (s.flag ? !(sameDims(impl.sizes, g.sizes) && sameDims(impl.strides, g.strides)) : !freeDimsHold(t, g))
    return false;
  return historyHolds(t, g);
}

PyObject *functionField(PyObject *o, int64_t field) {
  if (!PyFunction_Check(o))
    return nullptr;
  auto *f = reinterpret_cast<PyFunctionObject *>(o);
  PyObject *v = nullptr;
  switch (static_cast<FunctionField>(field)) {
  case FunctionField::Code:
    v = f->func_code;
    break;
  case FunctionField::Globals:
    v = f->func_globals;
    break;
  case FunctionField::Defaults:
    v = f->func_defaults;
    break;
  case FunctionField::KwDefaults:
    v = f->func_kwdefaults;
    break;
  case FunctionField::Closure:
    v = f->func_closure;
    break;
  case FunctionField::Dict:
    v = f->func_dict;
    break;
  }
  return v ? v : Py_None;
}

PyObject *cellOf(PyObject *o, int64_t index) {
  if (!PyFunction_Check(o))
    return nullptr;
  PyObject *closure = reinterpret_cast<PyFunctionObject *>(o)->func_closure;
  return closure && index < PyTuple_GET_SIZE(closure) ? PyTuple_GET_ITEM(closure, index) : nullptr;
}

PyObject *itemOf(PyObject *o, int64_t index) {
  if (PyTuple_Check(o))
    return index < PyTuple_GET_SIZE(o) ? PyTuple_GET_ITEM(o, index) : nullptr;
  if (PyList_Check(o))
    return index < PyList_GET_SIZE(o) ? PyList_GET_ITEM(o, index) : nullptr;
  return nullptr;
}

/// The C getter that `type` has for the step's name, unless the type looks attributes up in a way of its own.
PyGetSetDef *getterOf(Step &s, PyTypeObject *type) {
  if (type->tp_getattro != PyObject_GenericGetAttr)
    return nullptr;
  PyObject *found = typeEntry(s, type);
  return found != kNothing && Py_TYPE(found) == &PyGetSetDescr_Type
             ? reinterpret_cast<PyGetSetDescrObject *>(found)->d_getset
             : nullptr;
}

bool getAttr(Step &s, Frame &f) {
  compat::NoCollection pause; // what is borrowed stays
  PyObject *o = f.objs[static_cast<size_t>(s.a)];
  PyGetSetDef *getter = getterOf(s, Py_TYPE(o));
  PyObject *v = getter && getter->get ? getter->get(o, getter->closure) : PyObject_GetAttr(o, s.key);
  if (!v) {
    PyErr_Clear();
    return false;
  }
  f.own(v, s.dst);
  return true;
}

bool symbolOf(const Step &s, PyObject *o, int64_t &out) {
  switch (s.op) {
  case Do::SymInt: {
    if (!PyLong_CheckExact(o))
      return false;
    int overflow;
    out = PyLong_AsLongLongAndOverflow(o, &overflow);
    // As a session does: far from the ends of 64 bits, so that sums and differences stay exact.
    return !overflow && out < INT64_MAX / 4 && out > INT64_MIN / 4;
  }
  case Do::SymLength:
    out = lengthOf(o);
    return out >= 0;
  default: {
    if (!isTensor(o))
      return false;
    const TensorImpl &t = *tensorOf(o).impl();
    const Sizes &from = s.op == Do::SymSize ? t.sizes : t.strides;
    if (static_cast<size_t>(s.imm) >= from.size())
      return false;
    out = from[static_cast<size_t>(s.imm)];
    return true;
  }
  }
}

bool factsHold(const FactGuard &g, const Frame &f) {
  try {
    for (const Fact &fact : g.facts)
      if (!holds(fact, f.symbolValues()))
        return false;
    return true;
  } catch (const Error &) { // an expression that left 64 bits, or divided by 0
    return false;
  }
}

bool numberOfDim(const Step &s, Frame &f) {
  try {
    f.nums[static_cast<size_t>(s.dst)] = Number(evaluate(static_cast<const DimValue *>(s.data)->dim, f.symbolValues()));
    return true;
  } catch (const Error &) {
    return false;
  }
}

} // namespace

int64_t lengthOf(PyObject *o) {
  if (PyList_Check(o) || PyTuple_Check(o))
    return Py_SIZE(o);
  if (PyDict_Check(o))
    return PyDict_GET_SIZE(o);
  if (PyAnySet_Check(o))
    return PySet_GET_SIZE(o);
  if (PyUnicode_Check(o))
    return PyUnicode_GET_LENGTH(o);
  if (PyBytes_Check(o))
    return Py_SIZE(o);
  PyTypeObject *base = Py_TYPE(o); // the length of the C type below, whatever a subclass says
  while (PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && base->tp_base)
    base = base->tp_base;
  lenfunc length = base->tp_as_sequence ? base->tp_as_sequence->sq_length : nullptr;
  if (!length)
    return -1;
  Py_ssize_t n = length(o);
  if (n < 0)
    PyErr_Clear();
  return n;
}

void Frame::keep(const Keep &k) {
  for (Reg r : k.objs) {
    PyObject *o = objs[static_cast<size_t>(r)];
    Py_INCREF(o);
    owned.push_back(o);
  }
  for (Reg r : k.tens)
    ownedTens.push_back(tensor(r));
}

void Frame::own(dlc::Tensor t, Reg r) {
  tens[static_cast<size_t>(r)] = t.impl();
  ownedTens.push_back(std::move(t));
}

namespace {

#define DLC_LOADED(value)                                                                                              \
  do {                                                                                                                 \
    PyObject *loaded = (value);                                                                                        \
    if (!loaded || loaded == kNothing)                                                                                 \
      return false;                                                                                                    \
    objs[s.dst] = loaded;                                                                                              \
    wrongType = s.object && reinterpret_cast<PyObject *>(Py_TYPE(loaded)) != s.object;                                 \
    if (wrongType)                                                                                                     \
      return false;                                                                                                    \
  } while (0);                                                                                                         \
  break

/// By a hash table of the pointers, so that a module of many parameters costs one pass.
bool allDistinct(const std::vector<Reg> &regs, PyObject *const *objs) {
  thread_local std::vector<PyObject *> table;
  size_t size = 8;
  while (size < 2 * regs.size())
    size *= 2;
  table.assign(size, nullptr);
  for (Reg r : regs) {
    size_t at = (reinterpret_cast<uint64_t>(objs[r]) >> 4) * 0x9e3779b97f4a7c15ull >> 32 & (size - 1);
    while (table[at] && table[at] != objs[r])
      at = (at + 1) & (size - 1);
    if (table[at])
      return false;
    table[at] = objs[r];
  }
  return true;
}

/// Steps that are neither common nor cheap.
bool executeRare(Step &s, Frame &f) {
  PyObject **objs = f.objs.data();
  switch (s.op) {
  case Do::GetAttr:
    return getAttr(s, f);
  case Do::DictKeys:
    return sameKeys(s, objs[s.a], s.object);
  case Do::SetItems:
    return sameItems(objs[s.a], s.object);
  case Do::Distinct:
    return allDistinct(static_cast<const Instr *>(s.data)->regs, objs);
  case Do::Aliases:
    return aliasesHold(*static_cast<AliasStep *>(const_cast<void *>(s.data)), f);
  case Do::Facts:
    return factsHold(*static_cast<const FactGuard *>(s.data), f);
  case Do::NumTest:
    return numberTest(s, f);
  case Do::NumIs:
    return numberIs(s, f);
  case Do::SymInt:
  case Do::SymLength:
  case Do::SymSize:
  case Do::SymStride:
    return symbolOf(s, objs[s.a], f.syms[static_cast<size_t>(s.dst)]);
  case Do::NumFloat:
    if (!PyFloat_CheckExact(objs[s.a]))
      return false;
    f.nums[static_cast<size_t>(s.dst)] = Number(PyFloat_AS_DOUBLE(objs[s.a]));
    return true;
  case Do::NumDim:
    return numberOfDim(s, f);
  case Do::NumOp:
    return numberOp(s, f);
  case Do::Segment:
    return runSegment(*static_cast<const SegmentStep *>(s.data), f);
  case Do::Eager:
    return runEagerStep(*static_cast<const EagerStep *>(s.data), f);
  case Do::View:
    return makeView(s, f);
  case Do::ReadBool:
  case Do::ReadInt:
  case Do::ReadNum:
  case Do::SizeOf:
    return readTensor(s, f);
  default:
    return false; // assemble() lets nothing else into a body
  }
}

bool executeStep(Step &s, Frame &f, bool &wrongType) {
  PyObject **objs = f.objs.data();
  switch (s.op) {
  case Do::Arg:
    DLC_LOADED(static_cast<size_t>(s.imm) < f.numArgs ? f.args[s.imm] : nullptr);
  case Do::Callee:
    DLC_LOADED(f.callee);
  case Do::Const:
    objs[s.dst] = s.object;
    break;
  case Do::DictGet:
    DLC_LOADED(s.b == kNoReg ? dictEntry(s, objs[s.a]) : keyedEntry(s, objs[s.a], objs[s.b]));
  case Do::DictKeyAt:
    DLC_LOADED(keyAt(s, objs[s.a]));
  case Do::AttrGet:
    DLC_LOADED(instanceEntry(s, objs[s.a]));
  case Do::TypeGet:
    DLC_LOADED(PyType_Check(objs[s.a]) ? typeEntry(s, reinterpret_cast<PyTypeObject *>(objs[s.a])) : nullptr);
  case Do::SlotGet:
    DLC_LOADED(*reinterpret_cast<PyObject **>(reinterpret_cast<char *>(objs[s.a]) + s.imm));
  case Do::Item:
    DLC_LOADED(itemOf(objs[s.a], s.imm));
  case Do::Cell: {
    PyObject *cell = cellOf(objs[s.a], s.imm);
    DLC_LOADED(cell ? PyCell_GET(cell) : nullptr);
  }
  case Do::CellObject:
    DLC_LOADED(cellOf(objs[s.a], s.imm));
  case Do::FunctionGet:
    DLC_LOADED(functionField(objs[s.a], s.imm));
  case Do::MethodSelf:
    DLC_LOADED(PyMethod_Check(objs[s.a]) ? PyMethod_GET_SELF(objs[s.a]) : nullptr);
  case Do::MethodFunc:
    DLC_LOADED(PyMethod_Check(objs[s.a]) ? PyMethod_GET_FUNCTION(objs[s.a]) : nullptr);
  case Do::TensorOf:
    if (!isTensor(objs[s.a]))
      return false;
    f.tens[static_cast<size_t>(s.dst)] = tensorOf(objs[s.a]).impl();
    break;
  case Do::IsType:
    return reinterpret_cast<PyObject *>(Py_TYPE(objs[s.a])) == s.object;
  case Do::Is:
    return objs[s.a] == s.object;
  case Do::Same:
    return objs[s.a] == objs[s.b];
  case Do::NotSame:
    return objs[s.a] != objs[s.b];
  case Do::Equals:
    return objs[s.a] == s.object || sameScalar(objs[s.a], s.object);
  case Do::Length:
    return lengthOf(objs[s.a]) == s.imm;
  case Do::DictLacks:
    return (s.b == kNoReg ? dictEntry(s, objs[s.a]) : keyedEntry(s, objs[s.a], objs[s.b])) == kNothing;
  case Do::AttrLacks:
    return instanceEntry(s, objs[s.a]) == kNothing;
  case Do::TypeAttrIs:
    return typeEntry(s, reinterpret_cast<PyTypeObject *>(s.object)) == (s.data ? s.data : kNothing);
  case Do::CodeIs:
    return PyFunction_Check(objs[s.a]) && reinterpret_cast<PyFunctionObject *>(objs[s.a])->func_code == s.object;
  case Do::Tensor:
    if (!tensorHolds(s, objs[s.a], *static_cast<const TensorGuard *>(s.data)))
      return false;
    if (s.dst != kNoReg)
      f.tens[static_cast<size_t>(s.dst)] = tensorOf(objs[s.a]).impl();
    break;
  case Do::Mode:
    return modeWord() == s.imm;
  default:
    return executeRare(s, f);
  }
  return true;
}

#undef DLC_LOADED

} // namespace

namespace {

/// The dimensions whose sizes are not as wanted, if nothing else is wrong with the tensor but what follows from them.
uint64_t wrongSizes(const Step &s, PyObject *o) {
  auto &g = *static_cast<const TensorGuard *>(s.data);
  if (s.object ? reinterpret_cast<PyObject *>(Py_TYPE(o)) != s.object : !isTensor(o))
    return 0;
  const dlc::Tensor &t = tensorOf(o);
  if (t.dtype() != g.dtype || t.isWrapped() != g.wrapped || t.storage().foreign() != g.foreign ||
      t.impl()->sizes.size() != g.sizes.size() || !historyHolds(t, g))
    return 0;
  uint64_t wrong = 0;
  for (size_t d = 0; d < g.sizes.size() && d < 64; ++d)
    if (g.sizes[d] >= 0 && g.sizes[d] != t.impl()->sizes[d])
      wrong |= uint64_t(1) << d;
  return wrong;
}

} // namespace

bool execute(Node &n, Frame &f) {
  bool wrongType = false;
  for (size_t k = 0; k < n.steps.size(); ++k)
    if (!executeStep(n.steps[k], f, wrongType)) {
      const Step &s = n.steps[k];
      f.failed.push_back({wrongType ? n.origins[k].type : n.origins[k].self,
                          s.op == Do::Tensor ? wrongSizes(s, f.objs[static_cast<size_t>(s.a)]) : 0});
      return false;
    }
  return true;
}

} // namespace replay
} // namespace dlc::py
