// The pool: each worker owns a slot of chunks that it and the others claim by CAS; the caller takes whatever has not
// been started, so a worker that never runs cannot hang it. Workers spin for 30 us and then sleep in a futex.
#include "runtime/core/ThreadPool.h"
#include "runtime/core/Interrupt.h"
#include "runtime/core/SerialScope.h"
#include "runtime/core/Error.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <linux/futex.h>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#include <x86intrin.h>

namespace dlc {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kChunksPerThread = 4;
constexpr int kFiner = 4; // see FineScope
constexpr auto kSpin = std::chrono::microseconds(30);
constexpr auto kCheckEvery = std::chrono::milliseconds(20);
using Clock = std::chrono::steady_clock;

thread_local bool inTask = false;
thread_local bool serialOnly = false, fineGrained = false;
std::atomic<bool (*)()> interruptCheck{nullptr};

/// Chunks [next, end) of the current loop, tagged with the loop's number so that a late CAS fails.
struct alignas(64) Slot {
  std::atomic<uint64_t> word{0};
  std::atomic<uint32_t> sleeping{0};

  static uint64_t pack(uint32_t epoch, uint32_t next, uint32_t end) {
    return (uint64_t(epoch) << 32) | (next << 16) | end;
  }
  static bool hasWork(uint64_t w) { return ((w >> 16) & 0xffff) < (w & 0xffff); }
  /// Claims a chunk; -1 if there is none.
  int claim() {
    uint64_t w = word.load(std::memory_order_acquire);
    while (hasWork(w))
      if (word.compare_exchange_weak(w, w + 0x10000, std::memory_order_acq_rel))
        return static_cast<int>((w >> 16) & 0xffff);
    return -1;
  }
  void wake() {
    if (sleeping.load(std::memory_order_relaxed) && sleeping.exchange(0))
      syscall(SYS_futex, reinterpret_cast<uint32_t *>(&sleeping), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
};

class Pool {
public:
  explicit Pool(int threads) : threads_(threads), slots_(new Slot[threads]) {
    for (int i = 1; i < threads; ++i)
      workers_.emplace_back([this, i] { work(i); });
  }
  /// Joins the workers. The object stays: a caller may still hold a pointer, and finds it busy for ever.
  void retire() {
    while (!tryEnter())
      std::this_thread::yield();
    stop_ = true;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (int i = 1; i < threads_; ++i)
      slots_[i].wake();
    for (std::thread &t : workers_)
      t.join();
  }
  int threads() const { return threads_; }
  bool tryEnter() { return !busy_.exchange(true, std::memory_order_acquire); }
  void leave() { busy_.store(false, std::memory_order_release); }
  void run(int64_t n, int64_t per, int chunks, RangeFn f, void *context);

private:
  void work(int self);
  void waitForWork(Slot &slot);
  void runChunk(int chunk);
  bool helpOnce(int self);
  void fail(std::exception_ptr e);

  const int threads_;
  std::unique_ptr<Slot[]> slots_;
  std::vector<std::thread> workers_;
  std::atomic<bool> busy_{false}, stop_{false};
  // The current loop; written by the caller while no chunk is claimed, read after a claim.
  int64_t n_ = 0, per_ = 0;
  RangeFn fn_ = nullptr;
  void *context_ = nullptr;
  uint32_t epoch_ = 0;
  alignas(64) std::atomic<int> done_{0};
  std::atomic<bool> failed_{false};
  std::mutex errorMutex_;
  std::exception_ptr error_;
};

void Pool::fail(std::exception_ptr e) {
  std::lock_guard<std::mutex> lock(errorMutex_);
  if (!error_)
    error_ = std::move(e);
  failed_.store(true, std::memory_order_relaxed);
}

void Pool::runChunk(int chunk) {
  if (!failed_.load(std::memory_order_relaxed)) {
    int64_t begin = chunk * per_, end = std::min(n_, begin + per_);
    try {
      fn_(context_, begin, end);
    } catch (...) {
      fail(std::current_exception());
    }
  }
  done_.fetch_add(1, std::memory_order_acq_rel);
}

/// Runs one unstarted chunk, the thread's own ones first.
bool Pool::helpOnce(int self) {
  for (int i = 0; i < threads_; ++i) {
    int chunk = slots_[(self + i) % threads_].claim();
    if (chunk < 0)
      continue;
    runChunk(chunk);
    return true;
  }
  return false;
}

void Pool::waitForWork(Slot &slot) {
  auto until = Clock::now() + kSpin;
  for (int i = 0;; ++i) {
    if (Slot::hasWork(slot.word.load(std::memory_order_acquire)) || stop_)
      return;
    _mm_pause();
    if (i % 16 == 15 && Clock::now() > until)
      break;
  }
  slot.sleeping.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (!Slot::hasWork(slot.word.load(std::memory_order_acquire)) && !stop_ && slot.sleeping.load())
    syscall(SYS_futex, reinterpret_cast<uint32_t *>(&slot.sleeping), FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
  slot.sleeping.store(0);
}

void Pool::work(int self) {
  inTask = true;
  while (!stop_) {
    waitForWork(slots_[self]);
    while (helpOnce(self)) {
    }
  }
}

void Pool::run(int64_t n, int64_t per, int chunks, RangeFn f, void *context) {
  n_ = n;
  per_ = per;
  fn_ = f;
  context_ = context;
  done_.store(0, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  ++epoch_;
  int each = (chunks + threads_ - 1) / threads_;
  for (int i = 0; i < threads_; ++i)
    slots_[i].word.store(Slot::pack(epoch_, std::min(i * each, chunks), std::min((i + 1) * each, chunks)),
                         std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int i = 1; i < threads_ && i * each < chunks; ++i)
    slots_[i].wake();
  auto check = interruptCheck.load(std::memory_order_relaxed);
  Clock::time_point next = check ? Clock::now() + kCheckEvery : Clock::time_point::max();
  auto poll = [&] {
    if (!check || Clock::now() < next)
      return;
    next = Clock::now() + kCheckEvery;
    if (check())
      fail(std::make_exception_ptr(Interrupted()));
  };
  while (helpOnce(0))
    poll();
  for (int spins = 0; done_.load(std::memory_order_acquire) != chunks; ++spins) {
    _mm_pause();
    if (spins % 1024 == 1023) {
      poll();
      std::this_thread::yield();
    }
  }
  if (failed_.load(std::memory_order_relaxed)) {
    std::exception_ptr e;
    std::swap(e, error_);
    std::rethrow_exception(e);
  }
}

int quotaOf(const char *path, const char *periodPath) {
  FILE *f = fopen(path, "r");
  if (!f)
    return kMaxThreads;
  long long quota = -1, period = 100000;
  int got = fscanf(f, "%lld %lld", &quota, &period);
  fclose(f);
  if (periodPath)
    if (FILE *p = fopen(periodPath, "r")) {
      if (fscanf(p, "%lld", &period) != 1)
        period = 100000;
      fclose(p);
    }
  if (got < 1 || quota <= 0 || period <= 0)
    return kMaxThreads;
  return static_cast<int>(std::clamp<long long>((quota + period - 1) / period, 1, kMaxThreads));
}

int defaultThreads() {
  if (const char *env = getenv("DLC_NUM_THREADS")) {
    int n = atoi(env);
    if (n >= 1)
      return std::min(n, kMaxThreads);
  }
  int n = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    n = CPU_COUNT(&set);
  n = std::min(n, quotaOf("/sys/fs/cgroup/cpu.max", nullptr));
  n = std::min(n, quotaOf("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  return std::clamp(n, 1, kMaxThreads);
}

std::atomic<int> wanted{0}; // 0: not decided yet
std::atomic<Pool *> current{nullptr};
std::mutex buildMutex;
/// Pools of earlier thread counts, see Pool::retire.
std::vector<Pool *> &retiredPools() {
  static auto *pools = new std::vector<Pool *>();
  return *pools;
}

/// In a forked child the workers do not exist: forget the pool (its memory is left behind) and build one on demand.
void afterForkInChild() {
  current.store(nullptr, std::memory_order_relaxed);
  new (&buildMutex) std::mutex();
}

Pool &pool() {
  if (Pool *p = current.load(std::memory_order_acquire))
    return *p;
  std::lock_guard<std::mutex> lock(buildMutex);
  if (!current.load(std::memory_order_acquire)) {
    static const int registered = pthread_atfork(nullptr, nullptr, afterForkInChild);
    (void)registered;
    current.store(new Pool(getNumThreads()), std::memory_order_release);
  }
  return *current.load(std::memory_order_acquire);
}

/// The caller alone, still in chunks where the loop is long, so that an interrupt is answered.
void runSerial(int64_t n, int64_t grain, RangeFn f, void *context) {
  auto check = inTask ? nullptr : interruptCheck.load(std::memory_order_relaxed);
  int64_t per = check ? std::max(std::max<int64_t>(grain, 1) * 4, (n + 63) / 64) : n;
  if (per >= n)
    return f(context, 0, n);
  auto next = Clock::now() + kCheckEvery;
  for (int64_t begin = 0; begin < n; begin += per) {
    f(context, begin, std::min(n, begin + per));
    if (Clock::now() < next)
      continue;
    next = Clock::now() + kCheckEvery;
    if (check())
      throw Interrupted();
  }
}

struct TaskScope {
  explicit TaskScope(Pool &p) : pool(p) { inTask = true; }
  ~TaskScope() {
    inTask = false;
    pool.leave();
  }
  Pool &pool;
};

} // namespace

int parallelShares(int64_t n, int64_t grain) {
  if (inTask || serialOnly || n <= 1)
    return 1;
  int64_t t = getNumThreads(), shares = n / std::max<int64_t>(grain, 1);
  if (t == 1 || shares < 2)
    return 1;
  return static_cast<int>(shares >= kChunksPerThread * t ? kChunksPerThread * t : std::min(t, shares));
}

void parallelFor(int64_t n, int64_t grain, RangeFn f, void *context) {
  if (n <= 0)
    return;
  int chunks = parallelShares(n, grain);
  if (chunks == 1)
    return runSerial(n, grain, f, context);
  Pool &p = pool();
  if (!p.tryEnter())
    return runSerial(n, grain, f, context);
  TaskScope scope(p);
  int64_t per = (n + chunks - 1) / chunks;
  if (per >= 256) // whole cache lines to a thread
    per = (per + 63) / 64 * 64;
  p.run(n, per, static_cast<int>((n + per - 1) / per), f, context);
}

int getNumThreads() {
  int n = wanted.load(std::memory_order_relaxed);
  if (n == 0) {
    n = defaultThreads();
    int expected = 0;
    if (!wanted.compare_exchange_strong(expected, n))
      n = expected;
  }
  return n;
}

void setNumThreads(int n) {
  DLC_REQUIRE(n >= 1 && n <= kMaxThreads, Value, "set_num_threads: n = ", n, " is out of range\nGive 1 to ",
              kMaxThreads, " threads.");
  DLC_REQUIRE(!inTask, Runtime, "set_num_threads: called inside a parallel loop\nCall it outside of kernels.");
  std::lock_guard<std::mutex> lock(buildMutex);
  wanted.store(n);
  Pool *old = current.load();
  if (!old || old->threads() == n)
    return;
  old->retire();
  retiredPools().push_back(old);
  current.store(nullptr);
}

bool inParallelRegion() { return inTask; }

SerialScope::SerialScope(bool on) : previous_(serialOnly) { serialOnly = on || previous_; }
SerialScope::~SerialScope() { serialOnly = previous_; }

FineScope::FineScope(bool on) : previous_(fineGrained) { fineGrained = on || previous_; }
FineScope::~FineScope() { fineGrained = previous_; }
int64_t taskGrain(int64_t otherwise) { return fineGrained ? std::max<int64_t>(1, otherwise / kFiner) : otherwise; }

void setInterruptCheck(bool (*check)()) { interruptCheck.store(check); }

void throwIfInterrupted() {
  auto check = interruptCheck.load(std::memory_order_relaxed);
  if (check && !inTask && check())
    throw Interrupted();
}

} // namespace dlc
