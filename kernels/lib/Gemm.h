// Dense matrix products: C = alpha * A * B + beta * C for any size and strides, by packed register tiles.
// MLIR-free; used by eager kernels, and by compiled plans as the library that matmul is claimed for.
#pragma once
#include "runtime/core/Half.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace dlc::kernels {

/// The type in which products of `T` are summed: float for the 16-bit floats, the type itself otherwise.
template <class T> using GemmAcc = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// A K x N right-hand side already in the order that the kernel reads; made once for weights that do not change.
/// Holds a copy: later changes of the matrix are not seen.
template <class T> class PackedMatrix {
public:
  /// Packs b[p * rowStride + j * colStride], 0 <= p < k, 0 <= j < n.
  PackedMatrix(int64_t k, int64_t n, const T *b, int64_t rowStride, int64_t colStride);
  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  /// The packed elements: for each slice of rows, panels of columns.
  const GemmAcc<T> *data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }

private:
  struct Free {
    void operator()(void *p) const;
  };
  int64_t k_, n_;
  size_t bytes_ = 0;
  std::unique_ptr<GemmAcc<T>, Free> data_;
};

/// C[i, j] = alpha * sum_p A[i, p] * B[p, j] + beta * C[i, j], for each of `batch` problems.
/// Strides are in elements and may be anything, 0 and negative included, as long as C's elements are distinct.
/// With beta == 0, C is not read (NaN in it does not matter); with k == 0 the sum is 0. Integers wrap.
template <class T> struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const T *a = nullptr;
  int64_t aRow = 0, aCol = 1;
  const T *b = nullptr;
  int64_t bRow = 0, bCol = 1;
  T *c = nullptr;
  int64_t cRow = 0, cCol = 1;
  GemmAcc<T> alpha = 1, beta = 0;
  int64_t batch = 1;
  int64_t aBatch = 0, bBatch = 0, cBatch = 0;
  /// If set, `b` and its strides are ignored; k and n must be those of the packed matrix, batch 1.
  const PackedMatrix<T> *packedB = nullptr;
};

/// Computes on the calling thread. T: float, double, Half, BFloat16, and integers of 8 to 64 bits.
template <class T> void gemm(const GemmArgs<T> &args);

/// Computes on the thread pool. The result has the same bits as gemm's, whatever the number of threads.
template <class T> void gemmParallel(const GemmArgs<T> &args);

/// The instruction set in use, "avx512" or "avx2" (DLC_GEMM_ISA=avx2 asks for the older one).
const char *gemmIsa();

#define DLC_GEMM_TYPES(X)                                                                                              \
  X(float)                                                                                                             \
  X(double)                                                                                                            \
  X(::dlc::Half)                                                                                                       \
  X(::dlc::BFloat16) X(int8_t) X(int16_t) X(int32_t) X(int64_t) X(uint8_t) X(uint16_t) X(uint32_t) X(uint64_t)
#define DLC_X(T)                                                                                                       \
  extern template class PackedMatrix<T>;                                                                               \
  extern template void gemm(const GemmArgs<T> &);                                                                      \
  extern template void gemmParallel(const GemmArgs<T> &);
DLC_GEMM_TYPES(DLC_X)
#undef DLC_X

} // namespace dlc::kernels
