// The caching allocator: alignment, reuse, statistics, failure.
#include "runtime/core/Allocator.h"
#include "runtime/core/Error.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace dlc;

namespace {

TEST(Allocator, BlocksAreAlignedAndReused) {
  for (size_t n : {1u, 63u, 64u, 65u, 100u, 4096u, 100000u, 5000000u}) {
    void *p = allocateBytes(n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
    std::memset(p, 1, n);
    freeBytes(p, n);
    int64_t system = memoryStats().systemAllocations;
    void *q = allocateBytes(n);
    EXPECT_EQ(p, q) << n;
    EXPECT_EQ(memoryStats().systemAllocations, system);
    freeBytes(q, n);
  }
}

TEST(Allocator, EveryClassHoldsWhatWasAskedFor) {
  for (size_t n = 1; n < 5000; ++n) {
    int64_t before = memoryStats().allocated;
    void *p = allocateBytes(n);
    EXPECT_GE(memoryStats().allocated - before, static_cast<int64_t>(n));
    freeBytes(p, n);
    EXPECT_EQ(memoryStats().allocated, before);
  }
}

TEST(Allocator, PeakAndCache) {
  resetPeakMemory();
  int64_t base = memoryStats().peakAllocated;
  void *p = allocateBytes(1 << 20);
  freeBytes(p, 1 << 20);
  EXPECT_GE(memoryStats().peakAllocated - base, 1 << 20);
  EXPECT_GE(memoryStats().reserved, 1 << 20);
  emptyCache();
  EXPECT_EQ(memoryStats().reserved, memoryStats().allocated);
}

TEST(Allocator, FailureIsAMemoryError) {
  int64_t before = memoryStats().allocated;
  try {
    allocateBytes(size_t(1) << 60);
    FAIL();
  } catch (const Error &e) {
    EXPECT_EQ(e.kind(), ErrorKind::Memory);
  }
  EXPECT_EQ(memoryStats().allocated, before);
  EXPECT_EQ(allocateBytes(0), nullptr);
}

} // namespace
