// Places buffers with known lifetimes into one arena. Used once for each shape of a launch plan.
#pragma once
#include "runtime/core/Span.h"
#include <cstddef>
#include <cstdint>

namespace dlc {

/// A buffer that is live from step `first` to step `last`, both included.
struct ArenaInterval {
  int64_t first = 0, last = 0;
  size_t bytes = 0;
};

constexpr size_t kArenaAlignment = 64;

/// Chooses an offset for each interval, a multiple of kArenaAlignment, so that intervals that overlap in time are
/// disjoint in memory: larger ones first, each into the tightest gap that fits. Returns the size of the arena.
size_t planArena(Span<const ArenaInterval> intervals, Span<int64_t> offsets);

} // namespace dlc
