// The contiguous loops of elementwise kernels, one per scalar function and compute type. Depends on nothing that has
// inline code of its own, because kernels/wide compiles it for another instruction set.
#pragma once
#include "runtime/core/DType.h"
#include "runtime/scalar/NativeBuilder.h"
#include <tuple>
#include <utility>

namespace dlc::kernels {

/// Computes out[i] = f(in[i]...) over `n` contiguous elements; ptrs[0] is the output, which may be one of the inputs.
/// Returns the largest scalar::Fault.
using LoopFn = int64_t (*)(char *const *ptrs, int64_t n);

/// The loops of one scalar function, by compute dtype (null: none), with their result dtypes.
struct LoopTable {
  LoopFn loops[kNumDTypes];
  DType results[kNumDTypes];
  uint32_t boolOperands;
  int wide; // number of its f32 loop among those of kernels/wide, or -1
};

namespace detail {

// Loops that call libm cannot be vectorised, which is meant.
#pragma clang diagnostic ignored "-Wpass-failed"

template <class F, class V, size_t I> using OperandType = std::conditional_t<(F::kBoolOperands >> I & 1) != 0, bool, V>;

template <class F, class V, size_t... I> int64_t loop(char *const *ptrs, int64_t n, std::index_sequence<I...>) {
  using R = decltype(F::run(std::declval<scalar::NativeBuilder &>(), std::declval<OperandType<F, V, I>>()...));
  auto in = std::make_tuple(reinterpret_cast<const OperandType<F, V, I> *>(ptrs[I + 1])...);
  R *out = reinterpret_cast<R *>(ptrs[0]);
  scalar::NativeBuilder b;
  // Operands are disjoint or the very same elements, so no iteration reads what another wrote.
#pragma clang loop vectorize(assume_safety)
  for (int64_t i = 0; i < n; ++i)
    out[i] = F::run(b, std::get<I>(in)[i]...);
  return b.fault;
}

template <class F, class V> int64_t loopOf(char *const *ptrs, int64_t n) {
  return loop<F, V>(ptrs, n, std::make_index_sequence<F::kArity>());
}

template <class F, class V, size_t... I> constexpr DType resultOf(std::index_sequence<I...>) {
  return dtypeOfType<decltype(F::run(std::declval<scalar::NativeBuilder &>(),
                                     std::declval<OperandType<F, V, I>>()...))>;
}

template <class F, class V> constexpr void fill(LoopTable &t) {
  constexpr DType d = dtypeOfType<V>;
  constexpr uint32_t kHalves = 1u << int(DType::F16) | 1u << int(DType::BF16);
  constexpr bool wanted = (F::kTypes >> int(d) & 1) != 0 || (d == DType::F32 && (F::kTypes & kHalves) != 0);
  if constexpr (wanted) {
    t.loops[int(d)] = loopOf<F, V>;
    t.results[int(d)] = resultOf<F, V>(std::make_index_sequence<F::kArity>());
  }
}

template <class F> constexpr LoopTable tableOf() {
  LoopTable t{};
  t.boolOperands = F::kBoolOperands;
  t.wide = F::kWide;
  fill<F, bool>(t);
  fill<F, uint8_t>(t);
  fill<F, int8_t>(t);
  fill<F, int16_t>(t);
  fill<F, int32_t>(t);
  fill<F, int64_t>(t);
  fill<F, float>(t);
  fill<F, double>(t);
  return t;
}

} // namespace detail

} // namespace dlc::kernels
