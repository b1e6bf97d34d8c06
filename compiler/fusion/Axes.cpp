// Union of axes with splitting.
#include "compiler/fusion/Axes.h"

namespace dlc::compiler {

bool divides(const Dim &a, const Dim &b, Dim &quotient) {
  if (b.isConst() && b.value() == 0)
    return false;
  if (a.isConst() && b.isConst()) {
    if (a.value() % b.value() != 0)
      return false;
    quotient = Dim(a.value() / b.value());
    return true;
  }
  if (b.value() == 0)
    return false;
  quotient = floorDiv(a, b);
  return (quotient * b).same(a);
}

AxisId AxisTable::add(Dim size) {
  AxisId id = static_cast<AxisId>(axes_.size());
  axes_.push_back({size, id, {}});
  return id;
}

AxisId AxisTable::find(AxisId a) const {
  while (axes_[a].alias != a)
    a = axes_[a].alias;
  return a;
}

void AxisTable::appendLeaves(AxisId a, AxisList &out) const {
  a = find(a);
  if (axes_[a].parts.empty()) {
    if (!axes_[a].size.same(Dim(1)))
      out.push_back(a);
    return;
  }
  for (AxisId p : axes_[a].parts)
    appendLeaves(p, out);
}

AxisList AxisTable::leaves(AxisId axis) const {
  AxisList out;
  appendLeaves(axis, out);
  return out;
}

AxisList AxisTable::leaves(const AxisList &axes) const {
  AxisList out;
  for (AxisId a : axes)
    appendLeaves(a, out);
  return out;
}

bool AxisTable::unify(const AxisList &left, const AxisList &right) {
  AxisList a = leaves(left), b = leaves(right);
  while (!a.empty() && !b.empty()) {
    AxisId x = a.back(), y = b.back();
    a.pop_back();
    b.pop_back();
    if (x == y)
      continue;
    if (axes_[x].size.same(axes_[y].size)) {
      axes_[y].alias = x;
      // An axis may occur again further out (then the value has it twice, which the group refuses).
      for (AxisId &other : a)
        other = find(other);
      for (AxisId &other : b)
        other = find(other);
      continue;
    }
    Dim quotient;
    bool splitX = divides(axes_[x].size, axes_[y].size, quotient);
    if (!splitX && !divides(axes_[y].size, axes_[x].size, quotient))
      return false;
    if (!splitX)
      std::swap(x, y);
    AxisId outer = add(quotient);
    axes_[x].parts = {outer, y};
    (splitX ? a : b).push_back(outer);
  }
  return a.empty() && b.empty();
}

} // namespace dlc::compiler
