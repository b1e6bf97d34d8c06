// Between Gemm.cpp and the code of each instruction set: one single-threaded sub-problem, and the tables of functions.
#pragma once
#include "kernels/lib/Gemm.h"
#include "runtime/core/Half.h"
#include <cstddef>
#include <cstdint>

namespace dlc::kernels::detail {

/// Rows of B that are summed in registers before C is updated. The same for every instruction set and problem, so that
/// neither the machine nor the number of threads changes the order of a sum.
constexpr int64_t kSliceRows = 384;

/// Slices are equal (but for the last), so that a K just over a slice does not leave a sliver.
inline int64_t sliceRows(int64_t k) {
  int64_t slices = (k + kSliceRows - 1) / kSliceRows;
  return slices <= 1 ? k : ((k + slices - 1) / slices + 3) / 4 * 4;
}

/// A part of a product. S: storage of A and B; T: type of C and of the sums. No size is 0.
template <class S, class T> struct CoreArgs {
  int64_t m, n, k;
  const S *a;
  int64_t aRow, aCol;
  const S *b;
  int64_t bRow, bCol;
  T *c;
  int64_t cRow, cCol;
  T alpha, beta;
  /// B in packed form, or null; its columns from `packedCol` (a multiple of the panel width) are meant.
  const T *packedB;
  int64_t packedN, packedCol;
};

/// The functions of one instruction set for one pair of types.
template <class S, class T> struct CoreCode {
  /// C += A * B by register tiles.
  void (*tiles)(const CoreArgs<S, T> &);
  /// The same by dot products along k; needs aCol == bRow == 1 and no packed B. Null if T has none.
  void (*dots)(const CoreArgs<S, T> &);
  /// Packs all of B: slices of sliceRows(k) rows, each as panels of panelCols columns, padded with zeros.
  void (*packB)(int64_t k, int64_t n, const S *b, int64_t bRow, int64_t bCol, T *out);
  int panelCols, panelRows, lanes;
};

/// The storage types with code of their own; signed integers use the unsigned ones.
struct CoreTable {
  CoreCode<float, float> f32;
  CoreCode<double, double> f64;
  CoreCode<Half, float> f16;
  CoreCode<BFloat16, float> bf16;
  CoreCode<uint8_t, uint8_t> u8;
  CoreCode<uint16_t, uint16_t> u16;
  CoreCode<uint32_t, uint32_t> u32;
  CoreCode<uint64_t, uint64_t> u64;
};
/// The tables; the AVX-512 one must only be used where isAvx512Usable().
const CoreTable &avx2Table();
const CoreTable &avx512Table();
bool isAvx512Usable();

/// Slots of scratch(): A's and B's panels, sums of narrow types, and two for the callers of the core.
enum ScratchSlot { kScratchA, kScratchB, kScratchSums, kScratchColumns, kScratchRows, kScratchSlots };

/// The functions in use for a storage type: float, double, Half, BFloat16, or an unsigned integer.
template <class S> const CoreCode<S, GemmAcc<S>> &coreCode();

/// The type that computes for T: integers wrap alike with and without a sign.
template <class T> struct Storage {
  using type = T;
};
template <> struct Storage<int8_t> {
  using type = uint8_t;
};
template <> struct Storage<int16_t> {
  using type = uint16_t;
};
template <> struct Storage<int32_t> {
  using type = uint32_t;
};
template <> struct Storage<int64_t> {
  using type = uint64_t;
};
template <class T> using StorageOf = typename Storage<T>::type;

/// Memory of the calling thread that lasts until its next request for the same slot; 64-byte aligned.
void *scratch(ScratchSlot slot, size_t bytes);
/// Rows of A kept in the second-level cache for slices of `k` rows of elements of `elementSize` bytes.
int64_t blockRows(int64_t k, size_t elementSize);
/// Columns of B kept in the last-level cache.
int64_t blockCols(int64_t k, size_t elementSize);

} // namespace dlc::kernels::detail
