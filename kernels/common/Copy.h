// Copies between tensors of any layout and dtype, and the temporary forms that row kernels work on.
#pragma once
#include "runtime/core/Tensor.h"

namespace dlc::kernels {

/// dst = src, broadcast and converted. The two do not overlap, or are the very same view.
void copyInto(const Tensor &dst, const Tensor &src);
/// Sets every element, converted to the dtype of `dst`.
void fillWith(const Tensor &dst, const Number &value);

/// True if both are the same view of the same storage, with one dtype.
bool sameView(const Tensor &a, const Tensor &b);
/// dst = src unless they are the same view (the in-place spelling of an op that starts from a copy of self).
void copyUnlessSame(const Tensor &dst, const Tensor &src);

/// `t` itself if it is row-major and of that dtype, else a copy that is.
Tensor asContiguous(const Tensor &t, DType dtype);
inline Tensor asContiguous(const Tensor &t) { return asContiguous(t, t.dtype()); }

/// An output in the form a kernel wants it: the tensor itself if it is row-major and of `dtype`, else a temporary that
/// `commit` copies back.
class ContiguousOut {
public:
  ContiguousOut(const Tensor &out, DType dtype);
  const Tensor &get() const { return work_; }
  template <class T> T *data() const { return work_.dataAs<T>(); }
  void commit() const {
    if (!work_.is(out_))
      copyInto(out_, work_);
  }

private:
  Tensor out_, work_;
};

/// A view with the given sizes and strides of the same elements.
inline Tensor viewAs(const Tensor &t, Ints sizes, Ints strides, int64_t extraOffset = 0) {
  return Tensor::viewOf(t.storageRef(), sizes, strides, t.offset() + extraOffset, t.dtype());
}

/// The sizes around dimension `dim` of a row-major tensor: [outer, n, inner]. A 0-d tensor is [1, 1, 1].
struct DimSplit {
  int64_t outer = 1, n = 1, inner = 1;
  DimSplit(Ints sizes, int64_t dim) {
    int64_t rank = static_cast<int64_t>(sizes.size());
    if (dim < 0)
      dim += rank;
    for (int64_t d = 0; d < rank; ++d)
      (d < dim ? outer : d == dim ? n : inner) *= sizes[d];
  }
};

} // namespace dlc::kernels
