// One table by address, and a filter in front of it.
#include "runtime/core/StorageWatch.h"
#include "runtime/core/ForkSafe.h"
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dlc {

struct WatchTable {
  struct Record {
    uint64_t stamp = 0; // 0: only marked
    bool state = false;
    std::vector<std::weak_ptr<StorageWatch::Listener>> listeners;
  };
  ForkMutex mutex;
  std::unordered_map<const Storage *, Record> records;
  uint64_t lastStamp = 0;

  Record &of(const Storage *s) {
    auto [it, fresh] = records.try_emplace(s);
    if (fresh)
      StorageWatch::filter_[StorageWatch::slotOf(s)].fetch_add(1, std::memory_order_relaxed);
    return it->second;
  }
  void erase(const Storage *s) {
    if (records.erase(s))
      StorageWatch::filter_[StorageWatch::slotOf(s)].fetch_sub(1, std::memory_order_relaxed);
  }

  static WatchTable &get() {
    static auto *table = new WatchTable; // storages die until the very end of the process
    return *table;
  }
};

uint64_t StorageWatch::watch(Storage &storage, const std::weak_ptr<Listener> &listener) {
  WatchTable &t = WatchTable::get();
  std::lock_guard<ForkMutex> lock(t.mutex);
  WatchTable::Record &r = t.of(&storage);
  if (!r.stamp)
    r.stamp = ++t.lastStamp;
  auto same = [&](const std::weak_ptr<Listener> &l) { return !l.owner_before(listener) && !listener.owner_before(l); };
  r.listeners.erase(std::remove_if(r.listeners.begin(), r.listeners.end(),
                                   [&](const std::weak_ptr<Listener> &l) { return l.expired() || same(l); }),
                    r.listeners.end());
  if (!listener.expired())
    r.listeners.push_back(listener);
  return r.stamp;
}

uint64_t StorageWatch::stampOf(const Storage &storage) {
  if (!mayKnow(&storage))
    return 0;
  WatchTable &t = WatchTable::get();
  std::lock_guard<ForkMutex> lock(t.mutex);
  auto it = t.records.find(&storage);
  return it == t.records.end() ? 0 : it->second.stamp;
}

void StorageWatch::forget(const Storage *storage, bool died) {
  std::vector<std::weak_ptr<Listener>> listeners;
  {
    WatchTable &t = WatchTable::get();
    std::lock_guard<ForkMutex> lock(t.mutex);
    auto it = t.records.find(storage);
    if (it == t.records.end())
      return;
    listeners.swap(it->second.listeners);
    bool derived = std::exchange(it->second.stamp, 0) != 0;
    if (died || !it->second.state)
      t.erase(storage);
    if (!derived)
      return;
    generation_.fetch_add(1, std::memory_order_acq_rel);
  }
  for (const std::weak_ptr<Listener> &l : listeners)
    if (std::shared_ptr<Listener> alive = l.lock())
      alive->changed(storage);
}

void StorageWatch::markState(Storage &storage) {
  WatchTable &t = WatchTable::get();
  std::lock_guard<ForkMutex> lock(t.mutex);
  t.of(&storage).state = true;
}

bool StorageWatch::isMarkedState(const Storage &storage) {
  if (!mayKnow(&storage))
    return false;
  WatchTable &t = WatchTable::get();
  std::lock_guard<ForkMutex> lock(t.mutex);
  auto it = t.records.find(&storage);
  return it != t.records.end() && it->second.state;
}

size_t StorageWatch::size() {
  WatchTable &t = WatchTable::get();
  std::lock_guard<ForkMutex> lock(t.mutex);
  return t.records.size();
}

} // namespace dlc
