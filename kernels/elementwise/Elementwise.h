// Elementwise kernels: one contiguous loop per scalar function and compute type, driven over strided operands of any
// dtype by tiles. Included by the generated kernels (ElementwiseKernels.inc) and by hand-written ones.
#pragma once
#include "kernels/common/Convert.h"
#include "kernels/elementwise/Loops.h"
#include "runtime/op/OpInfo.h"

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

void runElementwise(const Operands &in, const LoopTable &table, Span<Tensor> outs);

/// Runs scalar function F: {kArity, kTypes (bit per dtype it has loops for; f16 and bf16 use f32), kBoolOperands,
/// kWide (see LoopTable), run(builder, operands...)}. Operands of a dtype without a loop are brought to the default
/// float.
template <class F> void run(const Operands &in, Span<Tensor> outs) {
  static constexpr LoopTable table = detail::tableOf<F>();
  runElementwise(in, table, outs);
}

} // namespace dlc::kernels
