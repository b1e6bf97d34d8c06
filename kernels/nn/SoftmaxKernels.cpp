// Softmax, log_softmax and their gradients, a row at a time: three passes over memory that stays in the first cache.
#include "kernels/Kernels.h"
#include "kernels/nn/Rows.h"
#include "kernels/nn/SoftmaxRows.h"
#include "kernels/wide/Wide.h"

namespace dlc::kernels {
namespace {

constexpr int64_t kColumns = 64;

// The same down `w` <= kColumns columns of n rows that are `step` apart, all columns at once.
template <class T> void maxOfColumns(const T *x, int64_t n, int64_t w, int64_t step, T *top) {
  std::fill(top, top + w, MaxCombine::identity<T>());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < w; ++c)
      top[c] = MaxCombine::apply(top[c], x[i * step + c]);
}

template <class T> void softmaxColumns(const T *x, const T *, T *y, int64_t n, int64_t w, int64_t step) {
  T top[kColumns], total[kColumns] = {};
  maxOfColumns(x, n, w, step, top);
  scalar::NativeBuilder b;
  for (int64_t i = 0; i < n; ++i)
#pragma clang loop vectorize(assume_safety)
    for (int64_t c = 0; c < w; ++c) {
      T e = scalar::exp_(b, x[i * step + c] - top[c]);
      y[i * step + c] = e;
      total[c] += e;
    }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < w; ++c)
      y[i * step + c] = y[i * step + c] / total[c];
}

template <class T> void logSoftmaxColumns(const T *x, const T *, T *y, int64_t n, int64_t w, int64_t step) {
  T top[kColumns], total[kColumns] = {};
  maxOfColumns(x, n, w, step, top);
  scalar::NativeBuilder b;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < w; ++c)
      total[c] += scalar::exp_(b, x[i * step + c] - top[c]);
  for (int64_t c = 0; c < w; ++c)
    total[c] = scalar::log_(b, total[c]);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < w; ++c)
      y[i * step + c] = (x[i * step + c] - top[c]) - total[c];
}

template <class T> void softmaxBackwardColumns(const T *g, const T *out, T *dx, int64_t n, int64_t w, int64_t step) {
  T dot[kColumns] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < w; ++c)
      dot[c] += g[i * step + c] * out[i * step + c];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < w; ++c)
      dx[i * step + c] = (g[i * step + c] - dot[c]) * out[i * step + c];
}

template <class T> void logSoftmaxBackwardColumns(const T *g, const T *out, T *dx, int64_t n, int64_t w, int64_t step) {
  T total[kColumns] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < w; ++c)
      total[c] += g[i * step + c];
  scalar::NativeBuilder b;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < w; ++c)
      dx[i * step + c] = g[i * step + c] - scalar::exp_(b, out[i * step + c]) * total[c];
}

/// Applies rows(a, b, y, n) to the rows along `dim` of one or two inputs of one shape, or columns(a, b, y, n, w, step)
/// if that is not the last dimension.
template <class Rows, class Columns>
void alongDim(const Tensor &first, const Tensor *second, int64_t dim, const Tensor &out, Rows rows, Columns columns,
              RowFn WideCode::*wide) {
  DType type = computeType(out.dtype());
  // An explicit dtype is applied to the input, so it passes through the result's precision.
  Tensor a = asContiguous(asContiguous(first, out.dtype()), type), b2;
  if (second)
    b2 = asContiguous(*second, type);
  ContiguousOut result(out, type);
  DimSplit s(a.sizes(), dim);
  if (a.numel() == 0)
    return;
  visitFloat(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *x = a.dataAs<T>(), *z = second ? b2.dataAs<T>() : x;
    T *y = result.template data<T>();
    int64_t step = s.n * s.inner;
    if (s.inner == 1) {
      parallelFor(s.outer, rowGrain(s.n), [&](int64_t b, int64_t e) {
        if constexpr (std::is_same_v<T, float>)
          if (const WideCode *code = wideCode()) {
            for (int64_t o = b; o < e; ++o)
              (code->*wide)(x + o * step, z + o * step, y + o * step, s.n);
            return;
          }
        for (int64_t o = b; o < e; ++o)
          rows(x + o * step, z + o * step, y + o * step, s.n);
      });
      return;
    }
    int64_t tiles = (s.inner + kColumns - 1) / kColumns;
    parallelFor(s.outer * tiles, rowGrain(s.n * std::min(kColumns, s.inner)), [&](int64_t b, int64_t e) {
      for (int64_t task = b; task < e; ++task) {
        int64_t at = task % tiles * kColumns, base = task / tiles * step + at;
        columns(x + base, z + base, y + base, s.n, std::min(kColumns, s.inner - at), s.inner);
      }
    });
  });
  result.commit();
}

} // namespace

#define DLC_ROWS(f) [](auto *a, auto *b, auto *y, int64_t n) { f##Row(a, b, y, n); }
#define DLC_COLUMNS(f)                                                                                                 \
  [](auto *a, auto *b, auto *y, int64_t n, int64_t w, int64_t step) { f##Columns(a, b, y, n, w, step); }

void softmaxKernel(const SoftmaxArgs<Tensor> &args, Span<Tensor> outs) {
  alongDim(args.self, nullptr, args.dim, outs[0], DLC_ROWS(softmax), DLC_COLUMNS(softmax), &WideCode::softmax);
}
void logSoftmaxKernel(const LogSoftmaxArgs<Tensor> &args, Span<Tensor> outs) {
  alongDim(args.self, nullptr, args.dim, outs[0], DLC_ROWS(logSoftmax), DLC_COLUMNS(logSoftmax), &WideCode::logSoftmax);
}
void softmaxBackwardKernel(const SoftmaxBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  alongDim(args.grad, &args.output, args.dim, outs[0], DLC_ROWS(softmaxBackward), DLC_COLUMNS(softmaxBackward),
           &WideCode::softmaxBackward);
}
void logSoftmaxBackwardKernel(const LogSoftmaxBackwardArgs<Tensor> &args, Span<Tensor> outs) {
  alongDim(args.grad, &args.output, args.dim, outs[0], DLC_ROWS(logSoftmaxBackward), DLC_COLUMNS(logSoftmaxBackward),
           &WideCode::logSoftmaxBackward);
}

} // namespace dlc::kernels
