// A plan step that runs an op's eager kernel on tensors over the plan's memory.
#pragma once
#include "runtime/core/Archive.h"
#include "runtime/exec/LaunchPlan.h"
#include "runtime/op/OpInfo.h"

namespace dlc {

/// A tensor argument of a call: the position among the step's tensors, or for a number in the place of a tensor the
/// position among its integers. Neither: the absent entry of a list.
struct CallSlot {
  int32_t tensor = -1;
  int32_t number = -1;
  Category category = Category::Int;
};

class OpCall : public PlanCall {
public:
  /// `args`: tensors as slots; a Number with ref() stands for integer number `numberAt(n)`; the Dims of all arguments
  /// in order are the integers from `dimsAt`; a generator's seed and offset are those from `rngAt`.
  /// `firstOut`: position of the first result among the tensors, which are the last ones.
  OpCall(const OpInfo &op, Span<const Arg<CallSlot>> args, uint32_t dimsAt, uint32_t rngAt, uint32_t firstOut);
  void run(Span<Tensor> tensors, Ints ints) const override;
  /// For the persistent cache: the op by name, and its arguments.
  void write(archive::Writer &out) const;
  static std::unique_ptr<OpCall> read(archive::Reader &in);

  static Number numberSlot(Category c, uint32_t at) {
    Number hint = c == Category::Float ? Number(1.0) : c == Category::Bool ? Number(true) : Number(int64_t(1));
    return Number::symbolic(hint, reinterpret_cast<const void *>(uintptr_t(at) + 1));
  }

private:
  const OpInfo &op_;
  OwnedArgs<CallSlot> args_;
  uint32_t dimsAt_, rngAt_, firstOut_;
  size_t numValues_ = 0, numDims_ = 0;
};

} // namespace dlc
