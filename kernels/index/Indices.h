// Index operands: read as row-major int64, checked before any element is touched.
#pragma once
#include "kernels/common/Copy.h"
#include "runtime/core/Error.h"

namespace dlc::kernels {

/// An error naming the op, the index and the bound.
[[noreturn]] inline void failIndex(const char *op, const char *argument, int64_t index, int64_t dim, int64_t bound,
                                   ErrorKind kind = ErrorKind::Index) {
  fail(kind, op, ": index ", index, " in `", argument, "` is out of bounds for dimension ", dim, " of size ", bound,
       "\nGive indices from 0 to ", bound - 1, ".");
}

/// `index` as row-major int64, every element of it in [0, bound). Outside, gather and scatter raise RuntimeError as
/// PyTorch does, the others IndexError.
inline Tensor checkedIndices(const char *op, const char *argument, const Tensor &index, int64_t dim, int64_t bound,
                             ErrorKind kind = ErrorKind::Index) {
  Tensor flat = asContiguous(index, DType::I64);
  const int64_t *p = flat.dataAs<int64_t>();
  int64_t n = flat.numel(), bad = 0;
  for (int64_t i = 0; i < n; ++i)
    bad |= static_cast<uint64_t>(p[i]) >= static_cast<uint64_t>(bound);
  if (bad)
    for (int64_t i = 0; i < n; ++i)
      if (p[i] < 0 || p[i] >= bound)
        failIndex(op, argument, p[i], dim, bound, kind);
  return flat;
}

} // namespace dlc::kernels
