// The forward pass of attention: blocks of queries against blocks of keys, with the running maximum and sum of each
// row. Included after GemmTiles.h and GemmPack.h, under the same conditions.

/// The same number in every lane.
template <class T> DLC_INLINE Vec<T> splat(double x) {
  T value = static_cast<T>(x);
  return Vec<T>(value);
}

/// e^x in every lane, with the bits of scalar::exp_.
DLC_INLINE Vec<float> expOf(Vec<float> x) {
  Vec<float> zero = splat<float>(0), limit = splat<float>(89), magic = splat<float>(scalar::detail::kRoundMagic);
  auto vanishes = x < splat<float>(scalar::detail::kExpZero);
  x = vanishes ? zero : x;
  x = limit < x ? limit : x;
  Vec<float> shifted = multiplyAdd<float>(x, splat<float>(0x1.715476p+0), magic), n = shifted - magic;
  Vec<float> r = multiplyAdd<float>(n, splat<float>(-0x1.62e4p-1), x);
  r = multiplyAdd<float>(n, splat<float>(-0x1.7f7d1cp-20), r);
  constexpr int terms = std::size(scalar::detail::kExpTail);
  Vec<float> sum = splat<float>(scalar::detail::kExpTail[terms - 1]);
#pragma unroll
  for (int i = terms - 2; i >= 0; --i)
    sum = multiplyAdd<float>(sum, r, splat<float>(scalar::detail::kExpTail[i]));
  Vec<float> p = multiplyAdd<float>(r * r, sum, r) + splat<float>(1);
#if DLC_GEMM_VECTOR_BYTES == 64
  Vec<float> scaled = _mm512_scalef_ps(p, n);
#else
  typedef int32_t Bits __attribute__((ext_vector_type(kLanes<float>)));
  Bits power = __builtin_bit_cast(Bits, shifted) - __builtin_bit_cast(Bits, magic), half = power >> 1;
  Vec<float> first = __builtin_bit_cast(Vec<float>, (half + 127) << 23);
  Vec<float> scaled = p * first * __builtin_bit_cast(Vec<float>, (power - half + 127) << 23);
#endif
  return vanishes ? zero : scaled;
}
DLC_INLINE Vec<double> expOf(Vec<double> x) {
  for (int i = 0; i < kLanes<double>; ++i)
    x[i] = std::exp(x[i]);
  return x;
}
template <class T> T logOf(T x) {
  scalar::NativeBuilder b;
  return scalar::log_(b, x);
}
/// e^x is 0 below.
template <class T> constexpr T kExpVanishes = std::is_same_v<T, float> ? T(scalar::detail::kExpZero) : T(-750);
template <class T> constexpr T kInfinity = std::numeric_limits<T>::infinity();

constexpr int64_t paddedTo(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
template <class T> constexpr int64_t wholeLanes(int64_t n) { return paddedTo(n, kLanes<T>); }

/// Hands out parts of one block of memory; without one it counts what is needed.
class Arena {
public:
  explicit Arena(void *base) : base_(static_cast<char *>(base)) {}
  template <class T> T *take(int64_t count) {
    T *p = reinterpret_cast<T *>(base_ + used_);
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return p;
  }
  size_t used() const { return used_; }

private:
  char *base_;
  size_t used_ = 0;
};
/// Calls plan(arena) twice: to count, and with memory of this thread.
template <class F> void planScratch(F plan) {
  Arena count(nullptr);
  plan(count);
  Arena real(scratch(kScratchColumns, count.used() + 64));
  plan(real);
}

/// n elements, then zeros up to `width`.
template <class S, class T> void copyRow(const S *src, int64_t step, int64_t n, int64_t width, T *out) {
  int64_t i = 0;
  if constexpr (std::is_same_v<S, T>)
    if (step == 1)
      for (; i + kLanes<T> <= n; i += kLanes<T>)
        store(out + i, load(src + i));
  for (; i < n; ++i)
    out[i] = T(src[i * step]);
  for (; i < width; ++i)
    out[i] = T(0);
}
template <class S, class T> void storeRow(const T *src, int64_t n, S *out, int64_t step) {
  int64_t i = 0;
  if constexpr (std::is_same_v<S, T>)
    if (step == 1)
      for (; i + kLanes<T> <= n; i += kLanes<T>)
        store(out + i, load(src + i));
  for (; i < n; ++i)
    out[i * step] = S(src[i]);
}

/// Rows of whole vectors of T: in place where the operand has them, else a copy.
template <class T> struct WholeRows {
  const T *data;
  int64_t step;
};
template <class S> constexpr bool rowsInPlace(const AttentionOperand<const S> &o, int64_t features) {
  return std::is_same_v<S, GemmAcc<S>> && o.col == 1 && features % kLanes<GemmAcc<S>> == 0;
}
template <class S, class T = GemmAcc<S>>
WholeRows<T> wholeRows(const AttentionOperand<const S> &o, const S *first, int64_t rows, int64_t features, T *copy) {
  if constexpr (std::is_same_v<S, T>)
    if (rowsInPlace(o, features))
      return {first, o.row};
  int64_t width = wholeLanes<T>(features);
  for (int64_t i = 0; i < rows; ++i)
    copyRow(first + i * o.row, o.col, features, width, copy + i * width);
  return {copy, width};
}
template <class S> int64_t copySize(const AttentionOperand<const S> &o, int64_t rows, int64_t features) {
  return rowsInPlace(o, features) ? 0 : rows * wholeLanes<GemmAcc<S>>(features);
}

/// Whether all elements of whole rows are finite: 0 times one that is not would be NaN.
template <class T> bool areFinite(const WholeRows<T> &w, int64_t rows, int64_t width) {
  Vec<T> sum(T(0));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < width; c += kLanes<T>)
      sum += load(w.data + i * w.step + c) * Vec<T>(T(0));
  return sumLanes<T, 1>(&sum)[0] == T(0);
}

/// c = alpha * A * B + beta * c for m rows and `n` columns, a multiple of the lanes; B and c have whole vectors.
template <class T, LeftForm Form>
void product(int64_t m, int64_t n, int64_t k, const T *a, int64_t aStride, const T *b, int64_t ldb, T *c, int64_t ldc,
             T alpha, T beta) {
  constexpr int most = TileTable<T, Form>::kRows, L = kLanes<T>;
  for (int64_t i = 0; i < m; i += most) {
    int64_t rows = m - i < most ? m - i : most, wide = wideVectors(static_cast<int>(rows)) * L;
    const T *left = Form == LeftForm::Rows ? a + i * aStride : a + i;
    for (int64_t j = 0; j < n;) {
      int64_t cols = n - j >= wide ? wide : n - j >= 2 * L ? 2 * L : L;
      TileFn<T> fn = cols == wide ? kTiles<T, Form>.wide[rows] : kTiles<T, Form>.panel[rows][cols / L];
      fn(k, left, aStride, b + j, ldb, c + i * ldc + j, ldc, alpha, beta);
      j += cols;
    }
  }
}
/// The same for a B in panels of kPanelCols columns; n is rounded up to whole panels.
template <class T>
void panelProduct(int64_t m, int64_t n, int64_t k, const T *a, int64_t aStride, const T *panels, T *c, int64_t ldc,
                  T alpha) {
  constexpr int most = TileTable<T, LeftForm::Rows>::kRows;
  for (int64_t j = 0; j < n; j += kPanelCols<T>)
    for (int64_t i = 0; i < m; i += most)
      kTiles<T, LeftForm::Rows>.panel[m - i < most ? m - i : most][kPanelVectors](
          k, a + i * aStride, aStride, panels + j * k, kPanelCols<T>, c + i * ldc + j, ldc, alpha, T(0));
}

/// What both passes know of the rows that share one key head.
template <class S> struct Group {
  using T = GemmAcc<S>;
  Group(const AttentionArgs<S> &args, int64_t batch, int64_t keyHead)
      : x(args), b(batch), h(keyHead), heads(args.heads / args.kvHeads), fill(static_cast<T>(args.fill)) {}
  int64_t headOf(int64_t row) const { return h * heads + row / x.queries; }
  int64_t queryOf(int64_t row) const { return row % x.queries; }
  /// The last query among rows [begin, end).
  int64_t lastQuery(int64_t begin, int64_t end) const {
    return begin / x.queries == (end - 1) / x.queries ? queryOf(end - 1) : x.queries - 1;
  }
  bool isMasked() const { return x.causal || x.seen.data; }
  /// The end of the keys that rows [begin, end) see, if what they don't see adds nothing.
  int64_t keyLimit(int64_t begin, int64_t end) const {
    return x.causal && fill == -kInfinity<T> ? std::min(x.keys, lastQuery(begin, end) + 1) : x.keys;
  }
  /// Whether keys [from, to) are hidden from all of rows [begin, end), whose exponentials are taken against `tops`.
  bool isHidden(int64_t begin, int64_t end, int64_t from, int64_t to, const T *tops) const {
    if (!(x.causal && from > lastQuery(begin, end)) && !(x.seen.data && !anySeen(begin, end, from, to)))
      return false;
    for (int64_t r = 0; r < end - begin; ++r)
      if (fill != -kInfinity<T> && !(fill - tops[r] < kExpVanishes<T>))
        return false;
    return true;
  }

  /// Panels of the transposed keys (or values).
  void pack(const AttentionOperand<const S> &o, int64_t features, T *panels) const {
    for (int64_t j = 0; j < x.keys; j += kPanelCols<T>)
      packPanel<S, T>(features, std::min<int64_t>(kPanelCols<T>, x.keys - j), o.at(b, h, j), o.col, o.row,
                      kPanelCols<T>, panels + j * features);
  }
  int64_t packedKeys() const { return paddedTo(x.keys, kPanelCols<T>); }

  /// Whether some row in [begin, end) sees a key in [from, to) as far as the boolean mask goes.
  bool anySeen(int64_t begin, int64_t end, int64_t from, int64_t to) const {
    for (int64_t r = begin; r < end; ++r) {
      const bool *seen = x.seen.at(b, headOf(r), queryOf(r));
      for (int64_t k = from; k < to; ++k)
        if (seen[k * x.seen.col])
          return true;
    }
    return false;
  }

  /// Applies the mask to the scores of a row against keys [from, from + n).
  void mask(int64_t row, int64_t from, int64_t n, T *s) const {
    int64_t query = queryOf(row);
    if (x.seen.data) {
      const bool *seen = x.seen.at(b, headOf(row), query) + from * x.seen.col;
      if (x.seen.col == 1)
        for (int64_t k = 0; k < n; ++k)
          s[k] = seen[k] ? s[k] : fill;
      else
        for (int64_t k = 0; k < n; ++k)
          s[k] = seen[k * x.seen.col] ? s[k] : fill;
    } else if (x.bias.data) {
      const T *bias = x.bias.at(b, headOf(row), query) + from * x.bias.col;
      if (x.bias.col == 1)
        for (int64_t k = 0; k < n; ++k)
          s[k] += bias[k];
      else
        for (int64_t k = 0; k < n; ++k)
          s[k] += bias[k * x.bias.col];
    }
    if (x.causal)
      for (int64_t k = std::max<int64_t>(0, query + 1 - from); k < n; ++k)
        s[k] = fill;
  }

  const AttentionArgs<S> &x;
  int64_t b, h, heads;
  T fill;
};

/// The larger of two vectors; a NaN in `a` is lost, which its exponential makes good.
template <class T> DLC_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) { return a > b ? a : b; }

/// The maximum of whole vectors.
template <class T> T maxOfRow(const T *s, int64_t n) {
  Vec<T> top(-kInfinity<T>);
  for (int64_t k = 0; k < n; k += kLanes<T>)
    top = larger<T>(load(s + k), top);
  T m = top[0];
  for (int i = 1; i < kLanes<T>; ++i)
    m = top[i] > m ? top[i] : m;
  return m;
}
/// s = e^(s - top) over whole vectors; returns the sum.
template <class T> T expRow(T *s, int64_t n, T top) {
  Vec<T> sums[2] = {};
  for (int64_t k = 0; k < n; k += kLanes<T>) {
    Vec<T> e = expOf(load(s + k) - Vec<T>(top));
    store(s + k, e);
    sums[k / kLanes<T> % 2] += e;
  }
  Vec<T> sum = sums[0] + sums[1];
  return sumLanes<T, 1>(&sum)[0];
}
template <class T> void scaleRow(T *row, int64_t n, T by) {
  for (int64_t c = 0; c < n; c += kLanes<T>)
    store(row + c, load(row + c) * Vec<T>(by));
}

template <class S> class Forward : Group<S> {
  using T = GemmAcc<S>;
  using Group<S>::x;
  using Group<S>::b;
  using Group<S>::h;

public:
  Forward(const AttentionForward<S> &args, int64_t batch, int64_t keyHead, int64_t rows)
      : Group<S>(args, batch, keyHead), args_(args), dimWidth_(wholeLanes<T>(x.dim)),
        valueWidth_(wholeLanes<T>(x.valueDim)),
        streams_(rows <= kStreamedRows && std::is_same_v<S, T> && x.k.col == 1) {
    rows = std::min(rows, kQueryBlock);
    planScratch([&](Arena &a) {
      q_ = a.take<T>(rows * dimWidth_);
      scores_ = a.take<T>(rows * kKeyBlock);
      out_ = a.take<T>(rows * valueWidth_);
      panels_ = a.take<T>(streams_ ? 0 : this->packedKeys() * x.dim + kLanes<T>);
      valueCopy_ = a.take<T>(copySize(x.v, x.keys, x.valueDim));
    });
    if (!streams_)
      this->pack(x.k, x.dim, panels_);
    values_ = wholeRows(x.v, x.v.at(b, h, 0), x.keys, x.valueDim, valueCopy_);
    skips_ = this->isMasked() && areFinite(values_, x.keys, valueWidth_);
  }

  /// Rows [begin, end), at most kQueryBlock.
  void run(int64_t begin, int64_t end) {
    int64_t rows = end - begin;
    for (int64_t r = 0; r < rows; ++r) {
      copyRow(x.q.at(b, this->headOf(begin + r), this->queryOf(begin + r)), x.q.col, x.dim, dimWidth_,
              q_ + r * dimWidth_);
      top_[r] = -kInfinity<T>, sum_[r] = 0;
    }
    bool first = true;
    int64_t limit = skips_ ? this->keyLimit(begin, end) : x.keys;
    for (int64_t from = 0; from < limit; from += kKeyBlock) {
      int64_t n = std::min(kKeyBlock, limit - from);
      if (!first && skips_ && this->isHidden(begin, end, from, from + n, top_))
        continue;
      scoreBlock(rows, from, n);
      for (int64_t r = 0; r < rows; ++r)
        softmaxRow(begin, r, from, n, first);
      product<T, LeftForm::Rows>(rows, valueWidth_, n, scores_, kKeyBlock, values_.data + from * values_.step,
                                 values_.step, out_, valueWidth_, T(1), first ? T(0) : T(1));
      first = false;
    }
    finish(begin, rows);
  }

private:
  void scoreBlock(int64_t rows, int64_t from, int64_t n) {
    T scale = static_cast<T>(x.scale);
    if (!streams_)
      return panelProduct<T>(rows, n, x.dim, q_, dimWidth_, panels_ + from * x.dim, scores_, kKeyBlock, scale);
    if constexpr (std::is_same_v<S, T>) {
      constexpr void (*dots[])(int64_t, const T *, int64_t, const T *, int64_t,
                               T *) = {dotTile<T, 1, 4>, dotTile<T, 2, 4>, dotTile<T, 3, 4>, dotTile<T, 4, 4>};
      constexpr void (*single[])(int64_t, const T *, int64_t, const T *, int64_t,
                                 T *) = {dotTile<T, 1, 1>, dotTile<T, 2, 1>, dotTile<T, 3, 1>, dotTile<T, 4, 1>};
      alignas(64) T sums[kStreamedRows * 4 + kLanes<T>];
      for (int64_t j = 0; j < n;) {
        int64_t cols = n - j >= 4 ? 4 : 1;
        (cols == 4 ? dots : single)[rows - 1](x.dim, q_, dimWidth_, x.k.at(b, h, from + j), x.k.row, sums);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < cols; ++c)
            scores_[r * kKeyBlock + j + c] = sums[r * cols + c] * scale;
        j += cols;
      }
    }
  }

  /// Scores of a row become exponentials against its maximum so far; what was summed before is scaled to it.
  void softmaxRow(int64_t begin, int64_t r, int64_t from, int64_t n, bool first) {
    T *s = scores_ + r * kKeyBlock;
    this->mask(begin + r, from, n, s);
    int64_t width = wholeLanes<T>(n);
    for (int64_t k = n; k < width; ++k)
      s[k] = -kInfinity<T>;
    T top = maxOfRow(s, width);
    top = top > top_[r] ? top : top_[r];
    // Against 0, exponentials of -inf are 0.
    T sum = expRow(s, width, top == -kInfinity<T> ? T(0) : top);
    if (!first && top != top_[r]) {
      T by = top_[r] == -kInfinity<T> ? T(0) : expOf(Vec<T>(top_[r] - top))[0];
      sum_[r] *= by;
      scaleRow(out_ + r * valueWidth_, valueWidth_, by);
    }
    sum_[r] += sum;
    top_[r] = top;
  }

  void finish(int64_t begin, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) {
      int64_t head = this->headOf(begin + r), query = this->queryOf(begin + r);
      T *row = out_ + r * valueWidth_;
      bool empty = x.keys == 0 || (x.zeroEmpty && sum_[r] == 0);
      for (int64_t c = 0; c < valueWidth_; c += kLanes<T>)
        store(row + c, empty ? Vec<T>(T(0)) : load(row + c) / Vec<T>(sum_[r]));
      storeRow(row, x.valueDim, args_.out.at(b, head, query), args_.out.col);
      args_.lse[(b * x.heads + head) * x.queries + query] = top_[r] + logOf(sum_[r]);
    }
  }

  const AttentionForward<S> &args_;
  int64_t dimWidth_, valueWidth_;
  bool streams_, skips_;
  T *q_, *scores_, *out_, *panels_, *valueCopy_;
  WholeRows<T> values_;
  T top_[kQueryBlock], sum_[kQueryBlock];
};

template <class S> void forwardRows(const AttentionForward<S> &x, int64_t b, int64_t h, int64_t begin, int64_t end) {
  Forward<S> pass(x, b, h, x.heads / x.kvHeads * x.queries);
  for (int64_t r = begin; r < end; r += kQueryBlock)
    pass.run(r, std::min(end, r + kQueryBlock));
}
