#include "kernels/common/Copy.h"
#include "kernels/common/Convert.h"
#include "kernels/common/Geometry.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <cstring>

namespace dlc::kernels {
namespace {

constexpr int64_t kBlock = 32;

/// The dimension (other than 0) along which the source is contiguous while it is not along dimension 0; -1: none.
int transposedDim(const Geometry &g, int64_t srcBytes) {
  if (std::abs(g.strides[1][0]) <= srcBytes || g.sizes[0] < 4)
    return -1;
  for (int d = 1; d < g.ndim; ++d)
    if (g.strides[1][d] == srcBytes && g.sizes[d] >= 4)
      return d;
  return -1;
}

/// Dimensions 0 and 1 in blocks, so that the lines of both sides stay in the first cache.
void copyBlocks(const Geometry &g, char *dst, const char *src, ConvertFn convert) {
  int64_t across = (g.sizes[1] + kBlock - 1) / kBlock;
  int64_t planes = g.sizes[0] && g.sizes[1] ? g.numel / (g.sizes[0] * g.sizes[1]) : 0;
  int64_t perTask = std::max<int64_t>(1, 16384 / (kBlock * g.sizes[0]));
  parallelFor(planes * across, perTask, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      RowCursor plane(g, task / across, 2);
      int64_t first = task % across * kBlock, last = std::min(g.sizes[1], first + kBlock);
      for (int64_t at = 0; at < g.sizes[0]; at += kBlock) {
        int64_t n = std::min(kBlock, g.sizes[0] - at);
        for (int64_t row = first; row < last; ++row)
          convert(src + plane.offset(1) + row * g.strides[1][1] + at * g.strides[1][0], g.strides[1][0],
                  dst + plane.offset(0) + row * g.strides[0][1] + at * g.strides[0][0], g.strides[0][0], n);
      }
    }
  });
}

/// `bytes`: of an element if both sides have the same dtype, else 0.
void copyRows(const Geometry &g, char *dst, const char *src, ConvertFn convert, int64_t bytes) {
  int64_t inner = g.sizes[0];
  if (g.ndim == 1) {
    parallelFor(inner, 32768, [&](int64_t b, int64_t e) {
      convert(src + b * g.strides[1][0], g.strides[1][0], dst + b * g.strides[0][0], g.strides[0][0], e - b);
    });
    return;
  }
  parallelFor(g.rows(), std::max<int64_t>(1, 16384 / inner), [&](int64_t b, int64_t e) {
    RowCursor cursor(g, b);
    if (bytes && g.strides[0][0] == bytes && g.strides[1][0] == bytes) {
      for (int64_t row = b; row < e; ++row, cursor.next())
        std::memcpy(dst + cursor.offset(0), src + cursor.offset(1), static_cast<size_t>(inner * bytes));
      return;
    }
    for (int64_t row = b; row < e; ++row, cursor.next())
      convert(src + cursor.offset(1), g.strides[1][0], dst + cursor.offset(0), g.strides[0][0], inner);
  });
}

void swapDims(Geometry &g, int a, int b) {
  std::swap(g.sizes[a], g.sizes[b]);
  for (int k = 0; k < g.operands; ++k)
    std::swap(g.strides[k][a], g.strides[k][b]);
}

} // namespace

void copyInto(const Tensor &dst, const Tensor &src) {
  Geometry g(dst.sizes());
  if (g.numel == 0)
    return;
  g.add(dst);
  g.add(src);
  g.finish();
  char *d = dst.dataAs<char>();
  const char *s = src.dataAs<char>();
  ConvertFn convert = convertFn(src.dtype(), dst.dtype());
  int across = transposedDim(g, static_cast<int64_t>(itemSize(src.dtype())));
  if (across < 0)
    return copyRows(g, d, s, convert, src.dtype() == dst.dtype() ? static_cast<int64_t>(itemSize(src.dtype())) : 0);
  if (across != 1)
    swapDims(g, 1, across);
  copyBlocks(g, d, s, convert);
}

void fillWith(const Tensor &dst, const Number &value) {
  int64_t raw = value.rawBits();
  Geometry g(dst.sizes());
  if (g.numel == 0)
    return;
  g.add(dst);
  g.add({}, {}, 8);
  g.finish();
  copyRows(g, dst.dataAs<char>(), reinterpret_cast<const char *>(&raw),
           convertFn(value.isFloat() ? DType::F64 : DType::I64, dst.dtype()), 0);
}

bool sameView(const Tensor &a, const Tensor &b) {
  return a.is(b) || (a.storageRef() == b.storageRef() && a.offset() == b.offset() && a.dtype() == b.dtype() &&
                     a.sizes() == b.sizes() && a.strides() == b.strides());
}

void copyUnlessSame(const Tensor &dst, const Tensor &src) {
  if (!sameView(dst, src))
    copyInto(dst, src);
}

Tensor asContiguous(const Tensor &t, DType dtype) {
  if (t.dtype() == dtype && t.isContiguous())
    return t;
  Tensor copy = Tensor::empty(t.sizes(), dtype);
  copyInto(copy, t);
  return copy;
}

ContiguousOut::ContiguousOut(const Tensor &out, DType dtype) : out_(out) {
  work_ = out.dtype() == dtype && out.isContiguous() ? out : Tensor::empty(out.sizes(), dtype);
}

} // namespace dlc::kernels
