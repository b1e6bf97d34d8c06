// Storages that something is derived from and kept: weights whose packed or folded forms compiled programs hold. Tells
// when the bytes of one change without a new version, or when it dies. Costs the others one load.
#pragma once
#include "runtime/core/Storage.h"
#include <array>
#include <memory>

namespace dlc {

class StorageWatch {
public:
  /// Told, without any lock held, that a storage it listens to died or was written.
  class Listener {
  public:
    virtual ~Listener() = default;
    virtual void changed(const Storage *storage) = 0;
  };

  /// Names the bytes that `storage` has at its current version: no two contents that differ, of any two storages, have
  /// equal stamp and version. `listener` is told once when that ends (if it is alive then).
  static uint64_t watch(Storage &storage, const std::weak_ptr<Listener> &listener = {});
  /// The stamp of a watched storage; 0 if it is not watched.
  static uint64_t stampOf(const Storage &storage);
  /// Counts deaths of and writes to watched storages: while it stands still, all stamps do.
  static uint64_t generation() { return generation_.load(std::memory_order_acquire); }

  /// The bytes changed and the version did not, or will later: called by whoever writes for a compiled program.
  static void wrote(const Storage &storage) {
    if (mayKnow(&storage))
      forget(&storage, false);
  }
  static void died(const Storage *storage) {
    if (mayKnow(storage))
      forget(storage, true);
  }

  /// Marks the memory of a module's buffer: it belongs to the program more than to a call.
  static void markState(Storage &storage);
  static bool isMarkedState(const Storage &storage);
  /// Storages in the table.
  static size_t size();

private:
  static constexpr size_t kFilterBits = 1 << 12;
  static size_t slotOf(const Storage *s) { return (reinterpret_cast<uintptr_t>(s) >> 4) * 0x9e3779b97f4a7c15ull >> 52; }
  static bool mayKnow(const Storage *s) { return filter_[slotOf(s)].load(std::memory_order_relaxed) != 0; }
  static void forget(const Storage *storage, bool died);
  friend struct WatchTable;

  static inline std::array<std::atomic<uint16_t>, kFilterBits> filter_{}; // watched storages by hash
  static inline std::atomic<uint64_t> generation_{1};
};

} // namespace dlc
