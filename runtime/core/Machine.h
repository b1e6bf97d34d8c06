// What the machine can do, measured: the limits that times of kernels are compared with. All calls run on the pool's
// threads and take some milliseconds.
#pragma once
#include <cstddef>

namespace dlc {

/// GFLOP/s of a loop of f32 FMAs in registers, as wide as the products are, all threads of the pool (or one) together.
double fmaPeak(bool allThreads);

/// Thousand million bytes a second of reading, or of copying (read and written bytes both count), over `bytes` of
/// memory for all threads together: each goes over its own part again and again.
double bandwidth(size_t bytes, bool copy, bool allThreads);

/// Bytes of the data cache of a level (1 to 3) that the system reports for the first core; 0 if it doesn't.
size_t cacheBytes(int level);

} // namespace dlc
