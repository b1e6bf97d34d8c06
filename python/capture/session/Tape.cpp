// Results that have a gradient function: the tape that the call made, as a template for later calls.
#include "python/capture/session/SessionState.h"
#include <algorithm>

namespace dlc::py {
namespace {

/// Makes the captured tape again over the tensors of a replayed call.
class TemplateEffect final : public TapeEffect {
public:
  std::shared_ptr<TapeTemplate> tape;
  std::vector<std::pair<int32_t, TapeSlot>> slots; ///< those that the template reads, by index
  size_t numSlots = 0, numSyms = 0, numNums = 0;
  std::vector<Reg> results; ///< of objs: two results may share a register of tens

  void apply(const Registers &r) const override {
    std::vector<dlc::Tensor> tensors(numSlots), made;
    for (const auto &[at, slot] : slots)
      tensors[static_cast<size_t>(at)] = slot.object != kNoReg ? tensorOf(r.objs[slot.object]) : r.tens[slot.tens];
    for (Reg reg : results)
      made.push_back(tensorOf(r.objs[reg]));
    tape->instantiate({tensors, Ints(r.syms.data(), numSyms), Span<const Number>(r.nums, numNums)}, made);
  }
  void reads(std::vector<Reg> &objs, std::vector<Reg> &tens) const override {
    for (const auto &[at, slot] : slots)
      (slot.object != kNoReg ? objs : tens).push_back(slot.object != kNoReg ? slot.object : slot.tens);
    objs.insert(objs.end(), results.begin(), results.end());
  }
  void readsNumbers(std::vector<Reg> &nums, std::vector<Dim> &dims) const override { tape->numbersRead(nums, dims); }
  bool equals(const Data &other) const override { return this == &other; }
  std::string text() const override { return str("gradient functions: ", tape->numNodes()); }
};

class Sources final : public TapeSources {
public:
  Sources(Session::State &s, std::vector<TapeSlot> &slots) : s_(s), slots_(slots) {}
  bool storageOf(const dlc::Tensor &t, int32_t &index, Dim &offset) override {
    const Storage *storage = t.storageRef().get();
    auto known = s_.tapeStorage.find(storage);
    if (known == s_.tapeStorage.end()) {
      auto made = s_.storages.find(storage);
      if (made == s_.storages.end())
        return false;
      known = s_.tapeStorage.emplace(storage, static_cast<int32_t>(slots_.size())).first;
      slots_.push_back({kNoReg, made->second, 0});
    }
    index = known->second;
    std::optional<TensorMeta> meta = trace::tracedMeta(t);
    offset = (meta ? meta->offset : Dim(t.impl()->offset)) - Dim(slots_[static_cast<size_t>(index)].offset);
    return true;
  }
  int32_t numberOf(const void *ref) override { return isSessionRef(ref) ? s_.numbers[sessionRefId(ref)].num : kNoReg; }

private:
  Session::State &s_;
  std::vector<TapeSlot> &slots_;
};

} // namespace

void Session::attachTape() {
  std::vector<dlc::Tensor> results;
  auto effect = std::make_shared<TemplateEffect>();
  for (const auto &[tensor, reg] : s_->histories) {
    results.push_back(tensor);
    effect->results.push_back(reg);
  }
  Sources sources(*s_, s_->tapeSlots);
  std::string why;
  effect->tape = s_->tape.finish(results, sources, why);
  if (!effect->tape)
    return fail(why);
  if (effect->tape->empty())
    return;
  for (int32_t at : effect->tape->tensorsRead())
    effect->slots.emplace_back(at, s_->tapeSlots[static_cast<size_t>(at)]);
  effect->numSlots = s_->tapeSlots.size();
  effect->numSyms = static_cast<size_t>(s_->path.syms);
  effect->numNums = static_cast<size_t>(s_->path.nums);
  Instr i;
  i.op = Do::Tape;
  i.data = effect;
  i.loc = markLoc();
  // Before all effects that may show a result to others: what is made comes first, unless it holds what an effect gave.
  auto isEffect = [](const Instr &e) { return e.op >= Do::Call; };
  bool given =
      std::any_of(s_->commit.begin(), s_->commit.end(), [&](const Instr &e) { return isEffect(e) && e.dst != kNoReg; });
  if (!given)
    std::stable_partition(s_->commit.begin(), s_->commit.end(), [&](const Instr &e) { return !isEffect(e); });
  size_t at = 0;
  for (size_t k = 0; k < s_->commit.size(); ++k)
    if (std::find(effect->results.begin(), effect->results.end(), s_->commit[k].dst) != effect->results.end())
      at = k + 1;
  s_->commit.insert(s_->commit.begin() + static_cast<std::ptrdiff_t>(at), std::move(i));
}

} // namespace dlc::py
