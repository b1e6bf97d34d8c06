// The attention kernels for AVX-512. Everything with code is in an anonymous namespace, as in the product kernels.
#include "kernels/lib/AttentionCore.h"
#include "runtime/scalar/Exp.h"
#include "runtime/scalar/Log.h"
#include "runtime/scalar/NativeBuilder.h"
#include <algorithm>
#include <cmath>
#include <immintrin.h>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#define DLC_GEMM_VECTOR_BYTES 64
#define DLC_GEMM_ROWS 14

namespace dlc::kernels::detail {
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
namespace {
#include "kernels/lib/GemmTiles.h"

#include "kernels/lib/GemmPack.h"

#include "kernels/lib/AttentionBlocks.h"

#include "kernels/lib/AttentionGrad.h"

constexpr AttentionTable kTable{makeCode<float>(), makeCode<double>(), makeCode<Half>(), makeCode<BFloat16>()};
} // namespace
#pragma clang attribute pop
const AttentionTable &avx512Attention() { return kTable; }

} // namespace dlc::kernels::detail
