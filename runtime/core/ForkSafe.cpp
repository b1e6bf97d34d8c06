// The fork handlers. Before a fork: the gate is closed and empty, and every ForkMutex is held by the forking thread.
// A thread may hold one ForkMutex and want another, so they are taken by trying, and all given back when one is busy.
#include "runtime/core/ForkSafe.h"
#include <chrono>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace dlc {
namespace {
std::atomic<int> insideGate{0};
std::atomic<bool> gateClosed{false};
std::atomic<uint64_t> generation{0};
thread_local int gateDepth = 0;
std::atomic<bool> closedForExit{false};
thread_local bool exitsProcess = false;

bool mustWait() { return !gateDepth && (gateClosed || (closedForExit && !exitsProcess)); }

void pauseShortly() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }
} // namespace

struct ForkRegistry {
  std::mutex mutex;
  ForkMutex *first = nullptr;

  static ForkRegistry &get() {
    static ForkRegistry *registry = [] {
      auto *fresh = new ForkRegistry; // outlives static destructors
      pthread_atfork([] { get().prepare(); }, [] { get().release(); }, [] { get().inChild(); });
      return fresh;
    }();
    return *registry;
  }

  void add(ForkMutex *m) {
    std::lock_guard<std::mutex> lock(mutex);
    m->next_ = first;
    if (first)
      first->previous_ = m;
    first = m;
  }
  void remove(ForkMutex *m) {
    std::lock_guard<std::mutex> lock(mutex);
    (m->previous_ ? m->previous_->next_ : first) = m->next_;
    if (m->next_)
      m->next_->previous_ = m->previous_;
  }

  /// All or none.
  bool tryAll() {
    for (ForkMutex *m = first; m; m = m->next_)
      if (!m->mutex_.try_lock()) {
        for (ForkMutex *held = first; held != m; held = held->next_)
          held->mutex_.unlock();
        return false;
      }
    return true;
  }
  void prepare() {
    gateClosed = true;
    while (insideGate > gateDepth)
      pauseShortly();
    for (;;) {
      mutex.lock();
      if (tryAll())
        return;
      mutex.unlock();
      pauseShortly();
    }
  }
  void release() {
    for (ForkMutex *m = first; m; m = m->next_)
      m->mutex_.unlock();
    mutex.unlock();
    gateClosed = false;
  }
  void inChild() {
    generation++;
    insideGate = gateDepth;
    release();
  }
};

ForkMutex::ForkMutex() { ForkRegistry::get().add(this); }
ForkMutex::~ForkMutex() { ForkRegistry::get().remove(this); }

ForkGate::ForkGate() {
  ForkRegistry::get();
  for (;;) {
    while (mustWait())
      pauseShortly();
    insideGate++;
    if (!mustWait())
      break;
    insideGate--;
  }
  ++gateDepth;
}
ForkGate::~ForkGate() {
  --gateDepth;
  insideGate--;
}
void ForkGate::closeForExit() {
  exitsProcess = true;
  closedForExit = true;
  while (insideGate > gateDepth)
    pauseShortly();
}
bool ForkGate::inside() { return gateDepth > 0; }

uint64_t forkGeneration() {
  ForkRegistry::get();
  return generation.load(std::memory_order_relaxed);
}

void ChangeSignal::bump() {
  count_.fetch_add(1, std::memory_order_acq_rel);
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&count_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}
void ChangeSignal::wait(uint32_t since, int milliseconds) {
  timespec t{milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&count_), FUTEX_WAIT_PRIVATE, since, &t, nullptr, 0);
}

} // namespace dlc
