// Tensors: reference-counted handles to a view (sizes, strides, offset, dtype) of a storage.
#pragma once
#include "runtime/core/DType.h"
#include "runtime/core/Dim.h"
#include "runtime/core/Number.h"
#include "runtime/core/Storage.h"
#include "runtime/core/Symbolic.h"
#include <memory>

namespace dlc {

/// What autograd keeps with a tensor; defined in runtime/autograd.
class AutogradMeta {
public:
  virtual ~AutogradMeta() = default;
};

/// Shape, layout and dtype without data: what meta functions work on.
struct TensorMeta {
  DType dtype = DType::F32;
  /// False for an absent optional operand.
  bool defined = false;
  /// A Python number that became a 0-d tensor: takes part in promotion by its category only.
  bool wrapped = false;
  Dims sizes;
  Dims strides; // in elements
  /// Elements from the start of the storage. Meta functions of views add to their operand's; others leave 0.
  Dim offset = 0;
  int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
  Dim numel() const {
    Dim n = 1;
    for (const Dim &d : sizes)
      n *= d;
    return n;
  }
  static TensorMeta contiguous(DType dtype, Dims sizes);
};

/// Row-major strides of `sizes`; dimensions of size 0 count as 1.
Sizes contiguousStrides(Ints sizes);
Dims contiguousStrides(const Dims &sizes);

class TensorImpl : public RefCounted {
public:
  Ref<Storage> storage;
  Sizes sizes;
  Sizes strides;      // in elements
  int64_t offset = 0; // in elements
  DType dtype = DType::F32;
  bool wrapped = false;
  bool requiresGrad = false; // of a leaf; a result of recorded ops has a gradient function in `autograd`
  std::unique_ptr<AutogradMeta> autograd;
  /// The Python object of this tensor, borrowed (the binding keeps identity with it).
  void *pyObject = nullptr;
  /// The recorder's value for this view, valid while `traceEpoch` and the storage's version are the recorder's.
  int32_t traceValue = -1;
  uint32_t traceVersion = 0;
  uint64_t traceEpoch = 0;
  /// Expressions for the layout, or the number that this stands for; null outside of sessions.
  std::shared_ptr<const SymbolicLayout> symbolic;
};

/// A handle; copies share the same tensor. Default-constructed: undefined (an absent optional).
class Tensor {
public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  /// A 0-d wrapped tensor, so that functions taking tensors accept numbers.
  Tensor(const Number &n);

  /// Uninitialised, row-major (or with the given strides, which must be dense or at least non-negative).
  static Tensor empty(Ints sizes, DType dtype);
  static Tensor emptyStrided(Ints sizes, Ints strides, DType dtype);
  static Tensor emptyLike(const TensorMeta &meta);
  /// A view of `storage`; the caller answers for its bounds.
  static Tensor viewOf(Ref<Storage> storage, Ints sizes, Ints strides, int64_t offset, DType dtype);
  /// 0-d, not wrapped.
  static Tensor scalar(const Number &n, DType dtype);

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  TensorImpl *impl() const { return impl_.get(); }
  bool is(const Tensor &o) const { return impl_ == o.impl_; }

  DType dtype() const { return impl_->dtype; }
  int64_t dim() const { return static_cast<int64_t>(impl_->sizes.size()); }
  const Sizes &sizes() const { return read()->sizes; }
  const Sizes &strides() const { return read()->strides; }
  int64_t size(int64_t d) const { return read()->sizes[d < 0 ? d + dim() : d]; }
  int64_t stride(int64_t d) const { return read()->strides[d < 0 ? d + dim() : d]; }
  int64_t offset() const { return read()->offset; }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : read()->sizes)
      n *= s;
    return n;
  }
  /// What recorders keep with `from`, which is the same view: its trace value and expressions.
  void copyTrace(const Tensor &from) const {
    impl_->traceValue = from.impl_->traceValue;
    impl_->traceVersion = from.impl_->traceVersion;
    impl_->traceEpoch = from.impl_->traceEpoch;
    impl_->symbolic = from.impl_->symbolic;
  }
  bool isWrapped() const { return impl_->wrapped; }
  Storage &storage() const { return *impl_->storage; }
  const Ref<Storage> &storageRef() const { return impl_->storage; }
  bool isContiguous() const;
  /// Each element of the view has an address of its own.
  bool isNonOverlapping() const;
  /// The first element. Forces a pending program.
  void *data() const {
    char *p = static_cast<char *>(impl_->storage->data());
    return p ? p + impl_->offset * static_cast<int64_t>(itemSize(impl_->dtype)) : nullptr;
  }
  template <class T> T *dataAs() const { return static_cast<T *>(data()); }
  TensorMeta meta() const;
  /// The one element as a Number. Forces. Throws ValueError unless numel() == 1.
  Number item() const;

private:
  const TensorImpl *read() const {
    if (__builtin_expect(impl_->symbolic != nullptr, 0))
      noteSizesRead();
    return impl_.get();
  }
  void noteSizesRead() const;

  Ref<TensorImpl> impl_;
};

/// True if the two views may touch the same bytes (exact for dense views, conservative otherwise).
bool mayOverlap(const Tensor &a, const Tensor &b);
/// "float32[3, 4]", for messages.
std::string describe(const Tensor &t);
std::string describe(const TensorMeta &m);

} // namespace dlc
