// Choosing a template instance by dtype: kernels exist for compute types, f16 and bf16 go through f32.
#pragma once
#include "kernels/common/Convert.h"
#include "runtime/core/DType.h"

namespace dlc::kernels {

/// Calls f(TypeTag<T>{}) with the compute type of `t`.
template <class F> void visitCompute(DType t, F &&f) {
  visitDType(computeType(t), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>)
      f(tag);
  });
}

/// The same for float dtypes only: f is called with float or double.
template <class F> void visitFloat(DType t, F &&f) {
  if (t == DType::F64)
    f(TypeTag<double>{});
  else
    f(TypeTag<float>{});
}

/// Calls f(TypeTag<U>{}) with an unsigned type of that many bytes: for kernels that only move elements.
template <class F> void visitBytes(size_t bytes, F &&f) {
  switch (bytes) {
  case 1:
    return f(TypeTag<uint8_t>{});
  case 2:
    return f(TypeTag<uint16_t>{});
  case 4:
    return f(TypeTag<uint32_t>{});
  default:
    return f(TypeTag<uint64_t>{});
  }
}

} // namespace dlc::kernels
