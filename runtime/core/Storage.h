// A block of bytes that tensors view, with the version that in-place ops bump.
#pragma once
#include "runtime/core/Ref.h"
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace dlc {

class Storage;

/// Who knows the contents of a storage that has none yet, or whose contents are about to change: a recorder.
class LazySource {
public:
  virtual ~LazySource() = default;
  /// Makes `storage.data()` hold its current value and detaches itself (setLazy(nullptr)).
  virtual void force(Storage &storage) = 0;
  /// The storage dies without having been forced.
  virtual void released(Storage &storage) = 0;
};

class Storage : public RefCounted {
public:
  /// Uninitialised memory from the caching allocator.
  static Ref<Storage> allocate(size_t bytes);
  /// Memory of somebody else, given back by `release`. Marked foreign: others may write to it at any time.
  static Ref<Storage> wrap(void *data, size_t bytes, std::function<void()> release);
  /// No memory yet; `source` provides it on demand.
  static Ref<Storage> deferred(size_t bytes, LazySource *source);
  ~Storage();

  size_t bytes() const { return bytes_; }
  /// The first byte; runs the pending program first if there is one. Null for 0 bytes.
  void *data() {
    if (lazy_)
      lazy_->force(*this);
    return data_;
  }
  /// The memory as it is, without forcing (null while deferred).
  void *rawData() const { return data_; }
  /// Gives a deferred storage its memory; frees what it had.
  void adopt(void *data);
  /// Takes over the memory of `other` (of the same size), leaving it empty.
  void swapData(Storage &other);

  LazySource *lazy() const { return lazy_; }
  void setLazy(LazySource *s) { lazy_ = s; }
  /// A recorder's record of this storage, valid while `noteEpoch` is the recorder's.
  void *note = nullptr;
  uint64_t noteEpoch = 0;

  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bumpVersion() { version_.fetch_add(1, std::memory_order_relaxed); }
  /// Others (NumPy, DLPack, data_ptr) can read or write this memory without dlc knowing.
  bool foreign() const { return foreign_; }
  void markForeign() {
    if (exportHook)
      exportHook(*this);
    foreign_ = true;
  }
  /// Called before a storage is given to others: recorded reads of it must happen first. Set by capture.
  static inline void (*exportHook)(Storage &storage) = nullptr;

private:
  Storage(void *data, size_t bytes) : data_(data), bytes_(bytes) {}
  void *data_ = nullptr;
  size_t bytes_ = 0;
  LazySource *lazy_ = nullptr;
  std::atomic<uint32_t> version_{0};
  bool foreign_ = false;
  std::function<void()> release_;
};

} // namespace dlc
