// What a number becomes where an op wants a tensor (`1 - x`): one rule for recordings and for rules over IR values.
#pragma once
#include "runtime/core/Tensor.h"

namespace dlc {

/// Collects the operands beside the number, then gives its dtype: it must not lift them, nor lose digits that they
/// keep.
class NumberType {
public:
  explicit NumberType(Category category) : category_(category) {}
  void beside(DType type, bool dimensioned) {
    if (categoryOf(type) != category_)
      return;
    wide_ |= type == DType::F64;
    scalars_ = any_ ? promoteTypes(scalars_, type) : type;
    any_ = true;
    dimensioned_ |= dimensioned;
  }
  DType get() const {
    if (wide_)
      return DType::F64;
    // A 0-d tensor of the usual type lifts no dimensioned one of its category, but it would lift a 0-d one.
    if (any_ && !dimensioned_)
      return scalars_;
    return category_ == Category::Float ? defaultDType() : category_ == Category::Int ? DType::I64 : DType::Bool;
  }

private:
  Category category_;
  DType scalars_ = DType::F32;
  bool any_ = false, dimensioned_ = false, wide_ = false;
};

} // namespace dlc
