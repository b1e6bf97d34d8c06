// The running part of programs: pieces, eager ops, views, and how what they wrote is taken back when a later guard
// fails. Out of memory and Ctrl-C leave as exceptions; any other failure is a miss, after which Python runs and raises.
#include "python/capture/program/Code.h"
#include "runtime/core/StorageWatch.h"
#include "runtime/core/ThreadPool.h"
#include <cstring>

namespace dlc::py::replay {
namespace {

/// From this many elements on, an eager op gives the GIL up.
constexpr int64_t kLongOp = 1 << 14;

/// In a catch block: passes on what Python must see at once.
void passUrgent() {
  try {
    throw;
  } catch (const Error &e) {
    if (e.kind() == ErrorKind::Memory)
      throw;
  } catch (const PythonError &) {
    if (PyErr_ExceptionMatches(PyExc_MemoryError) || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
      throw;
    PyErr_Clear();
  }
}

void saveForUndo(Frame &f, const Ref<Storage> &storage) {
  for (size_t i = f.undoMark; i < f.undo.size(); ++i)
    if (f.undo[i].storage == storage)
      return; // the older copy is the one to go back to
  Ref<Storage> copy = Storage::allocate(storage->bytes());
  if (storage->bytes())
    std::memcpy(copy->data(), storage->data(), storage->bytes());
  f.undo.push_back({storage, std::move(copy)});
}

/// What may still stop the call is looked at before inputs are written for good.
void beforeDirect(const Direct &d, const Frame &f) {
  for (const Dim &need : d.needs)
    evaluate(need, f.symbolValues());
  if (PyErr_CheckSignals() < 0)
    throw Interrupted{};
}

uint64_t drawnOf(const Frame &f, Generator *g) {
  uint64_t n = 0;
  for (const Drawn &d : f.drawn)
    n += d.generator == g ? d.blocks : 0;
  return n;
}

Number numberFor(const NumberOperand &n, Frame &f) {
  using Kind = trace::NumberSource::Kind;
  Generator *g = n.source.generator ? n.source.generator : &defaultGenerator();
  switch (n.source.kind) {
  case Kind::Constant:
    return n.source.value;
  case Kind::Session:
    return n.num != kNoReg ? f.nums[static_cast<size_t>(n.num)] : Number(evaluate(n.dim, f.symbolValues()));
  case Kind::Size: {
    int64_t v = evaluate(n.source.size, f.symbolValues());
    return n.source.value.isFloat() ? Number(static_cast<double>(v)) : Number(v);
  }
  case Kind::Seed:
    return Number(static_cast<int64_t>(g->seed()));
  case Kind::Offset: {
    Number at(static_cast<int64_t>(g->offset() + drawnOf(f, g)));
    f.drawn.push_back({g, static_cast<uint64_t>(evaluate(n.source.blocks, f.symbolValues()))});
    return at;
  }
  }
  return n.source.value;
}

dlc::Tensor wholeOf(const dlc::Tensor &t) {
  int64_t size = static_cast<int64_t>(t.storage().bytes() / itemSize(t.dtype()));
  return dlc::Tensor::viewOf(t.storageRef(), Ints(&size, 1), {1}, 0, t.dtype());
}

void gatherInputs(const SegmentCall &c, Frame &f) {
  f.inputs.clear();
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Reg r = c.inputs[i];
    if (i < c.wholeStorage.size() && c.wholeStorage[i]) {
      f.ownedTens.push_back(wholeOf(f.tensor(r)));
      f.inputs.push_back(f.ownedTens.back().impl());
    } else {
      f.inputs.push_back(f.tens[static_cast<size_t>(r)]);
    }
  }
}

bool segment(const SegmentStep &s, Frame &f) {
  const SegmentCall &c = *s.call;
  f.symbols.clear();
  for (const Dim &d : c.symbols)
    f.symbols.push_back(evaluate(d, f.symbolValues()));
  Ints symbols(f.symbols.data(), f.symbols.size());
  if (!c.code->accepts(symbols))
    return false;
  f.numbers.clear();
  for (const NumberOperand &n : c.numbers)
    f.numbers.push_back(numberFor(n, f));
  gatherInputs(c, f);
  bool alone = c.code->isShort();
  if (!alone)
    f.keep(s.keep);
  if (s.direct.on && !f.dry)
    beforeDirect(s.direct, f);
  else
    for (const SegmentCall::Out &o : c.outputs)
      if (o.writeBack >= 0)
        saveForUndo(f, f.tensor(c.inputs[static_cast<size_t>(o.writeBack)]).storageRef());
  f.ranAny = true;
  f.outs.clear();
  {
    ReleaseGil release(!alone);
    c.code->run(Span<const dlc::Tensor>(Frame::handles(f.inputs.data()), f.inputs.size()),
                Span<const Number>(f.numbers.data(), f.numbers.size()), symbols, f.outs);
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    const SegmentCall::Out &o = c.outputs[i];
    if (f.dry && o.writeBack < 0)
      f.fresh.push_back(&f.outs[i].storage());
    if (o.versionBumps && o.writeBack >= 0)
      f.bumps.push_back({&f.tensor(c.inputs[static_cast<size_t>(o.writeBack)]).storage(), o.versionBumps});
    if (o.tens != kNoReg) {
      if (o.versionBumps && o.writeBack < 0)
        f.bumps.push_back({&f.outs[i].storage(), o.versionBumps});
      f.own(std::move(f.outs[i]), o.tens);
    }
  }
  f.outs.clear();
  return true;
}

/// The arguments of an op over tensors, from those over registers.
struct EagerArgs {
  EagerArgs(const EagerCall &c, Frame &f) {
    size_t nextNumber = 0, numValues = c.args.values().size(), numDims = 0;
    for (const Arg<GVal> &a : c.args.args())
      numDims += a.tag == ArgTag::DimList ? a.size : 0;
    values.reserve(numValues);
    dims.reserve(numDims);
    for (const Arg<GVal> &a : c.args.args()) {
      Arg<dlc::Tensor> to;
      to.tag = a.tag;
      to.dtype = a.dtype;
      to.size = a.size;
      to.i = a.i; // the widest member
      bool operand = a.tag == ArgTag::Num && a.num.ref() && nextNumber < c.numbers.size();
      to.num = operand ? numberFor(c.numbers[nextNumber++], f) : a.num;
      to.dim = a.tag == ArgTag::Dim ? Dim(evaluate(a.dim, f.symbolValues())) : a.dim;
      if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
        to.value = values.data() + values.size();
        for (const GVal &v : a.values())
          values.push_back(v.id < 0 ? dlc::Tensor() : f.tensor(v.id));
      } else if (a.tag == ArgTag::DimList) {
        to.dims = dims.data() + dims.size();
        for (const Dim &d : a.dimList())
          dims.push_back(Dim(evaluate(d, f.symbolValues())));
      }
      args.push_back(to);
    }
  }
  SmallVec<Arg<dlc::Tensor>, 12> args;
  SmallVec<dlc::Tensor, 4> values;
  Dims dims;
};

/// Lets an op draw from where this program's earlier draws ended, and puts the generator back.
class GeneratorScope {
public:
  GeneratorScope(const EagerCall &c, Frame &f) : f_(f) {
    if (c.op->has(kRandom))
      for (const Arg<GVal> &a : c.args.args())
        if (a.tag == ArgTag::Rng)
          generator_ = a.rng ? a.rng : &defaultGenerator();
    if (generator_) {
      entry_ = generator_->offset();
      first_ = entry_ + drawnOf(f, generator_);
      generator_->setOffset(first_);
    }
  }
  ~GeneratorScope() {
    if (!generator_)
      return;
    f_.drawn.push_back({generator_, generator_->offset() - first_});
    generator_->setOffset(entry_);
  }
  GeneratorScope(const GeneratorScope &) = delete;

private:
  Frame &f_;
  Generator *generator_ = nullptr;
  uint64_t entry_ = 0, first_ = 0;
};

void saveWritten(const EagerCall &c, const EagerArgs &a, Frame &f) {
  if (c.form == CallForm::InPlace)
    saveForUndo(f, a.args[0].value[0].storageRef());
  else if (c.form == CallForm::Out)
    for (Reg r : c.outs)
      saveForUndo(f, f.tensor(r).storageRef());
  for (size_t i = 0; i < a.args.size(); ++i)
    if (isMutatedKind(c.op->params[i].kind))
      for (const dlc::Tensor &t : a.args[i].values())
        if (t.defined())
          saveForUndo(f, t.storageRef());
}

bool eager(const EagerStep &s, Frame &f) {
  const EagerCall &c = *s.call;
  EagerArgs a(c, f);
  int64_t work = 0;
  for (const dlc::Tensor &t : a.values)
    work += t.defined() ? t.numel() : 0;
  bool longOp = work >= kLongOp;
  if (longOp)
    f.keep(s.keep);
  if (s.direct.on && !f.dry)
    beforeDirect(s.direct, f);
  else
    saveWritten(c, a, f);
  SmallVec<dlc::Tensor, 3> outs;
  if (c.form == CallForm::Out)
    for (Reg r : c.outs)
      outs.push_back(f.tensor(r));
  f.ranAny = true;
  {
    GeneratorScope generator(c, f); // others must not draw meanwhile: without the GIL only ops that draw nothing
    ReleaseGil release(longOp && !c.op->has(kRandom));
    runEager(*c.op, Span<const Arg<dlc::Tensor>>(a.args.data(), a.args.size()), outs, c.form);
  }
  if (c.form == CallForm::Out)
    return true;
  if (outs.size() != c.outs.size())
    return false;
  for (size_t i = 0; i < outs.size(); ++i)
    if (c.outs[i] != kNoReg) {
      if (f.dry && c.op->kind != OpKind::View)
        f.fresh.push_back(&outs[i].storage());
      f.own(std::move(outs[i]), c.outs[i]);
    }
  return true;
}

/// Runs `body`; what fails but is not urgent is a miss.
template <class F> bool missing(F &&body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const Interrupted &) {
    throw;
  } catch (const Error &) {
    passUrgent();
  } catch (const PythonError &) {
    passUrgent();
  } catch (const std::exception &) { // a failure inside of a compiled piece: Python's run will tell
  }
  return false;
}

bool staysInside(const dlc::Tensor &t) {
  int64_t first = t.offset(), last = first;
  for (int64_t d = 0; d < t.dim(); ++d) {
    int64_t reach;
    if (t.size(d) < 0)
      return false;
    if (t.size(d) == 0)
      return true;
    if (__builtin_mul_overflow(t.size(d) - 1, t.stride(d), &reach) ||
        __builtin_add_overflow(reach < 0 ? first : last, reach, reach < 0 ? &first : &last))
      return false;
  }
  return first >= 0 && last < static_cast<int64_t>(t.storage().bytes() / itemSize(t.dtype()));
}

} // namespace

bool runSegment(const SegmentStep &s, Frame &f) {
  return missing([&] { return segment(s, f); });
}

bool runEagerStep(const EagerStep &s, Frame &f) {
  return missing([&] { return eager(s, f); });
}

bool makeView(const Step &s, Frame &f) {
  bool made = missing([&] {
    auto &v = *static_cast<const ViewOf *>(s.data);
    Sizes sizes, strides;
    for (const Dim &d : v.sizes)
      sizes.push_back(evaluate(d, f.symbolValues()));
    for (const Dim &d : v.strides)
      strides.push_back(evaluate(d, f.symbolValues()));
    const dlc::Tensor &from = f.tensor(s.a);
    int64_t offset = from.offset() + evaluate(v.offset, f.symbolValues());
    if (from.dtype() == v.dtype && from.offset() == offset && from.sizes() == sizes && from.strides() == strides) {
      f.own(from, s.dst);
      return true;
    }
    dlc::Tensor t = dlc::Tensor::viewOf(f.tensor(s.a).storageRef(), sizes, strides, offset, v.dtype);
    if (!staysInside(t))
      return false;
    f.own(std::move(t), s.dst);
    return true;
  });
  DLC_CHECK(made || !s.flag,
            "a view of a piece's output does not fit in it: ", static_cast<const ViewOf *>(s.data)->text());
  return made;
}

bool readTensor(const Step &s, Frame &f) {
  return missing([&] {
    const dlc::Tensor &t = f.tensor(s.a);
    if (s.op == Do::SizeOf) {
      if (s.imm < 0 || s.imm >= t.dim())
        return false;
      f.syms[static_cast<size_t>(s.dst)] = t.size(s.imm);
      return true;
    }
    if (t.numel() != 1)
      return false;
    Number n = t.item();
    if (s.op == Do::ReadNum) {
      f.nums[static_cast<size_t>(s.dst)] = n;
      return true;
    }
    if (s.op == Do::ReadInt && n.isFloat())
      return false;
    f.syms[static_cast<size_t>(s.dst)] = s.op == Do::ReadBool ? n.toBool() : n.toInt();
    return true;
  });
}

void rollBack(Frame &f, size_t undoMark) {
  while (f.undo.size() > undoMark) {
    Undo &u = f.undo.back();
    if (u.storage->bytes())
      std::memcpy(u.storage->data(), u.copy->data(), u.storage->bytes());
    StorageWatch::wrote(*u.storage);
    f.undo.pop_back();
  }
}

bool aliasesHold(AliasStep &s, Frame &f) {
  const AliasGuard &g = *s.guard;
  f.storages.clear();
  for (Reg r : g.tensors) {
    PyObject *o = f.objs[static_cast<size_t>(r)];
    if (!isTensor(o))
      return false;
    f.storages.push_back(tensorOf(o).impl()->storage.get());
  }
  auto offsetOf = [&](uint32_t i) { return tensorOf(f.objs[static_cast<size_t>(g.tensors[i])]).offset(); };
  for (auto [i, first] : s.followers)
    if (f.storages[i] != f.storages[first] || (i < g.offsets.size() && offsetOf(i) - offsetOf(first) != g.offsets[i]))
      return false;
  // The groups' storages must differ. Those that are what they were when last compared still do.
  size_t n = s.first.size(), mask = s.table.size() - 1;
  auto slotOf = [&](const void *p) { return (reinterpret_cast<uintptr_t>(p) * 0x9e3779b97f4a7c15ull >> 20) & mask; };
  auto find = [&](const void *p) {
    size_t at = slotOf(p);
    while (s.table[at] && s.seen[s.table[at] - 1] != p)
      at = (at + 1) & mask;
    return at;
  };
  if (s.seen.empty()) {
    size_t room = 4;
    while (room < 2 * n)
      room *= 2;
    s.table.assign(room, 0);
    mask = room - 1;
    for (size_t k = 0; k < n; ++k) {
      const void *p = f.storages[s.first[k]];
      size_t at = find(p);
      if (s.table[at]) {
        s.seen.clear();
        return false;
      }
      s.seen.push_back(p);
      s.table[at] = static_cast<uint32_t>(k + 1);
    }
    return true;
  }
  f.changed.clear();
  for (size_t k = 0; k < n; ++k)
    if (f.storages[s.first[k]] != s.seen[k])
      f.changed.push_back(static_cast<uint32_t>(k));
  if (f.changed.size() > 16) { // compare all anew
    s.seen.clear();
    return aliasesHold(s, f);
  }
  for (size_t c = 0; c < f.changed.size(); ++c) {
    const void *p = f.storages[s.first[f.changed[c]]];
    for (size_t d = 0; d < c; ++d)
      if (f.storages[s.first[f.changed[d]]] == p)
        return false;
    uint32_t k = s.table[find(p)];
    if (k && f.storages[s.first[k - 1]] == p)
      return false;
  }
  return true;
}

} // namespace dlc::py::replay
