// The driver of elementwise loops. Each operand is either walked in place (right dtype, unit stride) or brought into a
// tile on the stack, converted; long rows are cut into segments, short rows are packed many to a tile. Tiles that
// repeat (scalars, row vectors) are filled once.
#include "kernels/elementwise/Elementwise.h"
#include "kernels/common/Geometry.h"
#include "kernels/wide/Wide.h"
#include "runtime/core/Error.h"
#include "runtime/core/ThreadPool.h"
#include <algorithm>
#include <atomic>

namespace dlc::kernels {

void Operands::push(const Tensor &t, Role role) {
  DLC_CHECK(size_ < 6, op_);
  items_[size_].tensor = &t;
  items_[size_].role = role;
  items_[size_++].dtype = t.dtype();
}
void Operands::tensor(const Tensor &t) { push(t, Role::Promoted); }
void Operands::boolTensor(const Tensor &t) { push(t, Role::Bool); }
void Operands::number(const Number &n) {
  DLC_CHECK(size_ < 6, op_);
  Item &item = items_[size_++];
  item.role = Role::Scalar;
  item.raw = n.category() == Category::Bool ? n.toBool() : n.rawBits();
  item.dtype = n.category() == Category::Float ? DType::F64 : DType::I64;
}

namespace {

/// The dtype of a class of operands joined with that of a less important class (see Operands::promoted).
int joinClasses(int higher, int lower) {
  if (higher < 0)
    return lower;
  if (lower < 0)
    return higher;
  DType h = static_cast<DType>(higher), l = static_cast<DType>(lower);
  if (isFloat(h))
    return higher;
  return h == DType::Bool || isFloat(l) ? static_cast<int>(promoteTypes(h, l)) : higher;
}

} // namespace

/// Tensors with dimensions decide; 0-d tensors and then numbers count only if of a higher category.
DType Operands::promoted() const {
  int dims = -1, zero = -1, wrapped = -1;
  auto meet = [](int &into, DType t) {
    into = into < 0 ? static_cast<int>(t) : static_cast<int>(promoteTypes(static_cast<DType>(into), t));
  };
  for (int i = 0; i < size_; ++i) {
    const Item &item = items_[i];
    if (item.role != Role::Promoted)
      continue;
    const Tensor &t = *item.tensor;
    if (t.isWrapped())
      meet(wrapped, isFloat(t.dtype()) ? defaultDType() : t.dtype());
    else
      meet(t.dim() ? dims : zero, t.dtype());
  }
  int result = joinClasses(dims, joinClasses(zero, wrapped));
  return result < 0 ? DType::F32 : static_cast<DType>(result);
}

namespace {

LoopFn chooseLoop(const LoopTable &table, DType compute) {
  if (compute == DType::F32 && table.wide >= 0)
    if (const WideCode *code = wideCode())
      return code->loops[table.wide];
  return table.loops[static_cast<int>(compute)];
}

constexpr int64_t kTile = 1024;
// About 3 us of work each: less is not worth another thread.
constexpr int64_t kGrain = 32768, kHeavyGrain = 8192;
constexpr int64_t kShortRow = 256;

/// How one operand reaches the loop.
struct Access {
  char *base = nullptr;
  ConvertFn convert = nullptr; // memory -> tile (output: tile -> memory)
  ConvertFn round = nullptr; // a further step: tile -> half -> tile, where an operand is first promoted to f16 or bf16
  ConvertFn widen = nullptr;
  int64_t computeBytes = 0;
  bool sameType = false; // no conversion needed
};

} // namespace

class Runner {
public:
  Runner(const Operands &in, const LoopTable &table, const Tensor &out);
  void run();
  /// The usual case, without a geometry: row-major operands of the compute type and numbers. False if it is another.
  static bool runFlat(const Operands &in, const LoopTable &table, const Tensor &out);

private:
  void addInput(int k, const Operands::Item &item, DType promoted, DType compute, bool isBool);
  void range(int64_t begin, int64_t end);
  void rows(int64_t begin, int64_t end, char *tiles);
  void segment(const RowCursor &cursor, int64_t from, int64_t to, char *tiles, const char **filled);
  void blocks(int64_t begin, int64_t end, char *tiles);
  void gather(int k, const char *from, int64_t stride, char *tile, int64_t n) const;
  bool linear(int k) const;
  bool repeats(int k) const;
  char *tileOf(char *tiles, int k) const { return tiles + k * kTile * 8; }
  void note(int64_t fault) {
    if (fault)
      fault_.store(fault, std::memory_order_relaxed);
  }

  const Operands &in_;
  Geometry g_;
  Access access_[kMaxOperands];
  int64_t scalars_[kMaxOperands];
  LoopFn loop_ = nullptr;
  int n_; // operands, the output included
  bool heavy_ = false;
  std::atomic<int64_t> fault_{0};
};

Runner::Runner(const Operands &in, const LoopTable &table, const Tensor &out)
    : in_(in), g_(out.sizes()), n_(in.size() + 1) {
  DType promoted = in.promoted();
  if (!table.loops[static_cast<int>(computeType(promoted))])
    promoted = defaultDType();
  DType compute = computeType(promoted);
  loop_ = chooseLoop(table, compute);
  DLC_REQUIRE(loop_, NotImplemented, in.op(), ": not implemented for ", nameOf(promoted),
              "\nCast the operands to a supported dtype first.");
  heavy_ = in.promotion_ == Promotion::ToFloat;
  DType result = table.results[static_cast<int>(compute)];
  g_.add(out);
  access_[0].base = out.dataAs<char>();
  access_[0].sameType = out.dtype() == result;
  access_[0].convert = convertFn(result, out.dtype());
  access_[0].computeBytes = static_cast<int64_t>(itemSize(result));
  for (int i = 0; i < in.size(); ++i)
    addInput(i + 1, in.items_[i], promoted, compute, table.boolOperands >> i & 1);
  g_.finish();
}

void Runner::addInput(int k, const Operands::Item &item, DType promoted, DType compute, bool isBool) {
  Access &a = access_[k];
  DType target = isBool ? DType::Bool : compute;
  a.sameType = item.dtype == target;
  a.convert = convertFn(item.dtype, target);
  a.computeBytes = static_cast<int64_t>(itemSize(target));
  if (item.role == Operands::Role::Scalar) {
    scalars_[k] = item.raw;
    a.base = reinterpret_cast<char *>(&scalars_[k]);
    g_.add({}, {}, 8);
    return;
  }
  const Tensor &t = *item.tensor;
  a.base = t.dataAs<char>();
  g_.add(t);
  if (!isBool && !t.isWrapped() && promoted != compute && t.dtype() != promoted) {
    a.round = convertFn(compute, promoted);
    a.widen = convertFn(promoted, compute);
  }
}

/// Whether operand k is contiguous over the whole iteration, with no conversion.
bool Runner::linear(int k) const {
  if (!access_[k].sameType)
    return false;
  int64_t expect = access_[k].computeBytes;
  for (int d = 0; d < g_.ndim; ++d) {
    if (g_.strides[k][d] != expect)
      return false;
    expect *= g_.sizes[d];
  }
  return true;
}

/// Whether every row of operand k is the same one.
bool Runner::repeats(int k) const {
  for (int d = 1; d < g_.ndim; ++d)
    if (g_.strides[k][d] != 0)
      return false;
  return true;
}

void Runner::gather(int k, const char *from, int64_t stride, char *tile, int64_t n) const {
  const Access &a = access_[k];
  a.convert(from, stride, tile, a.computeBytes, n);
  if (a.round) {
    Half narrow[kTile];
    char *mid = reinterpret_cast<char *>(narrow);
    a.round(tile, a.computeBytes, mid, 2, n);
    a.widen(mid, 2, tile, a.computeBytes, n);
  }
}

void Runner::segment(const RowCursor &cursor, int64_t from, int64_t to, char *tiles, const char **filled) {
  bool direct[kMaxOperands];
  bool all = true;
  for (int k = 0; k < n_; ++k) {
    direct[k] = access_[k].sameType && g_.strides[k][0] == access_[k].computeBytes;
    all &= direct[k];
  }
  int64_t step = all ? to - from : kTile;
  for (int64_t at = from; at < to; at += step) {
    int64_t n = std::min(step, to - at);
    char *ptrs[kMaxOperands];
    for (int k = 0; k < n_; ++k) {
      char *p = access_[k].base + cursor.offset(k) + at * g_.strides[k][0];
      ptrs[k] = direct[k] ? p : tileOf(tiles, k);
      if (direct[k] || k == 0)
        continue;
      if (g_.strides[k][0] == 0) {
        if (filled[k] != p)
          gather(k, p, 0, ptrs[k], std::min(kTile, g_.numel));
        filled[k] = p;
      } else {
        gather(k, p, g_.strides[k][0], ptrs[k], n);
      }
    }
    note(loop_(ptrs, n));
    if (!direct[0])
      access_[0].convert(ptrs[0], access_[0].computeBytes, access_[0].base + cursor.offset(0) + at * g_.strides[0][0],
                         g_.strides[0][0], n);
  }
}

void Runner::rows(int64_t begin, int64_t end, char *tiles) {
  const char *filled[kMaxOperands] = {};
  int64_t inner = g_.sizes[0];
  RowCursor cursor(g_, begin / inner);
  for (int64_t row = begin / inner; row * inner < end; ++row, cursor.next())
    segment(cursor, std::max<int64_t>(begin - row * inner, 0), std::min(end - row * inner, inner), tiles, filled);
}

/// Short rows, many to a tile; `begin` and `end` are multiples of the row's length.
void Runner::blocks(int64_t begin, int64_t end, char *tiles) {
  int64_t inner = g_.sizes[0], perTile = kTile / inner;
  bool isLinear[kMaxOperands], same[kMaxOperands];
  for (int k = 0; k < n_; ++k) {
    isLinear[k] = linear(k);
    same[k] = k > 0 && !isLinear[k] && repeats(k);
    if (same[k])
      for (int64_t r = 0; r < perTile; ++r)
        gather(k, access_[k].base, g_.strides[k][0], tileOf(tiles, k) + r * inner * access_[k].computeBytes, inner);
  }
  RowCursor cursor(g_, begin / inner);
  for (int64_t row = begin / inner, last = end / inner; row < last;) {
    int64_t count = std::min(perTile, last - row);
    char *ptrs[kMaxOperands];
    for (int k = 0; k < n_; ++k)
      ptrs[k] = isLinear[k] ? access_[k].base + row * inner * access_[k].computeBytes : tileOf(tiles, k);
    RowCursor outCursor = cursor;
    for (int64_t r = 0; r < count; ++r, cursor.next())
      for (int k = 1; k < n_; ++k)
        if (!isLinear[k] && !same[k])
          gather(k, access_[k].base + cursor.offset(k), g_.strides[k][0], ptrs[k] + r * inner * access_[k].computeBytes,
                 inner);
    note(loop_(ptrs, count * inner));
    if (!isLinear[0])
      for (int64_t r = 0; r < count; ++r, outCursor.next())
        access_[0].convert(ptrs[0] + r * inner * access_[0].computeBytes, access_[0].computeBytes,
                           access_[0].base + outCursor.offset(0), g_.strides[0][0], inner);
    row += count;
  }
}

void Runner::range(int64_t begin, int64_t end) {
  alignas(64) char tiles[kMaxOperands * kTile * 8];
  if (g_.ndim > 1 && g_.sizes[0] < kShortRow)
    blocks(begin * g_.sizes[0], end * g_.sizes[0], tiles);
  else
    rows(begin, end, tiles);
}

namespace {
void throwFault(const Operands &in, int64_t fault) {
  if (fault)
    fail(ErrorKind::Runtime, "ZeroDivisionError: ", in.op(),
         ": integer division by zero\nMake sure that no element of the divisor is 0.");
}
} // namespace

void Runner::run() {
  if (g_.numel == 0)
    return;
  int64_t grain = heavy_ ? kHeavyGrain : kGrain;
  bool byRows = g_.ndim > 1 && g_.sizes[0] < kShortRow;
  int64_t unit = byRows ? g_.sizes[0] : 1;
  parallelFor(g_.numel / unit, std::max<int64_t>(1, grain / unit), [&](int64_t b, int64_t e) { range(b, e); });
  throwFault(in_, fault_.load(std::memory_order_relaxed));
}

bool Runner::runFlat(const Operands &in, const LoopTable &table, const Tensor &out) {
  DType compute = in.promoted();
  size_t at = static_cast<size_t>(compute);
  if (compute != computeType(compute) || !table.loops[at] || table.results[at] != out.dtype() || !out.isContiguous())
    return false;
  int64_t n = out.numel(), step = INT64_MAX;
  char *base[kMaxOperands] = {out.dataAs<char>()};
  int64_t bytes[kMaxOperands] = {static_cast<int64_t>(itemSize(out.dtype()))}; // of one element; 0: a number
  for (int i = 0; i < in.size(); ++i) {
    const Operands::Item &item = in.items_[i];
    DType target = table.boolOperands >> i & 1 ? DType::Bool : compute;
    bool number = item.role == Operands::Role::Scalar || item.tensor->isWrapped();
    if (!number && (item.dtype != target || item.tensor->sizes() != out.sizes() || !item.tensor->isContiguous()))
      return false;
    base[i + 1] = item.role == Operands::Role::Scalar ? reinterpret_cast<char *>(const_cast<int64_t *>(&item.raw))
                                                      : item.tensor->dataAs<char>();
    bytes[i + 1] = number ? 0 : static_cast<int64_t>(itemSize(target));
    if (number)
      step = kTile;
  }
  std::atomic<int64_t> fault{0};
  LoopFn loop = chooseLoop(table, compute);
  parallelFor(n, in.promotion_ == Promotion::ToFloat ? kHeavyGrain : kGrain, [&](int64_t b, int64_t e) {
    alignas(64) char tiles[kMaxOperands * kTile * 8];
    char *ptrs[kMaxOperands];
    for (int k = 0; k <= in.size(); ++k) {
      ptrs[k] = bytes[k] ? base[k] + b * bytes[k] : tiles + k * kTile * 8;
      if (bytes[k])
        continue;
      DType target = table.boolOperands >> (k - 1) & 1 ? DType::Bool : compute;
      convertFn(in.items_[k - 1].dtype, target)(base[k], 0, ptrs[k], static_cast<int64_t>(itemSize(target)),
                                                std::min(kTile, e - b));
    }
    for (int64_t i = b; i < e; i += step) {
      int64_t count = std::min(step, e - i);
      if (int64_t bad = loop(ptrs, count))
        fault.store(bad, std::memory_order_relaxed);
      for (int k = 0; k <= in.size(); ++k)
        ptrs[k] += bytes[k] * count;
      if (step == INT64_MAX)
        break;
    }
  });
  throwFault(in, fault.load(std::memory_order_relaxed));
  return true;
}

void runElementwise(const Operands &in, const LoopTable &table, Span<Tensor> outs) {
  if (!Runner::runFlat(in, table, outs[0]))
    Runner(in, table, outs[0]).run();
}

} // namespace dlc::kernels
