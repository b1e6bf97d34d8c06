// Locks and waits that survive fork(): a child inherits memory, but none of the threads that were inside a critical
// section. Everything here may be used from any thread, with or without the GIL.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

namespace dlc {

/// A mutex that no other thread holds at the moment of a fork, so that the child finds it free and its data whole.
/// Hold it for short, and never while waiting for something that the forking thread may hold (the GIL).
class ForkMutex {
public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex &) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }

private:
  friend struct ForkRegistry;
  std::mutex mutex_;
  ForkMutex *next_ = nullptr, *previous_ = nullptr;
};

/// Work that takes long and uses locks of others (a compilation): a fork waits until nobody is inside, and whoever
/// wants to enter waits for the fork. Inside, nothing may wait for the GIL.
class ForkGate {
public:
  ForkGate();
  ~ForkGate();
  ForkGate(const ForkGate &) = delete;
  /// For the end of the process: waits until nobody is inside; from then on only this thread may enter, others wait for
  /// ever. What they would use is about to be destroyed.
  static void closeForExit();
  /// True between construction and destruction on this thread.
  static bool inside();
};

/// How many forks lie between this process and the first one: marks of threads that did not come along are stale.
uint64_t forkGeneration();

/// Something that others wait for, without state that a fork could break: wait returns when `bump` was called since
/// `now`, or after `milliseconds`.
class ChangeSignal {
public:
  uint32_t now() const { return count_.load(std::memory_order_acquire); }
  void bump();
  void wait(uint32_t since, int milliseconds);

private:
  std::atomic<uint32_t> count_{0};
};

} // namespace dlc
