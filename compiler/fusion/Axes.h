// Loop axes of a group under construction. The dims of its values are sequences of axes (mixed-radix digits, outermost
// first), so that a reshape only regroups digits. Equality of sizes is that of canonical expressions, never of hints.
#pragma once
#include "runtime/core/Dim.h"
#include <cstdint>
#include <vector>

namespace dlc::compiler {

using AxisId = uint32_t;
using AxisList = SmallVec<AxisId>;

/// a / b if the expressions divide exactly.
bool divides(const Dim &a, const Dim &b, Dim &quotient);

class AxisTable {
public:
  /// A new axis of this size.
  AxisId add(Dim size);
  /// Makes the two sequences the same sequence of digits, splitting axes where needed. False if no split does it.
  bool unify(const AxisList &a, const AxisList &b);
  /// The digits of a sequence, outermost first, without those of size 1.
  AxisList leaves(const AxisList &axes) const;
  AxisList leaves(AxisId axis) const;
  const Dim &size(AxisId leaf) const { return axes_[leaf].size; }

private:
  struct Axis {
    Dim size;
    AxisId alias; // itself if none
    AxisList parts;
  };
  AxisId find(AxisId a) const;
  void appendLeaves(AxisId a, AxisList &out) const;
  std::vector<Axis> axes_;
};

} // namespace dlc::compiler
