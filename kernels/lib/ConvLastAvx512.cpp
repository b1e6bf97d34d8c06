// The channels-last convolution for AVX-512. Everything with code is in an anonymous namespace, so that no other file
// can come to share a function compiled for these instructions.
#include "kernels/lib/ConvLastCore.h"
#include <type_traits>

#define DLC_CONV_LANES 16
#define DLC_CONV_PIXELS 7
#define DLC_CONV_VECTORS 2
#define DLC_CONV_SUMS 28

namespace dlc::kernels::detail {
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
namespace {
#include "kernels/lib/ConvLastTiles.h"
} // namespace
#pragma clang attribute pop
const ConvLastCode &convLastAvx512() { return kCode; }

} // namespace dlc::kernels::detail
