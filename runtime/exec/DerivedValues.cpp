// Sets are found by the identity and versions of their sources; values behind them by a text that names the function
// and the bytes it was applied to.
#include "runtime/exec/DerivedValues.h"
#include "runtime/exec/LaunchPlan.h"
#include <algorithm>
#include <unordered_map>

namespace dlc {
namespace {

/// Sets a plan keeps: one for each layer that runs the same code over its own weights.
constexpr size_t kKeptSets = 64;

/// Values that are alive, of all plans.
struct ValueTable {
  ForkMutex mutex;
  std::unordered_map<std::string, std::weak_ptr<const DerivedValue>> values;
  std::atomic<int64_t> runs{0}, alive{0}, bytes{0};

  std::shared_ptr<const DerivedValue> find(const std::string &key) {
    std::lock_guard<ForkMutex> lock(mutex);
    auto it = values.find(key);
    return it == values.end() ? nullptr : it->second.lock();
  }
  void add(const std::shared_ptr<const DerivedValue> &v) {
    std::lock_guard<ForkMutex> lock(mutex);
    values[v->key] = v;
  }
  static ValueTable &get() {
    static auto *table = new ValueTable; // plans may die after everything else
    return *table;
  }
};

/// Computes the values of a set on demand.
class Maker {
public:
  Maker(const std::vector<DerivedSpec> &specs, Span<const Tensor> inputs, const std::vector<std::string> &names,
        bool shareable)
      : specs_(specs), inputs_(inputs), names_(names), shareable_(shareable), made_(specs.size()) {}

  std::shared_ptr<const DerivedValue> value(size_t j) {
    if (made_[j])
      return made_[j];
    std::string key = shareable_ ? keyOf(j) : std::string();
    if (shareable_ && (made_[j] = ValueTable::get().find(key)))
      return made_[j];
    std::vector<Tensor> operands, outs;
    for (int32_t f : specs_[j].from)
      operands.push_back(f >= 0 ? inputs_[static_cast<size_t>(f)] : value(static_cast<size_t>(~f))->value);
    specs_[j].maker->run(operands, {}, {}, outs);
    specs_[j].maker->dropContexts(); // it will not run again soon
    ValueTable::get().runs++;
    made_[j] = std::make_shared<const DerivedValue>(std::move(key), outs[0]);
    if (shareable_)
      ValueTable::get().add(made_[j]);
    return made_[j];
  }

private:
  std::string keyOf(size_t j) const {
    std::string key = specs_[j].key + '(';
    for (int32_t f : specs_[j].from)
      key += (f >= 0 ? names_[static_cast<size_t>(f)] : keyOf(static_cast<size_t>(~f))) + ',';
    return key + ')';
  }

  const std::vector<DerivedSpec> &specs_;
  Span<const Tensor> inputs_;
  const std::vector<std::string> &names_; // of the bytes of each input that is a source
  bool shareable_;
  std::vector<std::shared_ptr<const DerivedValue>> made_;
};

} // namespace

DerivedValue::DerivedValue(std::string k, Tensor t) : key(std::move(k)), value(std::move(t)) {
  ValueTable::get().alive++;
  ValueTable::get().bytes += static_cast<int64_t>(value.storage().bytes());
}

DerivedValue::~DerivedValue() {
  ValueTable &t = ValueTable::get();
  t.alive--;
  t.bytes -= static_cast<int64_t>(value.storage().bytes());
  if (key.empty())
    return;
  std::lock_guard<ForkMutex> lock(t.mutex);
  auto it = t.values.find(key);
  if (it != t.values.end() && it->second.expired())
    t.values.erase(it);
}

DerivedStats derivedStats() {
  ValueTable &t = ValueTable::get();
  return {t.runs.load(), t.alive.load(), t.bytes.load()};
}

std::shared_ptr<DerivedValues> DerivedValues::make(std::vector<DerivedSpec> specs) {
  std::shared_ptr<DerivedValues> made(new DerivedValues(std::move(specs)));
  made->self_ = made;
  return made;
}

DerivedValues::DerivedValues(std::vector<DerivedSpec> specs) : specs_(std::move(specs)) {
  for (const DerivedSpec &s : specs_)
    for (int32_t f : s.from)
      if (f >= 0 && std::find(sources_.begin(), sources_.end(), static_cast<uint32_t>(f)) == sources_.end())
        sources_.push_back(static_cast<uint32_t>(f));
}

/// `sameMemory`: the inputs are those of the set, whatever has been written to them since.
bool DerivedValues::matches(const DerivedSet &set, Span<const Tensor> inputs, bool &sameMemory) const {
  bool sameVersions = true;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const TensorImpl &t = *inputs[sources_[i]].impl();
    const DerivedSet::Source &s = set.sources[i];
    if (t.storage.get() != s.storage || t.offset != s.offset)
      return sameMemory = false;
    sameVersions &= t.storage->version() == s.version && !t.storage->foreign();
  }
  sameMemory = true;
  uint64_t now = StorageWatch::generation();
  if (!sameVersions || set.generation.load(std::memory_order_relaxed) == now)
    return sameVersions;
  for (const DerivedSet::Source &s : set.sources)
    if (StorageWatch::stampOf(*s.storage) != s.stamp)
      return false;
  set.generation.store(now, std::memory_order_relaxed);
  return true;
}

std::shared_ptr<const DerivedSet> DerivedValues::get(Span<const Tensor> inputs) {
  std::shared_ptr<const DerivedSet> stale; // kept until the new set has taken over what did not change
  {
    std::lock_guard<ForkMutex> lock(mutex_);
    for (size_t i = 0; i < sets_.size(); ++i) {
      bool sameMemory;
      if (matches(*sets_[i], inputs, sameMemory)) {
        std::rotate(sets_.begin(), sets_.begin() + static_cast<std::ptrdiff_t>(i),
                    sets_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return sets_.front();
      }
      if (sameMemory)
        stale = sets_[i];
    }
  }
  if (stale) // what any plan derived from the old bytes is of no use
    for (size_t i = 0; i < sources_.size(); ++i)
      if (Storage &s = inputs[sources_[i]].storage(); s.version() != stale->sources[i].version || s.foreign())
        StorageWatch::wrote(s);
  return compute(inputs);
}

std::shared_ptr<const DerivedSet> DerivedValues::compute(Span<const Tensor> inputs) {
  auto set = std::make_shared<DerivedSet>();
  set->generation = StorageWatch::generation(); // before the stamps: what changes meanwhile is seen at the next look
  bool shareable = true;
  std::vector<std::string> names(inputs.size());
  for (uint32_t i : sources_) {
    Storage &storage = inputs[i].storage();
    shareable &= !storage.foreign();
    uint64_t stamp = StorageWatch::watch(storage, self_);
    set->sources.push_back({&storage, stamp, storage.version(), inputs[i].impl()->offset});
    names[i] = str(stamp, ".", storage.version(), "+", inputs[i].impl()->offset);
  }
  Maker maker(specs_, inputs, names, shareable);
  for (size_t j = 0; j < specs_.size(); ++j)
    set->values.push_back(specs_[j].needed ? maker.value(j) : nullptr);
  if (!shareable)
    return set;
  std::shared_ptr<const DerivedSet> dropped;
  std::lock_guard<ForkMutex> lock(mutex_);
  sets_.insert(sets_.begin(), set);
  if (sets_.size() > kKeptSets) {
    dropped = std::move(sets_.back());
    sets_.pop_back();
  }
  return set;
}

void DerivedValues::changed(const Storage *storage) {
  std::vector<std::shared_ptr<const DerivedSet>> kept, dropped; // destroyed without the lock
  std::lock_guard<ForkMutex> lock(mutex_);
  for (std::shared_ptr<const DerivedSet> &s : sets_) {
    bool uses = std::any_of(s->sources.begin(), s->sources.end(),
                            [&](const DerivedSet::Source &source) { return source.storage == storage; });
    (uses ? dropped : kept).push_back(std::move(s));
  }
  sets_.swap(kept);
}

size_t DerivedValues::kept() const {
  std::lock_guard<ForkMutex> lock(mutex_);
  return sets_.size();
}

} // namespace dlc
