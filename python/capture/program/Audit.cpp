// Previews of hits and their comparison with Python's run.
#include "python/capture/program/Audit.h"
#include "python/capture/program/Code.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

namespace dlc::py {

using namespace replay;

namespace {

/// A store that the program would make last to its place.
struct Store {
  Do op;
  Obj object, key, value; ///< value: null if deleted, or not known before the effects
  bool known = true;
};

dlc::Tensor copyOf(const dlc::Tensor &t) {
  dlc::Tensor c = dlc::Tensor::empty(t.sizes(), t.dtype());
  // Element by element over the strides: the storage may be written again before this is compared.
  Sizes at(t.sizes().size(), 0);
  size_t item = itemSize(t.dtype());
  const char *from = static_cast<const char *>(t.data());
  char *to = static_cast<char *>(c.data());
  for (int64_t n = t.numel(), k = 0; k < n; ++k) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d)
      offset += at[d] * t.strides()[d];
    std::memcpy(to + static_cast<size_t>(k) * item, from + offset * static_cast<int64_t>(item), item);
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < t.sizes()[d])
        break;
      at[d] = 0;
    }
  }
  return c;
}

double elementOf(const dlc::Tensor &t, int64_t k) {
  return dlc::Tensor::viewOf(t.storageRef(), Sizes(), Sizes(), t.offset() + k, t.dtype()).item().toDouble();
}

/// Equal up to rounding.
bool close(const dlc::Tensor &a, const dlc::Tensor &b) {
  size_t bytes = static_cast<size_t>(a.numel()) * itemSize(a.dtype());
  if (!bytes || std::memcmp(a.data(), b.data(), bytes) == 0)
    return true;
  if (!isFloat(a.dtype()))
    return false;
  double eps = itemSize(a.dtype()) == 8 ? 1e-9 : itemSize(a.dtype()) == 4 ? 1e-4 : 3e-2;
  for (int64_t k = 0; k < a.numel(); ++k) {
    double x = elementOf(a, k), y = elementOf(b, k);
    if (x != y && !(std::isnan(x) && std::isnan(y)) && !(std::fabs(x - y) <= eps * (1 + std::fabs(y))))
      return false;
  }
  return true;
}

} // namespace

struct Preview::State {
  CodeRef code;
  Frame frame;
  const Leaf *leaf = nullptr;
  Obj result;
  bool resultKnown = true;
  bool histories = false;                                    ///< results get theirs from an effect, which is not tried
  std::set<PyObject *> made;                                 ///< by the preview: compared by content
  std::map<TensorImpl *, dlc::Tensor> contents;              ///< of made tensors, before what was written is put back
  std::vector<std::pair<Ref<Storage>, Ref<Storage>>> writes; ///< a storage, and what it would hold
  std::vector<std::pair<Storage *, uint32_t>> versions;      ///< and its version
  std::map<Generator *, uint64_t> offsets;
  std::vector<Store> stores;
  std::string differences;

  ~State() {
    frame.ownedTens.clear();
    for (PyObject *o : frame.owned)
      Py_DECREF(o);
  }
  bool isFresh(Storage *s) const { return std::find(frame.fresh.begin(), frame.fresh.end(), s) != frame.fresh.end(); }
  void record();
  void recordStores();
  void differ(const std::string &where, const std::string &what) { differences += where + ": " + what + "\n"; }
  void compareState();
  void compareStore(const Store &s);
  void compareObject(const std::string &where, PyObject *want, PyObject *have, int depth = 0);
  void compareTensor(const std::string &where, PyObject *want, PyObject *have);
  void compareItems(const std::string &where, PyObject *want, PyObject *have, int depth);
};

void Preview::State::record() {
  for (const Step &s : leaf->make)
    if (s.dst != kNoReg && s.op >= Do::MakeTensor) {
      PyObject *o = frame.objs[static_cast<size_t>(s.dst)];
      made.insert(o);
      if (isTensor(o))
        contents[tensorOf(o).impl()] = copyOf(tensorOf(o));
    }
  for (const Undo &u : frame.undo) {
    bool seen = false;
    for (auto &w : writes)
      seen |= w.first == u.storage;
    if (seen || isFresh(u.storage.get()))
      continue;
    Ref<Storage> now = Storage::allocate(u.storage->bytes());
    if (now->bytes())
      std::memcpy(now->data(), u.storage->data(), now->bytes());
    writes.push_back({u.storage, std::move(now)});
  }
  std::map<Storage *, uint32_t> bumps;
  for (auto [storage, n] : frame.bumps)
    bumps[storage] += n;
  for (auto [storage, n] : bumps)
    if (!isFresh(storage))
      versions.push_back({storage, storage->version() + n});
  recordStores();
}

void Preview::State::recordStores() {
  std::set<Reg> late; // known only after a call
  auto obj = [&](Reg r) { return r == kNoReg ? Obj() : Obj::borrow(frame.objs[static_cast<size_t>(r)]); };
  for (size_t k = 0; k < leaf->effects.size(); ++k) {
    const Step &s = leaf->effects[k];
    const Instr &i = *leaf->effectOrigins[k].self;
    if (s.dst != kNoReg)
      late.insert(s.dst);
    histories |= s.op == Do::Tape;
    Store store{s.op, {}, {}, {}};
    Reg value = s.b;
    if (s.op == Do::RngTake) {
      auto &r = *static_cast<const RngEffect *>(s.data);
      Generator *g = r.generator ? r.generator.get() : &defaultGenerator();
      offsets.try_emplace(g, g->offset()).first->second +=
          static_cast<uint64_t>(evaluate(r.blocks, frame.symbolValues()));
      continue;
    }
    if (s.op == Do::Call) { // what a call changes isn't known here: earlier stores may be overwritten by it
      for (Reg r : i.regs)
        if (r != kNoReg && !late.count(r))
          for (Store &earlier : stores)
            earlier.known &= earlier.object.get() != frame.objs[static_cast<size_t>(r)];
      continue;
    }
    if (s.op == Do::SetItem) {
      if (late.count(s.b))
        continue;
      store.key = obj(s.b);
      value = i.regs.empty() ? kNoReg : i.regs[0];
    } else if (s.op == Do::SetAttr || s.op == Do::SetGlobal) {
      store.key = Obj::borrow(s.key);
    } else if (s.op != Do::SetCell) {
      continue;
    }
    if (late.count(s.a))
      continue;
    store.object = obj(s.a);
    store.known = !late.count(value);
    if (store.known)
      store.value = obj(value);
    for (Store &earlier : stores)
      if (earlier.op == store.op && earlier.object.get() == store.object.get() &&
          sameScalar(earlier.key.get(), store.key.get()))
        earlier.known = false; // overwritten
    stores.push_back(std::move(store));
  }
  resultKnown = !late.count(leaf->result);
  if (resultKnown)
    result = obj(leaf->result);
}

void Preview::State::compareTensor(const std::string &where, PyObject *want, PyObject *have) {
  const dlc::Tensor &a = tensorOf(want), &b = tensorOf(have);
  if (a.dtype() != b.dtype() || !(a.sizes() == b.sizes()) || (!histories && requiresGrad(a) != requiresGrad(b)))
    return differ(where, str(describe(a), requiresGrad(a) ? " with" : " without", " a gradient, Python has ",
                             describe(b), requiresGrad(b) ? " with" : " without"));
  if (!(a.strides() == b.strides()))
    differ(where, str("strides ", listStr(a.strides()), ", Python has ", listStr(b.strides())));
  auto it = contents.find(a.impl());
  if (it != contents.end() && !close(it->second, copyOf(b)))
    differ(where, "other values than Python's");
}

void Preview::State::compareItems(const std::string &where, PyObject *want, PyObject *have, int depth) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(want);
  if (n != PySequence_Fast_GET_SIZE(have))
    return differ(where, str(n, " items, Python has ", PySequence_Fast_GET_SIZE(have)));
  for (Py_ssize_t k = 0; k < n; ++k)
    compareObject(str(where, "[", k, "]"), PySequence_Fast_GET_ITEM(want, k), PySequence_Fast_GET_ITEM(have, k), depth);
}

void Preview::State::compareObject(const std::string &where, PyObject *want, PyObject *have, int depth) {
  if (want == have || sameScalar(want, have) || depth > 50)
    return;
  if (Py_TYPE(want) != Py_TYPE(have))
    return differ(where, str("a ", Py_TYPE(want)->tp_name, ", Python has a ", Py_TYPE(have)->tp_name));
  if (PyFloat_CheckExact(want)) {
    double x = PyFloat_AS_DOUBLE(want), y = PyFloat_AS_DOUBLE(have);
    if (!(std::fabs(x - y) <= 1e-4 * (1 + std::fabs(y))))
      differ(where, str(x, ", Python has ", y));
    return;
  }
  if (!made.count(want))
    return differ(where, str("another ", Py_TYPE(want)->tp_name, " than Python's"));
  if (isTensor(want))
    return compareTensor(where, want, have);
  if (PyTuple_Check(want) || PyList_Check(want))
    return compareItems(where, want, have, depth + 1);
  if (PyDict_Check(want)) {
    Obj wantItems = Obj::check(PyDict_Items(want)), haveItems = Obj::check(PyDict_Items(have));
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(wantItems.get()); ++k)
      made.insert(PyList_GET_ITEM(wantItems.get(), k));
    return compareItems(where, wantItems.get(), haveItems.get(), depth + 1);
  }
  if (PyAnySet_Check(want) || PySlice_Check(want)) {
    int same = PyObject_RichCompareBool(want, have, Py_EQ);
    if (same < 0)
      PyErr_Clear();
    if (same != 1)
      differ(where, str("another ", Py_TYPE(want)->tp_name, " than Python's"));
    return;
  }
  if (PyFunction_Check(want)) {
    if (PyFunction_GET_CODE(want) != PyFunction_GET_CODE(have))
      differ(where, "another function than Python's");
    return;
  }
  Obj wantDict(PyObject_GenericGetDict(want, nullptr)), haveDict(PyObject_GenericGetDict(have, nullptr));
  PyErr_Clear();
  if (wantDict && haveDict) {
    made.insert(wantDict.get());
    compareObject(where + ".__dict__", wantDict.get(), haveDict.get(), depth + 1);
    made.erase(wantDict.get());
  }
}

void Preview::State::compareStore(const Store &s) {
  Obj have;
  std::string where = "a store";
  const char *key = s.key && PyUnicode_Check(s.key.get()) ? PyUnicode_AsUTF8(s.key.get()) : nullptr;
  if (s.op == Do::SetAttr) {
    where = str("attribute ", key ? key : "?", " of a ", Py_TYPE(s.object.get())->tp_name);
    have = Obj(PyObject_GenericGetAttr(s.object.get(), s.key.get()));
  } else if (s.op == Do::SetCell) {
    where = "a closure's variable";
    have = Obj::borrow(PyCell_GET(s.object.get()));
  } else {
    where = str("item ", key ? key : "", " of a ", Py_TYPE(s.object.get())->tp_name);
    have = Obj(PyObject_GetItem(s.object.get(), s.key.get()));
  }
  PyErr_Clear();
  if (!s.value || !have) {
    if (static_cast<bool>(s.value) != static_cast<bool>(have))
      differ(where, s.value ? "set, Python has none" : "deleted, Python has one");
    return;
  }
  compareObject(where, s.value.get(), have.get());
}

void Preview::State::compareState() {
  for (const auto &[storage, wanted] : writes) {
    int64_t floats = static_cast<int64_t>(storage->bytes() / 4);
    if (!storage->bytes() || std::memcmp(storage->data(), wanted->data(), storage->bytes()) == 0)
      continue;
    // The dtype is that of some view; where it isn't float32 a rounding difference shows up as one.
    dlc::Tensor a = dlc::Tensor::viewOf(wanted, Ints(&floats, 1), {1}, 0, DType::F32);
    dlc::Tensor b = dlc::Tensor::viewOf(storage, Ints(&floats, 1), {1}, 0, DType::F32);
    if (storage->bytes() % 4 || !close(a, b))
      differ("memory of a tensor that is written in place", "other values than Python's");
  }
  for (auto [storage, version] : versions)
    if (storage->version() != version)
      differ("version of a tensor's memory", str(version, ", Python has ", storage->version()));
  for (auto [generator, offset] : offsets)
    if (generator->offset() != offset)
      differ("random numbers taken", str("up to ", offset, ", Python up to ", generator->offset()));
  for (const Store &s : stores)
    if (s.known)
      compareStore(s);
}

Preview::Preview(std::unique_ptr<State> state) : state_(std::move(state)) {}
Preview::~Preview() = default;

std::string Preview::compare(PyObject *result) {
  State &s = *state_;
  s.compareState();
  if (s.resultKnown)
    s.compareObject("result", s.result.get(), result);
  return s.differences;
}

std::unique_ptr<Preview> preview(Tree &tree, PyObject *callee, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames) {
  auto state = std::make_unique<Preview::State>();
  state->frame.dry = true;
  state->frame.finish = [&](const Leaf &leaf) {
    state->leaf = &leaf;
    state->record();
  };
  state->code = tree.tryOut(state->frame, callee, args, nargs, kwnames);
  state->frame.finish = nullptr;
  if (!state->leaf)
    return nullptr;
  return std::make_unique<Preview>(std::move(state));
}

} // namespace dlc::py
