#include "kernels/common/Accumulate.h"
#include "kernels/elementwise/Elementwise.h"
#include "runtime/scalar/Arith.h"

namespace dlc::kernels {
namespace {
struct AccumulateFn {
  static constexpr int kWide = -1, kArity = 2;
  static constexpr uint32_t kTypes = (1u << kNumDTypes) - 1, kBoolOperands = 0;
  template <class B, class V> static V run(B &b, V x, V y) { return scalar::add_(b, x, y); }
};
} // namespace

void accumulateInto(const Tensor &dst, const Tensor &src) {
  Operands in("accumulate", Promotion::Arith);
  in.tensor(dst);
  in.tensor(src);
  Tensor out = dst;
  run<AccumulateFn>(in, Span<Tensor>(&out, 1));
}

} // namespace dlc::kernels
