// Chooses the form of a product (which side is the left one, dot products or tiles) from its sizes and strides, and
// cuts it into tasks. The choice never depends on the number of threads, so neither do the bits of the result.
#include "kernels/lib/Gemm.h"
#include "kernels/lib/GemmCore.h"
#include "runtime/core/Knobs.h"
#include "runtime/core/SerialScope.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace dlc::kernels {
namespace detail {

bool isAvx512Usable() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

namespace {

struct Isa {
  const CoreTable *table;
  const char *name;
};

const Isa &isa() {
  static const Isa chosen = [] {
    bool old = knobs().gemmIsa == "avx2";
    return !old && isAvx512Usable() ? Isa{&avx512Table(), "avx512"} : Isa{&avx2Table(), "avx2"};
  }();
  return chosen;
}

struct ScratchMemory {
  void *data[kScratchSlots] = {};
  size_t size[kScratchSlots] = {};
  ~ScratchMemory() {
    for (void *p : data)
      std::free(p);
  }
};

size_t cacheBytes(int name, size_t otherwise) {
  long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : otherwise;
}

constexpr size_t kHugePage = size_t(2) << 20;

void *allocatePages(size_t bytes) {
  size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  void *p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!p)
    throw std::bad_alloc();
  if (alignment == kHugePage)
    madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

} // namespace

template <class S> const CoreCode<S, GemmAcc<S>> &coreCode() {
  const CoreTable &t = *isa().table;
  if constexpr (std::is_same_v<S, float>)
    return t.f32;
  else if constexpr (std::is_same_v<S, double>)
    return t.f64;
  else if constexpr (std::is_same_v<S, Half>)
    return t.f16;
  else if constexpr (std::is_same_v<S, BFloat16>)
    return t.bf16;
  else if constexpr (std::is_same_v<S, uint8_t>)
    return t.u8;
  else if constexpr (std::is_same_v<S, uint16_t>)
    return t.u16;
  else if constexpr (std::is_same_v<S, uint32_t>)
    return t.u32;
  else
    return t.u64;
}

#define DLC_X(S) template const CoreCode<S, GemmAcc<S>> &coreCode<S>();
DLC_X(float)
DLC_X(double)
DLC_X(Half)
DLC_X(BFloat16) DLC_X(uint8_t) DLC_X(uint16_t) DLC_X(uint32_t) DLC_X(uint64_t)
#undef DLC_X

    void *scratch(ScratchSlot slot, size_t bytes) {
  static thread_local ScratchMemory memory;
  if (memory.size[slot] < bytes) {
    std::free(memory.data[slot]);
    memory.data[slot] = nullptr;
    memory.size[slot] = 0;
    memory.data[slot] = allocatePages(bytes);
    memory.size[slot] = bytes;
  }
  return memory.data[slot];
}

int64_t blockRows(int64_t k, size_t elementSize) {
  static const size_t bytes = cacheBytes(_SC_LEVEL2_CACHE_SIZE, 512 << 10) * 3 / 10;
  return std::max<int64_t>(1, bytes / (std::max<int64_t>(k, 64) * elementSize));
}

int64_t blockCols(int64_t k, size_t elementSize) {
  constexpr size_t bytes = size_t(4) << 20;
  return std::max<int64_t>(512, bytes / (std::max<int64_t>(k, 64) * elementSize));
}

} // namespace detail

namespace {

using namespace detail;

/// Up to this many rows, dot products along k beat packing a B that is contiguous along k.
constexpr int64_t kDotRowsMost = 16;
/// Products of two numbers below which a task is not worth handing out (about 5 us).
constexpr int64_t kTaskWork = 300000;

/// One problem in its chosen form: `left` and `right` may have changed places.
template <class S> struct Form {
  CoreArgs<S, GemmAcc<S>> core;
  S *c;
  int64_t leftBatch, rightBatch, outBatch, batch;
  bool dots;
};

template <class S> void swapSides(Form<S> &f) {
  auto &x = f.core;
  std::swap(x.m, x.n);
  std::swap(x.a, x.b);
  std::swap(x.aRow, x.bCol);
  std::swap(x.aCol, x.bRow);
  std::swap(x.cRow, x.cCol);
  std::swap(f.leftBatch, f.rightBatch);
}

/// What tiles compute, padding included, in multiplications per k.
int64_t paddedSize(int64_t m, int64_t n, int64_t lanes) { return m * ((n + lanes - 1) / lanes * lanes); }

template <class S> void chooseForm(Form<S> &f) {
  auto &x = f.core;
  const auto &c = coreCode<S>();
  f.dots = false;
  if (x.packedB)
    return;
  bool alongK = c.dots && x.k >= 2 * c.lanes && (x.aCol == 1 && x.bRow == 1);
  if (alongK && std::min(x.m, x.n) <= kDotRowsMost) {
    f.dots = true;
    if (x.n < x.m)
      swapSides(f);
    return;
  }
  int64_t asIs = paddedSize(x.m, x.n, c.lanes), swapped = paddedSize(x.n, x.m, c.lanes);
  if (x.m == 1 || x.n == 1 ? x.n == 1 && x.m > 1
                           : asIs > swapped * 13 / 10 || (x.cCol != 1 && x.cRow == 1 && swapped <= asIs * 13 / 10))
    swapSides(f);
}

template <class T> Form<StorageOf<T>> makeForm(const GemmArgs<T> &g) {
  using S = StorageOf<T>;
  using Acc = GemmAcc<S>;
  Form<S> f{};
  f.core.m = g.m, f.core.n = g.n, f.core.k = g.k;
  f.core.a = reinterpret_cast<const S *>(g.a), f.core.aRow = g.aRow, f.core.aCol = g.aCol;
  f.core.b = reinterpret_cast<const S *>(g.b), f.core.bRow = g.bRow, f.core.bCol = g.bCol;
  f.core.cRow = g.cRow, f.core.cCol = g.cCol;
  f.core.alpha = static_cast<Acc>(g.alpha), f.core.beta = static_cast<Acc>(g.beta);
  f.c = reinterpret_cast<S *>(g.c);
  f.leftBatch = g.aBatch, f.rightBatch = g.bBatch, f.outBatch = g.cBatch, f.batch = g.batch;
  if (g.packedB) {
    f.core.packedB = reinterpret_cast<const Acc *>(g.packedB->data());
    f.core.packedN = g.packedB->n();
  }
  chooseForm(f);
  return f;
}

/// C = beta * C, for an empty sum.
template <class S> void scaleOnly(const Form<S> &f) {
  using Acc = GemmAcc<S>;
  for (int64_t e = 0; e < f.batch; ++e)
    for (int64_t i = 0; i < f.core.m; ++i)
      for (int64_t j = 0; j < f.core.n; ++j) {
        S &out = f.c[e * f.outBatch + i * f.core.cRow + j * f.core.cCol];
        out = f.core.beta == Acc(0) ? S(Acc(0)) : S(Acc(f.core.beta * Acc(out)));
      }
}

/// Storage narrower than the sums: blocks of C are made in a buffer and rounded once.
template <class S> void runNarrow(const CoreArgs<S, float> &whole, S *c) {
  constexpr int64_t kRows = 512, kCols = 1024;
  float *sums = static_cast<float *>(
      scratch(kScratchSums, std::min(kRows, whole.m) * std::min(kCols, whole.n) * static_cast<int64_t>(sizeof(float))));
  for (int64_t i = 0; i < whole.m; i += kRows)
    for (int64_t j = 0; j < whole.n; j += kCols) {
      CoreArgs<S, float> x = whole;
      x.m = std::min(kRows, whole.m - i), x.n = std::min(kCols, whole.n - j);
      x.a += i * x.aRow;
      if (x.packedB)
        x.packedCol += j;
      else
        x.b += j * x.bCol;
      x.c = sums, x.cRow = x.n, x.cCol = 1;
      x.alpha = 1, x.beta = 0;
      coreCode<S>().tiles(x);
      for (int64_t r = 0; r < x.m; ++r)
        for (int64_t s = 0; s < x.n; ++s) {
          S &out = c[(i + r) * whole.cRow + (j + s) * whole.cCol];
          float value = whole.alpha * sums[r * x.n + s];
          out = S(whole.beta == 0 ? value : whole.beta * float(out) + value);
        }
    }
}

/// Rows [i, i + m) and columns [j, j + n) of problem `e`.
template <class S> void runPart(const Form<S> &f, int64_t e, int64_t i, int64_t m, int64_t j, int64_t n) {
  CoreArgs<S, GemmAcc<S>> x = f.core;
  x.m = m, x.n = n;
  x.a += e * f.leftBatch + i * x.aRow;
  if (x.packedB)
    x.packedCol += j;
  else
    x.b += e * f.rightBatch + j * x.bCol;
  S *c = f.c + e * f.outBatch + i * x.cRow + j * x.cCol;
  if constexpr (std::is_same_v<S, GemmAcc<S>>) {
    x.c = c;
    f.dots ? coreCode<S>().dots(x) : coreCode<S>().tiles(x);
  } else {
    runNarrow<S>(x, c);
  }
}

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// How C is cut: blocks of `rows` x `cols`.
struct Cut {
  int64_t rows, cols;
};

/// The cut into about `parts` blocks that costs a task least: its products, and packing its sides.
template <class S> Cut chooseCut(const Form<S> &f, int64_t parts) {
  const auto &c = coreCode<S>();
  int64_t rowUnit = f.dots ? 4 : c.panelRows, colUnit = f.dots ? 4 : c.panelCols;
  // What packing an element costs in multiplications.
  constexpr int64_t kPackCost = 12;
  Cut best{f.core.m, f.core.n};
  int64_t bestCost = INT64_MAX;
  for (int64_t across = 1; across <= parts; ++across) {
    int64_t down = ceilDiv(parts, across);
    Cut cut{std::min(f.core.m, ceilDiv(ceilDiv(f.core.m, down), rowUnit) * rowUnit),
            std::min(f.core.n, ceilDiv(ceilDiv(f.core.n, across), colUnit) * colUnit)};
    int64_t cost = cut.rows * cut.cols + kPackCost * (cut.rows + cut.cols);
    if (cost < bestCost)
      best = cut, bestCost = cost;
  }
  return best;
}

template <class T> bool isEmpty(const GemmArgs<T> &g) { return g.m <= 0 || g.n <= 0 || g.batch <= 0; }
template <class T> bool isSumEmpty(const GemmArgs<T> &g) { return g.k <= 0 || g.alpha == GemmAcc<T>(0); }

} // namespace

template <class T> void gemm(const GemmArgs<T> &args) {
  if (isEmpty(args))
    return;
  auto form = makeForm(args);
  if (isSumEmpty(args))
    return scaleOnly(form);
  for (int64_t e = 0; e < form.batch; ++e)
    runPart(form, e, 0, form.core.m, 0, form.core.n);
}

template <class T> void gemmParallel(const GemmArgs<T> &args) {
  if (isEmpty(args) || isSumEmpty(args))
    return gemm(args);
  int64_t task = taskGrain(kTaskWork);
  int64_t work = args.m * args.n * args.k, tasksWorth = std::max<int64_t>(1, work * args.batch / task);
  int64_t threads = parallelShares(tasksWorth, 1);
  if (threads <= 1)
    return gemm(args);
  auto form = makeForm(args);
  Cut cut{form.core.m, form.core.n};
  if (args.batch < 4 * threads)
    cut = chooseCut(form, std::min(tasksWorth, ceilDiv(threads, args.batch)));
  int64_t down = ceilDiv(form.core.m, cut.rows), across = ceilDiv(form.core.n, cut.cols);
  int64_t grain = std::max<int64_t>(1, task / std::max<int64_t>(1, cut.rows * cut.cols * args.k));
  parallelFor(args.batch * down * across, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t i = t / across % down * cut.rows, j = t % across * cut.cols;
      runPart(form, t / across / down, i, std::min(cut.rows, form.core.m - i), j, std::min(cut.cols, form.core.n - j));
    }
  });
}

const char *gemmIsa() { return isa().name; }

template <class T> void PackedMatrix<T>::Free::operator()(void *p) const { std::free(p); }

template <class T>
PackedMatrix<T>::PackedMatrix(int64_t k, int64_t n, const T *b, int64_t rowStride, int64_t colStride) : k_(k), n_(n) {
  using S = StorageOf<T>;
  const auto &c = coreCode<S>();
  if (k <= 0 || n <= 0)
    return;
  // packContiguous may write one vector past the last panel.
  bytes_ = (ceilDiv(n, c.panelCols) * c.panelCols * k + 4 * c.lanes) * sizeof(GemmAcc<T>);
  data_.reset(static_cast<GemmAcc<T> *>(allocatePages(bytes_)));
  c.packB(k, n, reinterpret_cast<const S *>(b), rowStride, colStride, reinterpret_cast<GemmAcc<S> *>(data_.get()));
}

#define DLC_X(T)                                                                                                       \
  template class PackedMatrix<T>;                                                                                      \
  template void gemm(const GemmArgs<T> &);                                                                             \
  template void gemmParallel(const GemmArgs<T> &);
DLC_GEMM_TYPES(DLC_X)
#undef DLC_X

} // namespace dlc::kernels
