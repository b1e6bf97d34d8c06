// The random number state: a Philox seed and the offset of the next unused counter block.
#pragma once
#include "runtime/core/Ref.h"
#include <cstdint>

namespace dlc {

/// Each random op of n elements takes the counters [offset, offset + blocks) and advances by `blocks`, so a seed
/// gives the same numbers eager and compiled, on any number of threads.
class Generator : public RefCounted {
public:
  explicit Generator(uint64_t seed = 0) : seed_(seed) {}
  void manualSeed(uint64_t seed) {
    seed_ = seed;
    offset_ = 0;
  }
  uint64_t seed() const { return seed_; }
  uint64_t offset() const { return offset_; }
  void setOffset(uint64_t o) { offset_ = o; }
  /// Takes `blocks` counter blocks (four 32-bit words each) and returns the first.
  uint64_t take(uint64_t blocks) {
    uint64_t first = offset_;
    offset_ += blocks;
    return first;
  }

private:
  uint64_t seed_, offset_ = 0;
};

/// The generator used when an op gets none (dlc.manual_seed).
Generator &defaultGenerator();

} // namespace dlc
