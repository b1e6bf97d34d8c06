// The iteration space that several strided operands share: broadcast, ordered by the first operand's strides, with
// adjacent dimensions merged.
#pragma once
#include "runtime/core/Tensor.h"

namespace dlc::kernels {

constexpr int kMaxOperands = 8;
constexpr int kMaxDims = 32;

/// Dimension 0 is the innermost. Strides are in bytes.
struct Geometry {
  int ndim = 0;
  int operands = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxOperands][kMaxDims];

  Geometry() = default;
  Geometry(const Geometry &) = delete;
  /// Over `sizes`; operands are added next, then `finish` is called.
  explicit Geometry(Ints shape);
  /// An operand whose sizes broadcast to the shape (checked by the meta function).
  void add(Ints operandSizes, Ints operandStrides, int64_t itemBytes);
  void add(const Tensor &t) { add(t.sizes(), t.strides(), static_cast<int64_t>(itemSize(t.dtype()))); }
  /// Drops size-1 dimensions, orders the rest so that operand 0 walks memory forwards, merges neighbours.
  /// At least one dimension remains.
  void finish();
  /// Size of everything but the innermost dimension.
  int64_t rows() const { return sizes[0] ? numel / sizes[0] : 0; }
};

/// Walks the dimensions from `first` outwards (1: the rows, 0: the elements), keeping each operand's byte offset.
class RowCursor {
public:
  RowCursor(const Geometry &g, int64_t position, int first = 1);
  int64_t offset(int operand) const { return offsets_[operand]; }
  void next() {
    for (int d = first_; d < g_.ndim; ++d) {
      bool wrap = ++index_[d] == g_.sizes[d];
      int64_t steps = wrap ? 1 - g_.sizes[d] : 1;
      for (int k = 0; k < g_.operands; ++k)
        offsets_[k] += steps * g_.strides[k][d];
      if (!wrap)
        return;
      index_[d] = 0;
    }
  }

private:
  const Geometry &g_;
  int first_;
  int64_t index_[kMaxDims];
  int64_t offsets_[kMaxOperands];
};

} // namespace dlc::kernels
