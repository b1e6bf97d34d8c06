// Reductions over any dimensions with a fixed order of additions: the result depends on shape and layout, never on
// the number of threads.
#pragma once
#include "runtime/core/Tensor.h"

namespace dlc::kernels {

enum class ReduceOp : uint8_t { Sum, Mean, Prod, Max, Min, All, Any };

/// out = op over dimensions `dims` of self (none: all). `out` has self's rank with 1 in the reduced dimensions, or
/// lacks them. Sums and products are taken in the compute type of out's dtype, elements are converted to it first;
/// maxima in self's. An empty sum is 0, an empty product 1.
void reduceInto(const Tensor &out, const Tensor &self, Ints dims, ReduceOp op);

/// Contiguous f32 or f64 sums in the order that every row kernel uses: 8 lanes x 4 accumulators, then a tree.
float sumRow(const float *x, int64_t n);
double sumRow(const double *x, int64_t n);

} // namespace dlc::kernels
