// Elementwise kernels: one contiguous loop per scalar function and compute type, driven over strided operands of any
// dtype by tiles. Included by the generated kernels (ElementwiseKernels.inc) and by hand-written ones.
#pragma once
#include "kernels/common/Convert.h"
#include "runtime/op/OpInfo.h"
#include "runtime/scalar/NativeBuilder.h"
#include <tuple>

namespace dlc::kernels {

/// The inputs of one call, in the order in which the scalar function takes them.
class Operands {
public:
  Operands(const char *op, Promotion promotion) : op_(op), promotion_(promotion) {}
  /// Takes part in type promotion.
  void tensor(const Tensor &t);
  /// A condition: always bool.
  void boolTensor(const Tensor &t);
  /// Converted to the compute type; does not promote.
  void number(const Number &n);
  void number(const std::optional<Number> &n) { number(*n); }
  void real(double v) { number(Number(v)); }

  const char *op() const { return op_; }
  int size() const { return size_; }
  /// The dtype that the operands are brought to.
  DType promoted() const;

private:
  friend class Runner;
  enum class Role : uint8_t { Promoted, Bool, Scalar };
  struct Item {
    const Tensor *tensor = nullptr;
    Role role = Role::Promoted;
    int64_t raw = 0; // of a Scalar: the bits
    DType dtype = DType::F32;
  };
  void push(const Tensor &t, Role role);
  const char *op_;
  Promotion promotion_;
  int size_ = 0;
  Item items_[6];
};

/// Computes out[i] = f(in[i]...) over `n` contiguous elements; ptrs[0] is the output, which may be one of the inputs.
/// Returns the largest scalar::Fault.
using LoopFn = int64_t (*)(char *const *ptrs, int64_t n);

/// The loops of one scalar function, by compute dtype (null: none), with their result dtypes.
struct LoopTable {
  LoopFn loops[kNumDTypes];
  DType results[kNumDTypes];
  uint32_t boolOperands;
};

void runElementwise(const Operands &in, const LoopTable &table, Span<Tensor> outs);

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

/// Runs scalar function F: {kArity, kTypes (bit per dtype it has loops for; f16 and bf16 use f32), kBoolOperands,
/// run(builder, operands...)}. Operands of a dtype without a loop are brought to the default float.
template <class F> void run(const Operands &in, Span<Tensor> outs) {
  static constexpr LoopTable table = detail::tableOf<F>();
  runElementwise(in, table, outs);
}

} // namespace dlc::kernels
