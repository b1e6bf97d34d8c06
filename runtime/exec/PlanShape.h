// The two tables behind a running plan: what is the same for all calls of one shape, and what one call owns.
#pragma once
#include "runtime/exec/StepTuner.h"
#include "runtime/exec/LaunchPlan.h"

namespace dlc {

/// In the slot list: the error slot of the context.
constexpr uint32_t kErrorSlot = UINT32_MAX;

/// Everything that follows from the values of the symbols. Shared and immutable.
struct LaunchPlan::Shape {
  struct Layout {
    Sizes sizes, strides;
    int64_t offset;
  };
  struct Split {
    int64_t extent, units, unit, grain; ///< `unit` points are handed out together, `grain` units at least
  };
  std::vector<int64_t> symbols;
  std::vector<Layout> layouts;       // of each buffer
  std::vector<int64_t> arenaOffsets; // of each root in the arena, in bytes
  std::vector<int64_t> ints;         // number operands are 0 here
  std::vector<Split> splits;         // of each parallel range
  size_t arenaBytes = 0;
  int64_t nanoseconds = 0;          // of a run, estimated
  std::unique_ptr<StepTuner> tuner; // which steps use the pool
};

/// What one running call owns; kept for the next call of the same shape.
struct LaunchPlan::Context {
  std::shared_ptr<const Shape> shape;
  Ref<Storage> arena;
  std::vector<void *> pointers; // of each slot; those of arena and constants are set once
  std::vector<Tensor> tensors;  // of each tensor slot
  std::vector<char *> bases;    // first element of each root
  std::vector<Tensor> roots;    // inputs and outputs while running, constants
  std::vector<int64_t> ints;
  std::shared_ptr<const DerivedSet> derived; // while running
  int64_t error = 0;
};

} // namespace dlc
