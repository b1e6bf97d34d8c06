// Tensors of a session: what identifies them, pieces and eager ops as instructions, numbers that come from data.
#include "python/capture/session/SessionState.h"
#include "runtime/op/Ops.h"
#include <algorithm>
#include <numeric>
#include <optional>

namespace dlc::py {
namespace {

template <class T> std::shared_ptr<T> make() { return std::make_shared<T>(); }

Dims toDims(const Sizes &s) { return Dims(s.begin(), s.end()); }

/// As Tensor::meta(), which would ask this session what it says here.
TensorMeta plainMeta(const dlc::Tensor &t) {
  TensorMeta m;
  m.dtype = t.dtype();
  m.defined = true;
  m.sizes = toDims(t.impl()->sizes);
  m.strides = toDims(t.impl()->strides);
  m.offset = t.impl()->offset;
  return m;
}

} // namespace

void Session::identifyTensor(PyObject *value, Reg dst, const std::string &source) {
  const dlc::Tensor &t = tensorOf(value);
  auto slot = static_cast<int32_t>(s_->tapeSlots.size());
  s_->tapeSlots.push_back({dst, kNoReg, t.impl()->offset});
  s_->tapeStorage.emplace(t.storageRef().get(), slot);
  s_->tape.addEntry(t, slot);
  auto data = make<TensorGuard>();
  data->type = Py_TYPE(value);
  data->dtype = t.dtype();
  data->requiresGrad = requiresGrad(t);
  data->leaf = isLeaf(t);
  data->hooked = hasGradHooks(t);
  data->wrapped = t.isWrapped();
  data->foreign = t.storage().foreign();
  // impl() below: the sizes themselves; sizes() would tell the session that somebody decides by them.
  data->sizes = t.impl()->sizes;
  data->strides = t.impl()->strides;
  data->contiguous = data->strides == contiguousStrides(data->sizes) || t.isContiguous();
  std::vector<int64_t> free;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (s_->varying.count(str("size ", d, " of ", source)))
      free.push_back(d);
  if (!free.empty()) // dimensions of size 1 may have any stride otherwise
    data->contiguous = t.impl()->strides == contiguousStrides(Ints(t.impl()->sizes.data(), t.impl()->sizes.size()));
  for (int64_t d : free)
    data->sizes[static_cast<size_t>(d)] = -1;
  if (!free.empty())
    for (int64_t &stride : data->strides)
      stride = -1;
  Instr g;
  g.op = Do::Tensor;
  g.a = dst;
  g.data = data;
  g.source = source;
  s_->tensorGuards[dst] = data;
  guard(std::move(g));
  if (free.empty())
    return;
  TensorMeta meta = plainMeta(t);
  auto symbol = [&](Do op, int64_t d, int64_t now) {
    Instr i;
    i.op = op;
    i.a = dst;
    i.imm = d;
    i.dst = s_->path.syms++;
    i.source = str("size ", d, " of ", source);
    i.loc = markLoc();
    s_->path.body.push_back(i);
    return Dim::symbol(static_cast<uint32_t>(i.dst), now);
  };
  s_->anySymbolic = true;
  for (int64_t d : free)
    meta.sizes[static_cast<size_t>(d)] = symbol(Do::SymSize, d, t.impl()->sizes[static_cast<size_t>(d)]);
  if (data->contiguous)
    meta.strides = contiguousStrides(meta.sizes);
  else
    pinStrides(meta, [&](int64_t d, int64_t now) { return symbol(Do::SymStride, d, now); });
  s_->metas[t.impl()] = std::move(meta);
  (void)trace::tracedMeta(t); // from here on plain reads of its sizes are seen
}

/// Layouts of results follow the order of strides, so that strides may only vary as the sizes do: each is the product
/// of the sizes inside of it, or a constant, and that is a fact.
void Session::pinStrides(TensorMeta &meta, const std::function<Dim(int64_t d, int64_t now)> &symbol) {
  size_t n = meta.sizes.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return meta.strides[a].value() < meta.strides[b].value(); });
  Dim inside = 1;
  for (size_t d : order) {
    int64_t now = meta.strides[d].value();
    Dim formula = inside.value() == now ? inside : Dim(now);
    (void)(symbol(static_cast<int64_t>(d), now) == formula);
    meta.strides[d] = formula;
    inside = formula * meta.sizes[d];
  }
}

void Session::inputMeta(const dlc::Tensor &tensor, TensorMeta &meta) {
  auto it = s_->metas.find(tensor.impl());
  if (failed_ || it == s_->metas.end())
    return;
  meta.sizes = it->second.sizes;
  meta.strides = it->second.strides;
  meta.offset = it->second.offset;
}

Obj Session::symbolicSizes(const dlc::Tensor &t) {
  if (failed_ || !s_->anySymbolic)
    return Obj();
  std::optional<TensorMeta> meta;
  if (auto it = s_->metas.find(t.impl()); it != s_->metas.end())
    meta = it->second;
  else
    meta = trace::tracedMeta(t);
  if (!meta)
    return Obj();
  bool symbolic = false;
  Obj sizes = Obj::check(sizeType->tp_alloc(sizeType, static_cast<Py_ssize_t>(meta->sizes.size())));
  for (size_t d = 0; d < meta->sizes.size(); ++d) {
    symbolic |= !meta->sizes[d].isConst();
    PyTuple_SET_ITEM(sizes.get(), static_cast<Py_ssize_t>(d), wrapDim(meta->sizes[d]).release());
  }
  return symbolic ? sizes : Obj();
}

// --- tensors as registers

namespace {
Instr tensorOfObject(Reg object) {
  Instr i;
  i.op = Do::TensorOf;
  i.a = object;
  return i;
}
} // namespace

Reg Session::tensLoad(Instr i) {
  std::string content = contentOf(i);
  auto it = s_->tensLoads.find(content);
  if (it != s_->tensLoads.end())
    return it->second;
  i.dst = s_->path.tens++;
  i.loc = markLoc();
  s_->tensLoads.emplace(std::move(content), i.dst);
  s_->path.body.push_back(i);
  return i.dst;
}

/// A tens register over the storage of `t`; kNoReg (and failed) if nobody knows where it comes from.
Reg Session::storageReg(const dlc::Tensor &t) {
  auto it = s_->storages.find(t.storageRef().get());
  if (it != s_->storages.end())
    return it->second;
  for (const Obj &o : s_->keep)
    if (isTensor(o.get()) && isKnown(o.get()) && tensorOf(o.get()).storageRef() == t.storageRef())
      return s_->storages[t.storageRef().get()] = tensOf(tensorOf(o.get()));
  fail("a tensor is used that was not reached through anything the function read");
  return kNoReg;
}

Reg Session::tensOf(const dlc::Tensor &t) {
  PyObject *object = static_cast<PyObject *>(t.impl()->pyObject);
  if (Reg reg = object ? regOf(object) : kNoReg; reg != kNoReg) {
    Reg r = tensLoad(tensorOfObject(reg));
    s_->storages.emplace(t.storageRef().get(), r);
    s_->tensOffsets[r] = t.impl()->offset;
    return r;
  }
  if (!t.storageRef()) {
    fail("a tensor without memory is used");
    return kNoReg;
  }
  Reg base = storageReg(t);
  if (failed_)
    return kNoReg;
  auto view = make<ViewOf>();
  view->sizes = toDims(t.impl()->sizes);
  view->strides = toDims(t.impl()->strides);
  view->offset = t.impl()->offset;
  view->dtype = t.dtype();
  if (s_->anySymbolic) {
    auto known = s_->metas.find(t.impl());
    std::optional<TensorMeta> meta = known != s_->metas.end() ? known->second : trace::tracedMeta(t);
    if (!meta) {
      fail("a view whose sizes vary outlives the piece that made it");
      return kNoReg;
    }
    view->sizes = meta->sizes;
    view->strides = meta->strides;
    view->offset = meta->offset;
  }
  if (auto from = s_->tensOffsets.find(base); from != s_->tensOffsets.end())
    view->offset -= Dim(from->second);
  if (inputsShareMemory())
    checkAliases();
  Instr i;
  i.op = Do::View;
  i.a = base;
  i.data = view;
  i.dst = s_->path.tens++;
  i.loc = markLoc();
  s_->path.body.push_back(i);
  return i.dst;
}

void Session::rememberMeta(const dlc::Tensor &t) {
  if (!s_->anySymbolic || s_->metas.count(t.impl()))
    return;
  if (auto meta = trace::tracedMeta(t)) {
    s_->metas[t.impl()] = *meta;
    s_->keepTensors.push_back(t);
  }
}

/// Whether tensors from outside share memory: one of them may then stand for another in what was recorded.
bool Session::inputsShareMemory() {
  for (; !s_->sharing && s_->sharingChecked < s_->keep.size(); ++s_->sharingChecked) {
    PyObject *o = s_->keep[s_->sharingChecked].get();
    if (isTensor(o) && isKnown(o) && tensorOf(o).storageRef())
      s_->sharing = s_->outsideStorages.emplace(tensorOf(o).storageRef().get(), o).first->second != o;
  }
  return s_->sharing;
}

void Session::aliasInput(const dlc::Tensor &t) {
  PyObject *object = static_cast<PyObject *>(t.impl()->pyObject);
  if (Reg reg = object ? regOf(object) : kNoReg; reg != kNoReg && s_->aliasKnown.insert(reg).second)
    s_->aliasInputs.emplace_back(reg, t);
}

/// What a piece writes may be what others read: tensors that share memory now must share it in the same way in another
/// call, and no others may. That covers what pieces read, other views of it that the function knows, and any tensors
/// that share memory: two equal views are one input of a piece, and one register to whoever looks for their memory.
void Session::checkAliases() {
  std::unordered_map<const Storage *, int> known;
  for (const Obj &o : s_->keep)
    if (isTensor(o.get()) && isKnown(o.get()))
      ++known[tensorOf(o.get()).storageRef().get()];
  for (const Obj &o : s_->keep) {
    if (!isTensor(o.get()) || !isKnown(o.get()))
      continue;
    Storage *storage = tensorOf(o.get()).storageRef().get();
    if (known[storage] > 1 || s_->storages.count(storage))
      aliasInput(tensorOf(o.get()));
  }
  if (s_->aliasInputs.size() == s_->aliasesChecked || s_->aliasInputs.size() < 2) {
    s_->aliasesChecked = s_->aliasInputs.size();
    return;
  }
  s_->aliasesChecked = s_->aliasInputs.size();
  auto data = make<AliasGuard>();
  std::vector<const Storage *> groups;
  std::vector<int64_t> first;
  for (const auto &[reg, tensor] : s_->aliasInputs) {
    const Storage *storage = tensor.storageRef().get();
    size_t g = 0;
    while (g < groups.size() && groups[g] != storage)
      ++g;
    if (g == groups.size()) {
      groups.push_back(storage);
      first.push_back(tensor.impl()->offset);
    }
    data->tensors.push_back(reg);
    data->group.push_back(static_cast<int32_t>(g));
    data->offsets.push_back(tensor.impl()->offset - first[g]);
  }
  Instr i;
  i.op = Do::Aliases;
  i.data = data;
  i.source = "which tensors share memory";
  i.loc = markLoc();
  s_->path.body.push_back(std::move(i));
}

/// For pieces that write the memory of `t` through its whole storage, and whoever asks where it lies.
void Session::guardPlaces(const dlc::Tensor &t) {
  for (const Obj &o : s_->keep) {
    if (!isTensor(o.get()) || !isKnown(o.get()) || tensorOf(o.get()).storageRef() != t.storageRef())
      continue;
    auto known = s_->tensorGuards.find(regOf(o.get()));
    if (known == s_->tensorGuards.end() || !s_->placed.insert(known->first).second)
      continue;
    auto data = std::make_shared<TensorGuard>(*known->second);
    data->offset = tensorOf(o.get()).impl()->offset;
    data->bytes = static_cast<int64_t>(t.storage().bytes());
    Instr g;
    g.op = Do::Tensor;
    g.a = known->first;
    g.data = std::move(data);
    g.source = sourceOf(o.get());
    guard(std::move(g));
  }
}

void Session::drawRandom(const trace::PieceRecord &record) {
  for (const trace::NumberSource &n : record.numbers)
    if (n.kind == trace::NumberSource::Kind::Offset)
      s_->draws.emplace_back(Ref<Generator>(n.generator), n.blocks);
}

/// The recorder reads memory that others share by a copy, which is dense; the piece knows only that layout.
Reg Session::copyOf(const dlc::Tensor &t, Reg reg) {
  if (t.impl()->strides == contiguousStrides(t.impl()->sizes))
    return reg;
  const OpInfo &clone = opInfo(OpId::Clone);
  auto call = make<EagerCall>();
  call->op = &clone;
  GVal value{reg};
  Arg<GVal> args[2] = {Arg<GVal>::of(value), Arg<GVal>::ofStr(Str("preserve_format"))};
  call->args = OwnedArgs<GVal>(Span<const Arg<GVal>>(args, 2));
  call->outs.push_back(s_->path.tens++);
  Instr i;
  i.op = Do::Eager;
  i.loc = markLoc();
  Reg out = call->outs[0];
  i.data = std::move(call);
  s_->path.body.push_back(std::move(i));
  return out;
}

void Session::pieceRan(trace::PieceRecord record) {
  if (failed_)
    return;
  auto call = make<SegmentCall>();
  call->code = record.code;
  call->wholeStorage = record.wholeStorage;
  call->symbols = record.symbols;
  for (const dlc::Tensor &t : record.inputs) {
    Reg input = tensOf(t);
    if (failed_)
      return;
    call->inputs.push_back(t.storage().foreign() ? copyOf(t, input) : input);
    aliasInput(t);
  }
  for (const trace::NumberSource &n : record.numbers) {
    SegmentCall::Number_ number;
    number.source = n;
    if (n.kind == trace::NumberSource::Kind::Session)
      number.num = s_->numbers[sessionRefId(n.ref)].num;
    number.dim = n.size;
    call->numbers.push_back(std::move(number));
  }
  for (size_t k = 0; k < record.inputs.size(); ++k)
    if (record.wholeStorage[k])
      guardPlaces(record.inputs[k]);
  drainFacts();
  if (inputsShareMemory() ||
      std::any_of(record.outputs.begin(), record.outputs.end(), [](auto &o) { return o.writeBack >= 0; }))
    checkAliases();
  if (!record.facts.empty())
    addFacts(record.facts);
  drawRandom(record);
  for (const trace::PieceOutput &o : record.outputs) {
    SegmentCall::Out out;
    out.writeBack = o.writeBack;
    out.versionBumps = o.versionBumps;
    if (o.writeBack >= 0 && s_->shown.count(o.storage.get()))
      return fail("a tensor is printed and then changed in place");
    if (o.writeBack < 0) {
      out.tens = s_->path.tens++;
      s_->storages[o.storage.get()] = out.tens;
    }
    s_->keepStorages.push_back(o.storage);
    call->outputs.push_back(out);
  }
  Instr i;
  i.op = Do::Segment;
  i.data = call;
  i.loc = markLoc();
  s_->path.body.push_back(std::move(i));
}

void Session::opRan(const OpInfo &op, Span<const Arg<dlc::Tensor>> args, Span<const dlc::Tensor> outs, CallForm form) {
  if (failed_)
    return;
  if (form != CallForm::Functional || op.has(kMutates) || op.has(kRandom))
    return fail(str("`", op.name, "` runs outside of the graph and changes something"));
  auto call = make<EagerCall>();
  call->op = &op;
  call->form = form;
  std::vector<GVal> values;
  size_t count = 0;
  for (const Arg<dlc::Tensor> &a : args)
    count += a.values().size();
  values.reserve(count);
  SmallVec<Arg<GVal>, 12> boxed;
  for (const Arg<dlc::Tensor> &a : args) {
    Arg<GVal> g;
    g.tag = a.tag;
    g.dtype = a.dtype;
    g.size = a.size;
    g.i = a.i;
    g.num = a.num;
    g.dim = a.dim;
    if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
      size_t at = values.size();
      for (const dlc::Tensor &t : a.values()) {
        values.push_back(GVal{t.defined() ? (t.isWrapped() ? kNoReg : tensOf(t)) : kNoReg});
        if (t.defined() && t.isWrapped())
          fail(str("`", op.name, "` runs outside of the graph with a number"));
      }
      g.value = values.data() + at;
    } else if (a.tag == ArgTag::Rng || (a.tag == ArgTag::Num && a.num.ref())) {
      fail(str("`", op.name, "` runs outside of the graph with a number that varies"));
    }
    boxed.push_back(g);
  }
  if (failed_)
    return;
  drainFacts();
  call->args = OwnedArgs<GVal>(Span<const Arg<GVal>>(boxed.data(), boxed.size()));
  for (size_t k = 0; k < outs.size(); ++k)
    call->outs.push_back(outs[k].defined() ? s_->path.tens++ : kNoReg);
  Instr i;
  i.op = Do::Eager;
  i.data = call;
  i.loc = markLoc();
  s_->path.body.push_back(std::move(i));
  for (size_t k = 0; k < outs.size(); ++k)
    if (outs[k].defined())
      knowResult(outs[k], call->outs[k]);
}

/// A tensor whose sizes depend on data: they are symbols from here on.
void Session::knowResult(const dlc::Tensor &t, Reg reg) {
  s_->storages[t.storageRef().get()] = reg;
  s_->keepStorages.push_back(t.storageRef());
  s_->keepTensors.push_back(t);
  TensorMeta meta = plainMeta(t);
  for (int64_t d = 0; d < t.dim(); ++d) {
    Instr i;
    i.op = Do::SizeOf;
    i.a = reg;
    i.imm = d;
    i.dst = s_->path.syms++;
    i.loc = markLoc();
    s_->path.body.push_back(i);
    meta.sizes[static_cast<size_t>(d)] =
        Dim::symbol(static_cast<uint32_t>(i.dst), t.impl()->sizes[static_cast<size_t>(d)]);
  }
  meta.strides = contiguousStrides(meta.sizes);
  s_->anySymbolic |= t.dim() > 0;
  s_->metas[t.impl()] = std::move(meta);
}

void Session::gradStored(const dlc::Tensor &leaf, const dlc::Tensor &grad, bool addedInPlace) {
  if (failed_)
    return;
  PyObject *object = static_cast<PyObject *>(leaf.impl()->pyObject);
  if (!object || !isKnown(object)) {
    if (!object || s_->storages.find(leaf.storageRef().get()) == s_->storages.end())
      fail("backward reaches a leaf that the function did not read");
    return; // a leaf made in the call: its .grad dies with it, or is read through it
  }
  static PyObject *const name = PyUnicode_InternFromString("grad");
  bool set = wroteTo(object, Slot::Attr, name);
  Instr load;
  load.op = Do::GetAttr;
  load.a = regOf(object);
  load.key = Obj::borrow(name);
  std::string source = str(sourceOf(object), ".grad");
  Obj gradObject = Obj::check(wrap(grad));
  if (addedInPlace) {
    if (!set)
      read(gradObject.get(), std::move(load), source);
    return;
  }
  if (!set)
    read(Py_None, std::move(load), source);
  effectSetAttr(object, name, gradObject.get());
}

} // namespace dlc::py
