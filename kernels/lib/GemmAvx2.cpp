// The product kernels for AVX2. Everything with code is in an anonymous namespace, so that no other file can
// come to share a function compiled for these instructions.
#include "kernels/lib/GemmCore.h"
#include <type_traits>
#include <utility>

#define DLC_GEMM_VECTOR_BYTES 32
#define DLC_GEMM_ROWS 6

namespace dlc::kernels::detail {

namespace {
#include "kernels/lib/GemmTiles.h"

#include "kernels/lib/GemmPack.h"

#include "kernels/lib/GemmBlocks.h"
} // namespace

const CoreTable &avx2Table() { return kTable; }

} // namespace dlc::kernels::detail
