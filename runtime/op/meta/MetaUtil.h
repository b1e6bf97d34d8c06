// What meta functions share: type promotion, broadcasting, memory layout of results, dimension arguments, errors.
#pragma once
#include "runtime/op/Meta.h"

namespace dlc::ops {

using Metas = SmallVec<const TensorMeta *, 6>;

/// PyTorch's result type: dimensioned tensors first; 0-d tensors and then numbers count only by a higher category.
class Promoter {
public:
  void add(const TensorMeta &m);
  void add(const Number &n) { addTo(wrapped_, n.dtype()); }
  DType type() const;

private:
  static void addTo(std::optional<DType> &slot, DType t) { slot = slot ? promoteTypes(*slot, t) : t; }
  std::optional<DType> dimensioned_, zeroDim_, wrapped_;
};
DType resultType(Span<const TensorMeta *const> operands);
inline DType toFloatType(DType t) { return isFloat(t) ? t : defaultDType(); }

/// Throws NotImplementedError unless the op takes `t`.
void requireDType(const OpInfo &op, DType t);

/// The common shape of `operands`; RuntimeError if there is none.
Dims broadcastSizes(const char *op, Span<const TensorMeta *const> operands);
/// Expands `from` to `to`?
bool expandsTo(const Dims &from, const Dims &to);
/// Strides of a dense result of `sizes` that keeps the memory order of the operands.
Dims layoutLike(Span<const TensorMeta *const> operands, const Dims &sizes);
bool isContiguous(const TensorMeta &m);
bool isContiguous(const Dims &sizes, const Dims &strides);
/// Strides of an (N, C, H, W) tensor whose channels are innermost.
Dims channelsLastStrides(const Dims &sizes);

/// An (N, C, H, W) tensor whose channels are innermost, and that is not row-major at the same time.
bool isChannelsLast(const TensorMeta &m);
/// Row-major, or channels last as `m` is.
Dims imageStrides(const TensorMeta &m, const Dims &sizes);

/// `a` and `b` are equal: true without a fact if they are the same expression.
inline bool sameDim(const Dim &a, const Dim &b) { return a.same(b) || a == b; }
bool sameSizes(const Dims &a, const Dims &b);

/// A dimension argument in [-rank, rank) (rank 0 counts as 1) as one in [0, rank); IndexError otherwise.
int64_t wrapDim(const char *op, const char *param, int64_t dim, const TensorMeta &self);
int64_t wrapDimOfRank(const char *op, const char *param, int64_t dim, int64_t rank);
/// Bit per dimension; an absent or empty list means all. RuntimeError if one is named twice.
uint64_t dimMask(const char *op, const std::optional<Ints> &dims, const TensorMeta &self);
/// An index in [-size, size) as one in [0, size); IndexError otherwise.
Dim wrapIndex(const char *op, const Dim &index, const Dim &size, int64_t dim);

/// Start, end and length of a slice, clamped as Python does.
struct SliceBounds {
  Dim start, length;
};
SliceBounds sliceBounds(const char *op, const Dim &size, const std::optional<Dim> &start, const std::optional<Dim> &end,
                        const Dim &step);

Dim product(const Dims &sizes);
inline Dims dimsOf(Span<const Dim> s) { return Dims(s.begin(), s.end()); }
TensorMeta denseMeta(DType dtype, const Dims &sizes, const Dims &strides);
inline void give(MetaResult &r, TensorMeta m) { r.outs.push_back(std::move(m)); }
inline void giveDense(MetaResult &r, DType dtype, Dims sizes) {
  give(r, TensorMeta::contiguous(dtype, std::move(sizes)));
}
TensorMeta likeMeta(const TensorMeta &m, DType dtype);

/// The result shape of a reduction.
Dims reducedSizes(const TensorMeta &self, uint64_t mask, bool keepdim);

/// RuntimeError unless both have one dtype.
void requireSameDType(const char *op, const char *a, const TensorMeta &x, const char *b, const TensorMeta &y);
void requireRank(const char *op, const char *param, const TensorMeta &m, int64_t rank);
void requireIndexType(const char *op, const char *param, const TensorMeta &m);

/// Resolves one -1 in `sizes` so that the product is that of `self`; RuntimeError if that is not possible.
Dims inferSizes(const char *op, Span<const Dim> sizes, const TensorMeta &self);
/// Strides by which `self` can be seen as `sizes`, if that is possible without a copy.
std::optional<Dims> viewStrides(const TensorMeta &self, const Dims &sizes);

} // namespace dlc::ops
