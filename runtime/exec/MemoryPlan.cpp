// Best-fit placement: the list of placed buffers is kept ordered by offset, so that gaps are found in one walk.
#include "runtime/exec/MemoryPlan.h"
#include <numeric>

namespace dlc {

static size_t roundUp(size_t n) { return (n + kArenaAlignment - 1) & ~(kArenaAlignment - 1); }

size_t planArena(Span<const ArenaInterval> intervals, Span<int64_t> offsets) {
  std::vector<uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const ArenaInterval &x = intervals[a], &y = intervals[b];
    return x.bytes != y.bytes ? x.bytes > y.bytes : x.first != y.first ? x.first < y.first : a < b;
  });
  std::vector<uint32_t> placed; // by offset
  size_t total = 0;
  for (uint32_t i : order) {
    const ArenaInterval &want = intervals[i];
    size_t size = roundUp(want.bytes), end = 0, bestOffset = 0, bestGap = SIZE_MAX;
    offsets[i] = 0;
    if (size == 0)
      continue;
    for (uint32_t p : placed) {
      const ArenaInterval &other = intervals[p];
      if (other.last < want.first || want.last < other.first)
        continue;
      size_t from = static_cast<size_t>(offsets[p]);
      if (from >= end + size && from - end < bestGap) {
        bestGap = from - end;
        bestOffset = end;
      }
      end = std::max(end, from + roundUp(other.bytes));
    }
    size_t offset = bestGap != SIZE_MAX ? bestOffset : end;
    offsets[i] = static_cast<int64_t>(offset);
    total = std::max(total, offset + size);
    auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                               [&](size_t o, uint32_t p) { return o < static_cast<size_t>(offsets[p]); });
    placed.insert(at, i);
  }
  return total;
}

} // namespace dlc
