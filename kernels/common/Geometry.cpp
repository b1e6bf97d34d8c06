#include "kernels/common/Geometry.h"
#include "runtime/core/Error.h"

namespace dlc::kernels {

Geometry::Geometry(Ints shape) : ndim(static_cast<int>(shape.size())) {
  DLC_REQUIRE(ndim <= kMaxDims, Runtime, "tensor of ", ndim, " dimensions\nKernels take up to ", kMaxDims, ".");
  for (int d = 0; d < ndim; ++d) {
    sizes[d] = shape[ndim - 1 - d];
    numel *= sizes[d];
  }
}

void Geometry::add(Ints operandSizes, Ints operandStrides, int64_t itemBytes) {
  int64_t *s = strides[operands++];
  int rank = static_cast<int>(operandSizes.size());
  for (int d = 0; d < ndim; ++d)
    s[d] = d >= rank || operandSizes[rank - 1 - d] == 1 ? 0 : operandStrides[rank - 1 - d] * itemBytes;
}

namespace {

/// Whether dimension a should be inside of b: by the first operand that tells them apart.
bool inside(const Geometry &g, int a, int b) {
  for (int k = 0; k < g.operands; ++k) {
    int64_t sa = std::abs(g.strides[k][a]), sb = std::abs(g.strides[k][b]);
    if (sa == 0 || sb == 0 || sa == sb)
      continue;
    return sa < sb;
  }
  return a < b;
}

} // namespace

void Geometry::finish() {
  int kept = 0;
  auto move = [&](int to, int from) {
    sizes[to] = sizes[from];
    for (int k = 0; k < operands; ++k)
      strides[k][to] = strides[k][from];
  };
  for (int d = 0; d < ndim; ++d)
    if (sizes[d] != 1)
      move(kept++, d);
  ndim = kept;
  // Insertion sort: the order is partial (zeros compare with nothing), and nearly always right already.
  for (int i = 1; i < ndim; ++i)
    for (int j = i; j > 0 && inside(*this, j, j - 1); --j) {
      std::swap(sizes[j], sizes[j - 1]);
      for (int k = 0; k < operands; ++k)
        std::swap(strides[k][j], strides[k][j - 1]);
    }
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    bool merges = true;
    for (int k = 0; k < operands; ++k)
      merges &= strides[k][d] == strides[k][last] * sizes[last];
    if (merges)
      sizes[last] *= sizes[d];
    else
      move(++last, d);
  }
  ndim = ndim ? last + 1 : 1;
  if (kept == 0) {
    sizes[0] = 1;
    for (int k = 0; k < operands; ++k)
      strides[k][0] = 0;
  }
}

RowCursor::RowCursor(const Geometry &g, int64_t position, int first) : g_(g), first_(first) {
  for (int k = 0; k < g.operands; ++k)
    offsets_[k] = 0;
  for (int d = first; d < g.ndim; ++d) {
    index_[d] = position % g.sizes[d];
    position /= g.sizes[d];
    for (int k = 0; k < g.operands; ++k)
      offsets_[k] += index_[d] * g.strides[k][d];
  }
}

} // namespace dlc::kernels
