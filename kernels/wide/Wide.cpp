// Compiled with -march=x86-64-v4 and with DLC_ISA and `scalar` renamed, so that no inline function here shares its name
// with one of the baseline code: the linker keeps either copy of those.
#include "kernels/nn/SoftmaxRows.h"
#include "kernels/wide/Wide.h"
#include "runtime/scalar/Primitives.h"

namespace dlc::kernels {
namespace {
#include "runtime/op/ScalarOps.inc"

constexpr LoopFn kLoops[] = {
#define DLC_WIDE(F) detail::loopOf<F, float>,
#include "kernels/elementwise/Wide.inc"
#undef DLC_WIDE
};
} // namespace

extern const WideCode kWideCode;
const WideCode kWideCode = {kLoops, softmaxRow<float>, logSoftmaxRow<float>, softmaxBackwardRow<float>,
                            logSoftmaxBackwardRow<float>};

} // namespace dlc::kernels
