// Row reductions (the innermost memory dimension is reduced) use Lanes; column reductions keep a tile of results and
// walk down the rows. Both cut very long reductions into fixed pieces whose results are combined in order.
#include "kernels/reduce/Reduce.h"
#include "kernels/common/Convert.h"
#include "kernels/common/Copy.h"
#include "kernels/common/Geometry.h"
#include "kernels/reduce/Lanes.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <vector>

namespace dlc::kernels {
namespace {

constexpr int64_t kTile = 1024;
constexpr int64_t kGrain = 49152;   // elements of about 3 us
constexpr int64_t kPiece = 65536;   // elements of a row reduction done by one task
constexpr int64_t kPieceRows = 512; // rows of a column reduction done by one task

/// What a reduction does, whatever the types: kept dimensions (operand 0 self, 1 out) and reduced ones (operand 0
/// self).
struct Plan {
  Geometry kept, reduced;
  const char *in;
  char *out;
  DType inType, accType, outType;
  double divisor; // of the mean, else 1
};

template <class T, class C> class Reducer {
  using E = typename LaneType<T, C::kArithmetic>::type;

public:
  explicit Reducer(const Plan &plan)
      : p_(plan), load_(convertFn(plan.inType, plan.accType)), store_(convertFn(plan.accType, plan.outType)),
        direct_(plan.inType == plan.accType), inStride_(plan.reduced.strides[0][0]) {}

  void run() {
    int64_t column = std::abs(p_.kept.strides[0][0]);
    bool byRow = p_.kept.numel == 1 || p_.kept.sizes[0] == 1 || std::abs(inStride_) < column || column == 0;
    if (p_.reduced.numel == 0)
      rows();
    else if (byRow)
      rows();
    else
      columns();
  }

private:
  void store(T value, char *to) const {
    if (p_.divisor != 1)
      value = static_cast<T>(value / static_cast<T>(p_.divisor));
    store_(reinterpret_cast<const char *>(&value), sizeof(T), to, 0, 1);
  }

  /// Adds elements [from, to) of one innermost run.
  void addRun(Lanes<T, C> &lanes, const char *run, int64_t from, int64_t to) const {
    if (direct_ && inStride_ == static_cast<int64_t>(sizeof(T)))
      return lanes.add(reinterpret_cast<const T *>(run) + from, to - from);
    T tile[kTile];
    for (int64_t at = from; at < to; at += kTile) {
      int64_t n = std::min(kTile, to - at);
      load_(run + at * inStride_, inStride_, reinterpret_cast<char *>(tile), sizeof(T), n);
      lanes.add(tile, n);
    }
  }

  /// The piece `index` of the reduction whose elements start at `base`: whole runs, or part of the only one.
  T rowPiece(const char *base, int64_t index) const {
    Lanes<T, C> lanes;
    const Geometry &r = p_.reduced;
    int64_t inner = r.sizes[0], runs = r.rows();
    if (runs == 1) {
      addRun(lanes, base, index * kPiece, std::min(inner, (index + 1) * kPiece));
    } else if (r.numel) {
      int64_t perPiece = std::max<int64_t>(1, kPiece / inner), first = index * perPiece;
      RowCursor cursor(r, first);
      for (int64_t run = first, last = std::min(runs, first + perPiece); run < last; ++run, cursor.next())
        addRun(lanes, base + cursor.offset(0), 0, inner);
    }
    return lanes.result();
  }

  void rows() const {
    const Geometry &k = p_.kept, &r = p_.reduced;
    int64_t inner = r.sizes[0], runs = r.rows();
    int64_t pieces = runs == 1 ? (inner + kPiece - 1) / kPiece
                     : inner ? (runs + std::max<int64_t>(1, kPiece / inner) - 1) / std::max<int64_t>(1, kPiece / inner)
                             : 1;
    pieces = std::max<int64_t>(pieces, 1);
    if (pieces == 1) {
      parallelFor(k.numel, std::max<int64_t>(1, kGrain / std::max<int64_t>(r.numel, 1)), [&](int64_t b, int64_t e) {
        RowCursor cursor(k, b, 0);
        for (int64_t i = b; i < e; ++i, cursor.next())
          store(rowPiece(p_.in + cursor.offset(0), 0), p_.out + cursor.offset(1));
      });
      return;
    }
    std::vector<T> partial(static_cast<size_t>(k.numel * pieces));
    parallelFor(k.numel * pieces, 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        partial[i] = rowPiece(p_.in + RowCursor(k, i / pieces, 0).offset(0), i % pieces);
    });
    RowCursor cursor(k, 0, 0);
    for (int64_t i = 0; i < k.numel; ++i, cursor.next()) {
      E total = static_cast<E>(partial[i * pieces]);
      for (int64_t piece = 1; piece < pieces; ++piece)
        total = C::apply(total, static_cast<E>(partial[i * pieces + piece]));
      store(static_cast<T>(total), p_.out + cursor.offset(1));
    }
  }

  /// acc[c] = combine(acc[c], row[c]) over reduced positions [from, to), for n columns at `base`.
  void columnPiece(E *acc, const char *base, int64_t n, int64_t from, int64_t to) const {
    int64_t stride = p_.kept.strides[0][0];
    bool inPlace = direct_ && stride == static_cast<int64_t>(sizeof(T));
    std::fill(acc, acc + n, C::template identity<E>());
    RowCursor cursor(p_.reduced, from, 0);
    T tiles[4][kTile];
    for (int64_t row = from; row < to; row += 4) {
      int64_t count = std::min<int64_t>(4, to - row);
      const E *rows[4];
      for (int64_t j = 0; j < count; ++j, cursor.next()) {
        const char *src = base + cursor.offset(0);
        rows[j] = reinterpret_cast<const E *>(inPlace ? src : reinterpret_cast<const char *>(tiles[j]));
        if (!inPlace)
          load_(src, stride, reinterpret_cast<char *>(tiles[j]), sizeof(T), n);
      }
      if (count == 4) {
        const E *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
#pragma clang loop vectorize(assume_safety)
        for (int64_t c = 0; c < n; ++c)
          acc[c] = C::apply(C::apply(C::apply(C::apply(acc[c], r0[c]), r1[c]), r2[c]), r3[c]);
      } else {
        for (int64_t j = 0; j < count; ++j)
          for (int64_t c = 0; c < n; ++c)
            acc[c] = C::apply(acc[c], rows[j][c]);
      }
    }
  }

  void storeColumns(E *acc, char *to, int64_t n) const {
    T *values = reinterpret_cast<T *>(acc);
    if (p_.divisor != 1)
      for (int64_t c = 0; c < n; ++c)
        values[c] = static_cast<T>(values[c] / static_cast<T>(p_.divisor));
    store_(reinterpret_cast<const char *>(acc), sizeof(T), to, p_.kept.strides[1][0], n);
  }

  void columns() const {
    const Geometry &k = p_.kept;
    int64_t width = k.sizes[0], depth = p_.reduced.numel;
    // Narrower tiles than a cache line's worth would walk memory badly; wider ones leave threads idle.
    int64_t tile = std::min(kTile, std::max<int64_t>(64, width));
    while (tile > 256 && k.rows() * ((width + tile - 1) / tile) < 16)
      tile /= 2;
    int64_t tiles = (width + tile - 1) / tile, pieces = (depth + kPieceRows - 1) / kPieceRows;
    int64_t tasks = k.rows() * tiles * pieces;
    std::vector<E> partial(pieces > 1 ? static_cast<size_t>(k.numel * pieces) : 0);
    int64_t grain = std::max<int64_t>(1, kGrain / (std::min(tile, width) * std::min(depth, kPieceRows)));
    parallelFor(tasks, grain, [&](int64_t b, int64_t e) {
      E acc[kTile];
      for (int64_t task = b; task < e; ++task) {
        int64_t piece = task % pieces, at = task / pieces % tiles * tile, row = task / pieces / tiles;
        int64_t n = std::min(tile, width - at);
        RowCursor cursor(k, row);
        columnPiece(acc, p_.in + cursor.offset(0) + at * k.strides[0][0], n, piece * kPieceRows,
                    std::min(depth, (piece + 1) * kPieceRows));
        if (pieces == 1)
          storeColumns(acc, p_.out + cursor.offset(1) + at * k.strides[1][0], n);
        else
          std::copy(acc, acc + n, partial.data() + (piece * k.rows() + row) * width + at);
      }
    });
    if (pieces == 1)
      return;
    for (int64_t row = 0; row < k.rows(); ++row) {
      E *total = partial.data() + row * width;
      for (int64_t piece = 1; piece < pieces; ++piece) {
        const E *more = partial.data() + (piece * k.rows() + row) * width;
        for (int64_t c = 0; c < width; ++c)
          total[c] = C::apply(total[c], more[c]);
      }
      storeColumns(total, p_.out + RowCursor(k, row).offset(1), width);
    }
  }

  const Plan &p_;
  ConvertFn load_, store_;
  bool direct_;
  int64_t inStride_;
};

template <class C> void runFor(const Plan &plan) {
  visitDType(plan.accType, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>)
      Reducer<uint8_t, C>(plan).run();
    else if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>)
      Reducer<T, C>(plan).run();
  });
}

DType accumulatorType(ReduceOp op, DType in, DType out) {
  switch (op) {
  case ReduceOp::Max:
  case ReduceOp::Min:
    return computeType(in);
  case ReduceOp::All:
  case ReduceOp::Any:
    return DType::Bool;
  default:
    return computeType(out);
  }
}

} // namespace

void reduceInto(const Tensor &out, const Tensor &self, Ints dims, ReduceOp op) {
  int64_t rank = self.dim();
  bool reduced[kMaxDims] = {};
  for (int64_t d = 0; d < rank; ++d)
    reduced[d] = dims.empty();
  for (int64_t d : dims)
    if (rank)
      reduced[d < 0 ? d + rank : d] = true;
  bool keeps = out.dim() == rank;
  Sizes keptSizes, keptIn, keptOut, redSizes, redIn;
  int64_t at = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (reduced[d]) {
      redSizes.push_back(self.size(d));
      redIn.push_back(self.stride(d));
      at += keeps;
      continue;
    }
    keptSizes.push_back(self.size(d));
    keptIn.push_back(self.stride(d));
    keptOut.push_back(out.stride(at++));
  }
  int64_t inBytes = static_cast<int64_t>(itemSize(self.dtype())),
          outBytes = static_cast<int64_t>(itemSize(out.dtype()));
  Plan plan{Geometry(keptSizes), Geometry(redSizes),
            self.dataAs<char>(), out.dataAs<char>(),
            self.dtype(),        accumulatorType(op, self.dtype(), out.dtype()),
            out.dtype(),         1};
  if (plan.kept.numel == 0)
    return;
  plan.kept.add(keptSizes, keptIn, inBytes);
  plan.kept.add(keptSizes, keptOut, outBytes);
  plan.kept.finish();
  plan.reduced.add(redSizes, redIn, inBytes);
  plan.reduced.finish();
  if (op == ReduceOp::Mean)
    plan.divisor = static_cast<double>(plan.reduced.numel);
  switch (op) {
  case ReduceOp::Sum:
  case ReduceOp::Mean:
    if (plan.accType == DType::Bool)
      return runFor<MaxCombine>(plan);
    return runFor<SumCombine>(plan);
  case ReduceOp::Prod:
    return runFor<ProdCombine>(plan);
  case ReduceOp::Max:
  case ReduceOp::Any:
    return runFor<MaxCombine>(plan);
  case ReduceOp::Min:
    return runFor<MinCombine>(plan);
  case ReduceOp::All:
    return Reducer<uint8_t, AllCombine>(plan).run();
  }
}

float sumRow(const float *x, int64_t n) {
  Lanes<float, SumCombine> lanes;
  lanes.add(x, n);
  return lanes.result();
}
double sumRow(const double *x, int64_t n) {
  Lanes<double, SumCombine> lanes;
  lanes.add(x, n);
  return lanes.result();
}

} // namespace dlc::kernels
