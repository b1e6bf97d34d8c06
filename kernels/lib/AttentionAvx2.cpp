// The attention kernels for AVX2. Everything with code is in an anonymous namespace, as in the product kernels.
#include "kernels/lib/AttentionCore.h"
#include "runtime/scalar/Exp.h"
#include "runtime/scalar/Log.h"
#include "runtime/scalar/NativeBuilder.h"
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#define DLC_GEMM_VECTOR_BYTES 32
#define DLC_GEMM_ROWS 6

namespace dlc::kernels::detail {
namespace {
#include "kernels/lib/GemmTiles.h"

#include "kernels/lib/GemmPack.h"

#include "kernels/lib/AttentionBlocks.h"

#include "kernels/lib/AttentionGrad.h"

constexpr AttentionTable kTable{makeCode<float>(), makeCode<double>(), makeCode<Half>(), makeCode<BFloat16>()};
} // namespace
const AttentionTable &avx2Attention() { return kTable; }

} // namespace dlc::kernels::detail
