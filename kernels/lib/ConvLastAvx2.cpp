// The channels-last convolution for AVX2. Everything with code is in an anonymous namespace, so that no other file can
// come to share a function compiled for these instructions.
#include "kernels/lib/ConvLastCore.h"
#include <type_traits>

#define DLC_CONV_LANES 8
#define DLC_CONV_PIXELS 4
#define DLC_CONV_VECTORS 3
#define DLC_CONV_SUMS 12

namespace dlc::kernels::detail {

namespace {
#include "kernels/lib/ConvLastTiles.h"
} // namespace
const ConvLastCode &convLastAvx2() { return kCode; }

} // namespace dlc::kernels::detail
