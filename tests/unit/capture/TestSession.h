// A small capture session over the recorder's observer: logs pieces, runs them again for other inputs. Knows no Python;
// the inputs of the call are its only sources.
#pragma once
#include "frontend/compile/Compile.h"
#include "runtime/autograd/TapeTemplate.h"
#include "runtime/op/Functional.h"
#include <gtest/gtest.h>
#include <map>

namespace dlc::testing {

class TestSession final : public trace::Observer, public TapeSources {
public:
  /// `symbols`: whether sizes of the inputs above 1 are symbols (equal sizes: one each).
  TestSession(std::vector<Tensor> inputs, bool symbols) : entry_(std::move(inputs)), symbols_(symbols) {
    for (size_t i = 0; i < entry_.size(); ++i)
      slots_[entry_[i].storageRef().get()] = static_cast<int>(i);
    next_ = static_cast<int>(entry_.size());
  }

  bool symbolic() const override { return symbols_; }
  void inputMeta(const Tensor &t, TensorMeta &m) override {
    for (size_t i = 0; i < entry_.size(); ++i)
      if (entry_[i].is(t)) {
        for (size_t d = 0; d < m.sizes.size(); ++d)
          if (m.sizes[d].value() > 1) {
            m.sizes[d] = Dim::symbol(static_cast<uint32_t>(places.size()), m.sizes[d].value());
            places.push_back({i, d});
          }
        m.strides = contiguousStrides(m.sizes);
      }
  }
  void pieceRan(trace::PieceRecord r) override {
    Step s;
    for (const Tensor &t : r.inputs) {
      s.inputs.push_back(slotOf(t));
      s.metas.push_back(t.meta());
    }
    for (const trace::PieceOutput &o : r.outputs)
      s.outputs.push_back(o.storage ? newSlot(o) : -1);
    s.record = std::move(r);
    steps.push_back(std::move(s));
  }
  void opRan(const OpInfo &op, Span<const Arg<Tensor>>, Span<const Tensor>, CallForm) override {
    ops.push_back(op.name);
  }
  void numberRead(const void *ref) override { numbersRead.push_back(sessionRefId(ref)); }
  void gradStored(const Tensor &leaf, const Tensor &grad, bool inPlace) override {
    grads.push_back({leaf, grad});
    gradsInPlace += inPlace;
  }
  void notReplayable(const std::string &why) override { reasons.push_back(why); }

  /// The values of the symbols for other inputs.
  std::vector<int64_t> symbolsOf(const std::vector<Tensor> &inputs) const {
    std::vector<int64_t> s;
    for (auto &[i, d] : places)
      s.push_back(inputs[i].sizes()[d]);
    return s;
  }
  /// Whether the guards hold: facts of the rules (`facts`) and of the code.
  bool accepts(const std::vector<Tensor> &inputs) const {
    std::vector<int64_t> values = symbolsOf(inputs);
    for (const Fact &f : facts)
      if (!holds(f, values))
        return false;
    for (const Step &s : steps) {
      for (const Fact &f : s.record.facts)
        if (!holds(f, values))
          return false;
      if (!s.record.code->accepts(evaluated(s.record.symbols, values)))
        return false;
    }
    return true;
  }
  /// Runs the pieces for these inputs (which are written as in the recorded call) and session numbers by id.
  void run(const std::vector<Tensor> &inputs, const std::map<uint64_t, Number> &numbers = {}) {
    std::vector<int64_t> values = symbolsOf(inputs);
    storages_.assign(static_cast<size_t>(next_), Ref<Storage>());
    for (size_t i = 0; i < inputs.size(); ++i)
      storages_[i] = inputs[i].storageRef();
    for (const Step &s : steps) {
      std::vector<Tensor> in, outs;
      for (size_t i = 0; i < s.inputs.size(); ++i)
        in.push_back(s.record.wholeStorage[i] ? flat(s.inputs[i], s.metas[i].dtype)
                                              : view(s.inputs[i], s.metas[i], values));
      std::vector<Number> operands;
      for (const trace::NumberSource &n : s.record.numbers)
        operands.push_back(value(n, values, numbers));
      std::vector<int64_t> symbols = evaluated(s.record.symbols, values);
      s.record.code->run(in, operands, symbols, outs);
      for (size_t i = 0; i < s.outputs.size(); ++i)
        if (s.outputs[i] >= 0) {
          Ref<Storage> &to = storages_[static_cast<size_t>(s.outputs[i])];
          if (s.record.outputs[i].writeBack < 0)
            to = outs[i].storageRef();
          for (uint32_t k = 0; k < s.record.outputs[i].versionBumps; ++k)
            to->bumpVersion();
        }
    }
  }
  /// The stand-in of a tensor of the recorded call after run().
  Tensor standIn(const Tensor &t, const std::vector<Tensor> &inputs) {
    for (size_t i = 0; i < entry_.size(); ++i)
      if (entry_[i].is(t))
        return inputs[i];
    auto it = slots_.find(t.storageRef().get());
    return it == slots_.end() ? Tensor() : view(it->second, metaOf(t), symbolsOf(inputs));
  }
  // --- the tape: its tensors are the entry tensors and the outputs of pieces, by slot
  bool storageOf(const Tensor &t, int32_t &index, Dim &offset) override {
    auto it = slots_.find(t.storageRef().get());
    if (it == slots_.end())
      return false;
    index = it->second;
    offset = t.meta().offset - Dim(static_cast<size_t>(index) < entry_.size() ? entry_[index].offset() : 0);
    return true;
  }
  int32_t numberOf(const void *ref) override { return static_cast<int32_t>(sessionRefId(ref)); }
  /// After run(): gives stand-ins of results their histories.
  void instantiate(const TapeTemplate &tape, const std::vector<Tensor> &inputs, const std::vector<Tensor> &results,
                   const std::vector<Number> &numbers = {}) {
    std::vector<Tensor> tensors = inputs;
    for (size_t i = inputs.size(); i < storages_.size(); ++i)
      tensors.push_back(storages_[i] ? flat(static_cast<int>(i), DType::F32) : Tensor());
    std::vector<int64_t> symbols = symbolsOf(inputs);
    tape.instantiate({tensors, symbols, numbers}, results);
  }
  /// Keeps the expressions of a tensor's layout for standIn after the session.
  void keep(const Tensor &t) { kept_[t.impl()] = t.meta(); }
  const std::vector<Tensor> &entry() const { return entry_; }

  struct Step {
    trace::PieceRecord record;
    std::vector<int> inputs, outputs;
    std::vector<TensorMeta> metas;
  };
  std::vector<Step> steps;
  std::vector<std::pair<size_t, size_t>> places; ///< of symbols: input and dimension
  std::vector<Fact> facts;
  std::vector<std::string> ops, reasons;
  std::vector<uint64_t> numbersRead;
  std::vector<std::pair<Tensor, Tensor>> grads;
  int gradsInPlace = 0;

private:
  int slotOf(const Tensor &t) {
    auto it = slots_.find(t.storageRef().get());
    EXPECT_NE(it, slots_.end()) << "an input of a piece from nowhere";
    return it == slots_.end() ? 0 : it->second;
  }
  int newSlot(const trace::PieceOutput &o) {
    alive_.push_back(o.storage);
    auto [it, isNew] = slots_.try_emplace(o.storage.get(), next_);
    next_ += isNew;
    return it->second;
  }
  TensorMeta metaOf(const Tensor &t) const {
    auto it = kept_.find(t.impl());
    return it == kept_.end() ? t.meta() : it->second;
  }
  Tensor view(int slot, const TensorMeta &m, const std::vector<int64_t> &values) const {
    Sizes sizes, strides;
    for (const Dim &d : m.sizes)
      sizes.push_back(evaluate(d, values));
    for (const Dim &d : m.strides)
      strides.push_back(evaluate(d, values));
    return Tensor::viewOf(storages_[static_cast<size_t>(slot)], sizes, strides, evaluate(m.offset, values), m.dtype);
  }
  Tensor flat(int slot, DType dtype) const {
    const Ref<Storage> &s = storages_[static_cast<size_t>(slot)];
    return Tensor::viewOf(s, {static_cast<int64_t>(s->bytes() / itemSize(dtype))}, {int64_t(1)}, 0, dtype);
  }
  static std::vector<int64_t> evaluated(const std::vector<Dim> &dims, const std::vector<int64_t> &values) {
    std::vector<int64_t> out;
    for (const Dim &d : dims)
      out.push_back(evaluate(d, values));
    return out;
  }
  static Number value(const trace::NumberSource &n, const std::vector<int64_t> &values,
                      const std::map<uint64_t, Number> &numbers) {
    switch (n.kind) {
    case trace::NumberSource::Kind::Constant:
      return n.value;
    case trace::NumberSource::Kind::Session:
      return numbers.at(sessionRefId(n.ref));
    case trace::NumberSource::Kind::Size: {
      int64_t v = evaluate(n.size, values);
      return n.value.isFloat() ? Number(static_cast<double>(v)) : Number(v);
    }
    case trace::NumberSource::Kind::Seed:
      return Number(static_cast<int64_t>(n.generator->seed()));
    case trace::NumberSource::Kind::Offset:
      return Number(static_cast<int64_t>(n.generator->take(static_cast<uint64_t>(evaluate(n.blocks, values)))));
    }
    return {};
  }

  std::vector<Tensor> entry_;
  bool symbols_;
  std::map<Storage *, int> slots_;
  std::map<TensorImpl *, TensorMeta> kept_;
  std::vector<Ref<Storage>> alive_;
  std::vector<Ref<Storage>> storages_;
  int next_ = 0;
};

} // namespace dlc::testing
