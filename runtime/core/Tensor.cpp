// Construction and layout queries of tensors.
#include "runtime/core/Tensor.h"
#include <atomic>
#include <cstring>

namespace dlc {
namespace {

std::atomic<DType> currentDefault{DType::F32};

/// Bytes that a view with these strides needs from its offset on. Throws on overflow.
size_t spanBytes(Ints sizes, Ints strides, DType dtype) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    DLC_REQUIRE(sizes[i] >= 0, Runtime, "cannot make a tensor of sizes ", listStr(sizes), ": size ", sizes[i],
                " is negative\npass sizes of 0 or more");
    if (sizes[i] == 0)
      return 0;
  }
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step;
    overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &step);
    overflow |= __builtin_add_overflow(last, step, &last);
  }
  int64_t bytes = 0;
  overflow |= __builtin_add_overflow(last, int64_t(1), &last);
  overflow |= __builtin_mul_overflow(last, static_cast<int64_t>(itemSize(dtype)), &bytes);
  DLC_REQUIRE(!overflow, Runtime, "cannot make a tensor of sizes ", listStr(sizes),
              ": its bytes do not fit in 64 bits\nuse smaller sizes");
  return static_cast<size_t>(bytes);
}

} // namespace

DType defaultDType() { return currentDefault.load(std::memory_order_relaxed); }
void setDefaultDType(DType t) {
  DLC_REQUIRE(isFloat(t), Type, "set_default_dtype: `d` is ", t, ", not a floating dtype\npass float32 or float64");
  currentDefault = t;
}

DType promoteTypes(DType a, DType b) {
  if (a == b)
    return a;
  if (categoryOf(a) != categoryOf(b))
    return categoryOf(a) < categoryOf(b) ? b : a;
  if (isFloat(a)) {
    if ((a == DType::F16 && b == DType::BF16) || (a == DType::BF16 && b == DType::F16))
      return DType::F32;
    return a < b ? b : a;
  }
  if (a == DType::U8 || b == DType::U8) { // uint8 with a signed type: the next signed type that holds both
    DType other = a == DType::U8 ? b : a;
    return other == DType::I8 ? DType::I16 : other;
  }
  return a < b ? b : a;
}

Sizes contiguousStrides(Ints sizes) {
  Sizes strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    if (__builtin_mul_overflow(step, sizes[i] > 1 ? sizes[i] : 1, &step))
      fail(ErrorKind::Runtime, "cannot make a tensor of sizes ", listStr(sizes),
           ": its elements do not fit in 64 bits\nuse smaller sizes");
  }
  return strides;
}

Dims contiguousStrides(const Dims &sizes) {
  Dims strides(sizes.size());
  Dim step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    if (!(sizes[i].isConst() && sizes[i].value() <= 1))
      step *= sizes[i];
  }
  return strides;
}

TensorMeta TensorMeta::contiguous(DType dtype, Dims sizes) {
  TensorMeta m;
  m.dtype = dtype;
  m.defined = true;
  m.strides = contiguousStrides(sizes);
  m.sizes = std::move(sizes);
  return m;
}

Tensor::Tensor(const Number &n) {
  // A float keeps its 64 bits: what it is rounded to is the business of the op that promotes it.
  *this = scalar(n.hint(), n.isFloat() ? DType::F64 : n.dtype());
  impl_->wrapped = true;
  if (n.ref() && symbolicHost()) {
    auto layout = std::make_shared<SymbolicLayout>();
    layout->number = n.ref();
    impl_->symbolic = std::move(layout);
  }
}

void Tensor::noteSizesRead() const {
  if (SymbolicHost *host = symbolicReader())
    host->sizesRead(*this);
}

Tensor Tensor::scalar(const Number &n, DType dtype) {
  Tensor t = empty({}, dtype);
  visitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *t.dataAs<T>() = n.as<T>();
  });
  return t;
}

Tensor Tensor::viewOf(Ref<Storage> storage, Ints sizes, Ints strides, int64_t offset, DType dtype) {
  auto impl = makeRef<TensorImpl>();
  impl->storage = std::move(storage);
  impl->sizes = sizes;
  impl->strides = strides;
  impl->offset = offset;
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor Tensor::empty(Ints sizes, DType dtype) {
  Sizes strides = contiguousStrides(sizes);
  return emptyStrided(sizes, strides, dtype);
}

Tensor Tensor::emptyStrided(Ints sizes, Ints strides, DType dtype) {
  return viewOf(Storage::allocate(spanBytes(sizes, strides, dtype)), sizes, strides, 0, dtype);
}

Tensor Tensor::emptyLike(const TensorMeta &meta) {
  Sizes sizes, strides;
  for (const Dim &d : meta.sizes)
    sizes.push_back(d.value());
  for (const Dim &d : meta.strides)
    strides.push_back(d.value());
  Tensor t = emptyStrided(sizes, strides, meta.dtype);
  t.impl()->wrapped = meta.wrapped;
  return t;
}

/// The same question over expressions: what the answer rests on are facts.
static bool isContiguousMeta(const TensorMeta &m) {
  Dim step = 1;
  for (size_t i = m.sizes.size(); i-- > 0;) {
    if (m.sizes[i] == 0)
      return true;
    if (m.sizes[i] != 1 && m.strides[i] != step)
      return m.numel() == 0;
    step *= m.sizes[i];
  }
  return true;
}

bool Tensor::isContiguous() const {
  if (impl_->symbolic && symbolicReader())
    return isContiguousMeta(meta());
  int64_t step = 1;
  for (size_t i = impl_->sizes.size(); i-- > 0;) {
    int64_t s = impl_->sizes[i];
    if (s == 0)
      return true;
    if (s != 1 && impl_->strides[i] != step)
      return numel() == 0;
    step *= s;
  }
  return true;
}

bool Tensor::isNonOverlapping() const {
  SmallVec<std::pair<int64_t, int64_t>> order; // (stride, size)
  for (int64_t d = 0; d < dim(); ++d) {
    if (size(d) == 0)
      return true;
    if (size(d) > 1)
      order.push_back({std::abs(stride(d)), size(d)});
  }
  std::sort(order.begin(), order.end());
  int64_t reach = 1; // addresses below `reach` are taken by the faster dimensions
  for (auto &[st, sz] : order) {
    if (st < reach)
      return false;
    reach = st * (sz - 1) + reach;
  }
  return true;
}

TensorMeta Tensor::meta() const {
  TensorMeta m;
  m.dtype = dtype();
  m.defined = true;
  m.wrapped = impl_->wrapped;
  m.sizes.append(impl_->sizes.begin(), impl_->sizes.end());
  m.strides.append(impl_->strides.begin(), impl_->strides.end());
  m.offset = impl_->offset;
  if (SymbolicHost *host = symbolicHost())
    host->describe(*this, m);
  return m;
}

Number Tensor::item() const {
  DLC_REQUIRE(numel() == 1, Runtime, "item: a tensor of sizes ", listStr(sizes()), " has ", numel(),
              " elements, not 1\nindex one element first, or use tolist()");
  const void *p = data();
  Number n = visitDType(dtype(), [&](auto tag) -> Number {
    using T = typename decltype(tag)::type;
    T v = *static_cast<const T *>(p);
    if constexpr (std::is_same_v<T, bool>)
      return Number(v);
    else if constexpr (std::is_integral_v<T>)
      return Number(static_cast<int64_t>(v));
    else
      return Number(static_cast<double>(v));
  });
  return impl_->symbolic && impl_->symbolic->number ? Number::symbolic(n, impl_->symbolic->number) : n;
}

bool mayOverlap(const Tensor &a, const Tensor &b) {
  if (a.storageRef() != b.storageRef() || a.numel() == 0 || b.numel() == 0)
    return false;
  auto range = [](const Tensor &t) {
    int64_t item = static_cast<int64_t>(itemSize(t.dtype())), lo = t.offset(), hi = lo;
    for (int64_t d = 0; d < t.dim(); ++d)
      (t.stride(d) < 0 ? lo : hi) += (t.size(d) - 1) * t.stride(d);
    return std::make_pair(lo * item, (hi + 1) * item);
  };
  auto [alo, ahi] = range(a);
  auto [blo, bhi] = range(b);
  return alo < bhi && blo < ahi;
}

std::string describe(const Tensor &t) { return t.defined() ? str(t.dtype(), listStr(t.impl()->sizes)) : "None"; }
std::string describe(const TensorMeta &m) { return m.defined ? str(m.dtype, listStr(m.sizes)) : "None"; }

} // namespace dlc
