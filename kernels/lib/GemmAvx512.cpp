// The product kernels for AVX-512. Everything with code is in an anonymous namespace, so that no other file can
// come to share a function compiled for these instructions.
#include "kernels/lib/GemmCore.h"
#include <type_traits>
#include <utility>

#define DLC_GEMM_VECTOR_BYTES 64
#define DLC_GEMM_ROWS 14

namespace dlc::kernels::detail {
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
namespace {
#include "kernels/lib/GemmTiles.h"

#include "kernels/lib/GemmPack.h"

#include "kernels/lib/GemmBlocks.h"
} // namespace
#pragma clang attribute pop
const CoreTable &avx512Table() { return kTable; }

} // namespace dlc::kernels::detail
