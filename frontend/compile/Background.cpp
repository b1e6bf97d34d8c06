// A queue and a thread that outlive static destructors. In a forked child the thread does not exist and none is
// started: a child is often short-lived and shares the machine with its siblings.
#include "frontend/compile/Background.h"
#include "runtime/core/ForkSafe.h"
#include <deque>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace dlc {
namespace {

constexpr int kNice = 5; // the calls that run eagerly meanwhile come first

struct Queue {
  ForkMutex mutex;
  ChangeSignal changed;
  std::deque<std::function<void()>> jobs;
  std::thread thread;
  bool running = false, stopped = false;
};
Queue &queue() {
  static Queue *q = new Queue;
  return *q;
}

void work() {
  Queue &q = queue();
  sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none); // waking it does not push the caller aside
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
  for (;;) {
    uint32_t seen = q.changed.now();
    std::function<void()> job;
    {
      std::lock_guard<ForkMutex> lock(q.mutex);
      if (q.stopped)
        return;
      if (!q.jobs.empty()) {
        job = std::move(q.jobs.front());
        q.jobs.pop_front();
        q.running = true;
      }
    }
    if (!job) {
      q.changed.wait(seen, 60000);
      continue;
    }
    job();
    job = nullptr; // may hold the last reference to a function
    {
      std::lock_guard<ForkMutex> lock(q.mutex);
      q.running = false;
    }
    q.changed.bump();
  }
}

} // namespace

bool backgroundCompiles() {
  Queue &q = queue();
  std::lock_guard<ForkMutex> lock(q.mutex);
  return !q.stopped && forkGeneration() == 0;
}

bool compileInBackground(std::function<void()> job) {
  Queue &q = queue();
  {
    std::lock_guard<ForkMutex> lock(q.mutex);
    if (q.stopped || forkGeneration() != 0)
      return false;
    if (!q.thread.joinable())
      q.thread = std::thread(work);
    q.jobs.push_back(std::move(job));
  }
  q.changed.bump();
  return true;
}

bool waitForBackground(int milliseconds) {
  Queue &q = queue();
  for (int waited = 0;; waited += 20) {
    uint32_t seen = q.changed.now();
    {
      std::lock_guard<ForkMutex> lock(q.mutex);
      if (forkGeneration() != 0 || (q.jobs.empty() && !q.running))
        return true;
    }
    if (waited >= milliseconds)
      return false;
    q.changed.wait(seen, 20);
  }
}

void stopBackground() {
  Queue &q = queue();
  std::deque<std::function<void()>> dropped;
  {
    std::lock_guard<ForkMutex> lock(q.mutex);
    q.stopped = true;
    dropped.swap(q.jobs);
  }
  q.changed.bump();
  if (forkGeneration() == 0 && q.thread.joinable())
    q.thread.join();
}

} // namespace dlc
