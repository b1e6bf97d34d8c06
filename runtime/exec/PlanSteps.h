// Many runs of one plan whose operands differ in nothing but where they lie: the steps of a loop.
#pragma once
#include "runtime/core/Tensor.h"

namespace dlc {

/// Where an operand of a step has its first element.
struct PlanPlace {
  Storage *storage;
  int64_t offset; ///< in elements of the operand's dtype from the start of the storage
};

struct PlanSteps {
  size_t steps = 0;
  Span<const Tensor> inputs;    ///< of the first step
  Span<const Tensor> outputs;   ///< of the first step: memory with the layout that the plan gives its results
  Span<const PlanPlace> places; ///< steps rows, each of the inputs and then the outputs
};

} // namespace dlc
