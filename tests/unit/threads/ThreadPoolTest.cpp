// The pool's promises: every index once, nesting, exceptions, interruption, resizing and fork.
#include "runtime/core/ThreadPool.h"
#include "runtime/core/Error.h"
#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dlc;

namespace {

class ThreadPoolTest : public ::testing::TestWithParam<int> {
protected:
  void SetUp() override { setNumThreads(GetParam()); }
  void TearDown() override { setInterruptCheck(nullptr); }
};

TEST_P(ThreadPoolTest, EveryIndexOnce) {
  for (int64_t n : {0, 1, 2, 3, 7, 63, 64, 65, 1000, 4097, 100003})
    for (int64_t grain : {1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> seen(n);
      parallelFor(n, grain, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i)
          seen[i]++;
      });
      EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](auto &v) { return v == 1; })) << n << " " << grain;
    }
}

TEST_P(ThreadPoolTest, NestedRunsInline) {
  std::atomic<int> total{0};
  parallelFor(64, 1, [&](int64_t b, int64_t e) {
    EXPECT_TRUE(GetParam() == 1 || inParallelRegion());
    auto id = std::this_thread::get_id();
    parallelFor(10, 1, [&](int64_t b2, int64_t e2) {
      EXPECT_TRUE(GetParam() == 1 || std::this_thread::get_id() == id);
      total += static_cast<int>((e2 - b2) * (e - b));
    });
  });
  EXPECT_EQ(total, 640);
  EXPECT_FALSE(inParallelRegion());
}

TEST_P(ThreadPoolTest, ExceptionReachesTheCaller) {
  for (int round = 0; round < 50; ++round)
    EXPECT_THROW(parallelFor(1000, 1,
                             [&](int64_t b, int64_t e) {
                               if (b <= 700 && 700 < e)
                                 fail(ErrorKind::Index, "here");
                             }),
                 Error);
  int64_t sum = 0;
  parallelFor(1, 1, [&](int64_t, int64_t) { sum = 1; });
  EXPECT_EQ(sum, 1);
}

TEST_P(ThreadPoolTest, InterruptStopsALongLoop) {
  setInterruptCheck([] { return true; });
  EXPECT_THROW(parallelFor(64, 1, [](int64_t, int64_t) { usleep(30000); }), Interrupted);
  setInterruptCheck(nullptr);
  std::atomic<int> n{0};
  parallelFor(64, 1, [&](int64_t b, int64_t e) { n += static_cast<int>(e - b); });
  EXPECT_EQ(n, 64);
}

TEST_P(ThreadPoolTest, ManyEmptyForks) {
  std::atomic<int64_t> total{0};
  for (int i = 0; i < 100000; ++i)
    parallelFor(8, 1, [&](int64_t b, int64_t e) { total.fetch_add(e - b, std::memory_order_relaxed); });
  EXPECT_EQ(total, 800000);
}

TEST_P(ThreadPoolTest, SleepingWorkersWakeUp) {
  for (int i = 0; i < 50; ++i) {
    usleep(200); // longer than the spin
    std::atomic<int64_t> total{0};
    parallelFor(100, 1, [&](int64_t b, int64_t e) { total += e - b; });
    EXPECT_EQ(total, 100);
  }
}

TEST_P(ThreadPoolTest, ForkedChildBuildsItsOwnPool) {
  parallelFor(64, 1, [](int64_t, int64_t) {});
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<int64_t> total{0};
    for (int i = 0; i < 100; ++i)
      parallelFor(64, 1, [&](int64_t b, int64_t e) { total += e - b; });
    _exit(total == 6400 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_P(ThreadPoolTest, CallersOnManyThreads) {
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        parallelFor(32, 1, [&](int64_t b, int64_t e) { total += e - b; });
    });
  for (auto &t : callers)
    t.join();
  EXPECT_EQ(total, 4 * 500 * 32);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, BadThreadCounts) {
  EXPECT_THROW(setNumThreads(0), Error);
  EXPECT_THROW(setNumThreads(100000), Error);
  EXPECT_GE(getNumThreads(), 1);
}

} // namespace
