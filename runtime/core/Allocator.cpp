// Size classes: powers of two split in four from 64 bytes, in 32 from 16 MB (an arena must not grow by a quarter). One
// short lock a call; the system is asked outside of it.
#include "runtime/core/Allocator.h"
#include "runtime/core/Error.h"
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <vector>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace dlc {
namespace {

constexpr int kFineLog = 24;
constexpr int kClasses = 1 + (kFineLog - 6) * 4 + 32 * 24;
constexpr size_t kMaxCachedBlock = size_t(1) << 32;
constexpr size_t kHugePage = size_t(2) << 20;

/// The class of a request and the bytes of its blocks.
int classOf(size_t bytes, size_t &rounded) {
  if (bytes <= 64) {
    rounded = 64;
    return 0;
  }
  int log = 63 - __builtin_clzll(bytes - 1); // 2^log < bytes <= 2^(log+1)
  int split = log < kFineLog ? 2 : 5;
  size_t step = size_t(1) << (log - split);
  size_t part = (bytes - 1 - (size_t(1) << log)) / step; // 0 .. 2^split - 1
  rounded = (size_t(1) << log) + (part + 1) * step;
  rounded = (rounded + 63) & ~size_t(63);
  if (log < kFineLog)
    return 1 + (log - 6) * 4 + static_cast<int>(part);
  return 1 + (kFineLog - 6) * 4 + (log - kFineLog) * 32 + static_cast<int>(part);
}

struct State {
  std::mutex mutex;
  std::vector<void *> free[kClasses];
  size_t blockBytes[kClasses] = {};
  MemoryStats stats;
};

State &state() {
  static State *s = [] {
    auto *fresh = new State; // never destroyed: tensors may outlive static destructors
    pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); }, [] { state().mutex.unlock(); });
    return fresh;
  }();
  return *s;
}

void *fromSystem(size_t rounded) {
  size_t align = rounded >= 2 * kHugePage ? kHugePage : 64;
  void *p = nullptr;
  if (posix_memalign(&p, align, rounded) != 0)
    return nullptr;
#ifdef __linux__
  if (align == kHugePage)
    madvise(p, rounded, MADV_HUGEPAGE);
#endif
  return p;
}

} // namespace

void *allocateBytes(size_t bytes) {
  if (!bytes)
    return nullptr;
  DLC_REQUIRE(bytes < (size_t(1) << 46), Memory, "cannot allocate ", bytes,
              " bytes of CPU memory\nuse smaller tensors, or free some first");
  size_t rounded;
  int cls = classOf(bytes, rounded);
  State &s = state();
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.stats.allocations++;
    s.stats.allocated += rounded;
    if (s.stats.allocated > s.stats.peakAllocated)
      s.stats.peakAllocated = s.stats.allocated;
    if (!s.free[cls].empty()) {
      void *p = s.free[cls].back();
      s.free[cls].pop_back();
      return p;
    }
    s.stats.systemAllocations++;
    s.stats.reserved += rounded;
    s.blockBytes[cls] = rounded;
  }
  void *p = fromSystem(rounded);
  if (!p) {
    emptyCache();
    p = fromSystem(rounded);
  }
  if (!p) {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.stats.allocated -= rounded;
    s.stats.reserved -= rounded;
    fail(ErrorKind::Memory, "cannot allocate ", bytes, " bytes of CPU memory\nuse smaller tensors, or free some first");
  }
  return p;
}

void freeBytes(void *p, size_t bytes) {
  if (!p)
    return;
  size_t rounded;
  int cls = classOf(bytes, rounded);
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.stats.allocated -= rounded;
  if (rounded > kMaxCachedBlock) {
    s.stats.reserved -= rounded;
    std::free(p);
    return;
  }
  s.free[cls].push_back(p);
}

void emptyCache() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  for (int c = 0; c < kClasses; ++c) {
    for (void *p : s.free[c]) {
      std::free(p);
      s.stats.reserved -= s.blockBytes[c];
    }
    s.free[c].clear();
  }
}

MemoryStats memoryStats() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.stats;
}

void resetPeakMemory() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.stats.peakAllocated = s.stats.allocated;
}

} // namespace dlc
