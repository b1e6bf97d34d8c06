// The caching allocator of CPU memory: freed blocks are kept by size class and handed out again.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dlc {

/// Byte and call counts since start (peak: since the last resetPeakMemory).
struct MemoryStats {
  int64_t allocated = 0;         ///< bytes in live blocks, as rounded up
  int64_t peakAllocated = 0;     ///< the highest `allocated`
  int64_t reserved = 0;          ///< bytes taken from the system, cached blocks included
  int64_t allocations = 0;       ///< blocks handed out
  int64_t systemAllocations = 0; ///< blocks that had to be taken from the system
};

/// Returns at least `bytes` bytes aligned to 64, uninitialised; null only for 0 bytes.
/// Throws MemoryError naming the size when the system has none left.
void *allocateBytes(size_t bytes);
/// Gives a block of allocateBytes back; `bytes` is what was asked for.
void freeBytes(void *p, size_t bytes);
/// Returns cached blocks to the system.
void emptyCache();
MemoryStats memoryStats();
void resetPeakMemory();

} // namespace dlc
