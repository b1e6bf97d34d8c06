// The backward pass of attention: probabilities are computed again from the logarithms of their sums. Included after
// AttentionBlocks.h, under the same conditions.

template <class T> T dotRows(const T *a, const T *b, int64_t width) {
  Vec<T> sum(T(0));
  for (int64_t c = 0; c < width; c += kLanes<T>)
    sum = multiplyAdd<T>(load(a + c), load(b + c), sum);
  return sumLanes<T, 1>(&sum)[0];
}

template <class S> class Backward : Group<S> {
  using T = GemmAcc<S>;
  using Group<S>::x;
  using Group<S>::b;
  using Group<S>::h;

public:
  Backward(const AttentionBackward<S> &args, int64_t batch, int64_t keyHead)
      : Group<S>(args, batch, keyHead), args_(args), dimWidth_(wholeLanes<T>(x.dim)),
        valueWidth_(wholeLanes<T>(x.valueDim)) {
    planScratch([&](Arena &a) {
      q_ = a.take<T>(kQueryBlock * dimWidth_);
      dq_ = a.take<T>(kQueryBlock * dimWidth_);
      grad_ = a.take<T>(kQueryBlock * valueWidth_);
      out_ = a.take<T>(valueWidth_);
      p_ = a.take<T>(kQueryBlock * kKeyBlock);
      ds_ = a.take<T>(kQueryBlock * kKeyBlock);
      keyPanels_ = a.take<T>(this->packedKeys() * x.dim + kLanes<T>);
      valuePanels_ = a.take<T>(this->packedKeys() * x.valueDim + kLanes<T>);
      keyCopy_ = a.take<T>(copySize(x.k, x.keys, x.dim));
      valueCopy_ = a.take<T>(copySize(x.v, x.keys, x.valueDim));
      dk_ = a.take<T>(x.keys * dimWidth_);
      dv_ = a.take<T>(x.keys * valueWidth_);
    });
    this->pack(x.k, x.dim, keyPanels_);
    this->pack(x.v, x.valueDim, valuePanels_);
    keys_ = wholeRows(x.k, x.k.at(b, h, 0), x.keys, x.dim, keyCopy_);
    std::fill(dk_, dk_ + x.keys * dimWidth_, T(0));
    std::fill(dv_, dv_ + x.keys * valueWidth_, T(0));
    skips_ = this->isMasked() && args_.gradFill == 0 && areFinite(keys_, x.keys, dimWidth_) &&
             areFinite(wholeRows(x.v, x.v.at(b, h, 0), x.keys, x.valueDim, valueCopy_), x.keys, valueWidth_);
  }

  /// Rows [begin, end), at most kQueryBlock.
  void run(int64_t begin, int64_t end) {
    int64_t rows = end - begin;
    for (int64_t r = 0; r < rows; ++r)
      startRow(begin + r, r);
    bool skips = skips_ && areFinite<T>({q_, dimWidth_}, rows, dimWidth_) &&
                 areFinite<T>({grad_, valueWidth_}, rows, valueWidth_) && !std::any_of(lse_, lse_ + rows, sawNothing);
    for (int64_t r = 0; r < rows; ++r)
      norm_[r] = std::abs(lse_[r]) > kLargeSum && std::isfinite(lse_[r]) ? normOf(begin + r, r) : T(1);
    std::fill(dq_, dq_ + rows * dimWidth_, T(0));
    int64_t limit = skips ? this->keyLimit(begin, end) : x.keys;
    for (int64_t from = 0; from < limit; from += kKeyBlock) {
      int64_t n = std::min(kKeyBlock, limit - from);
      if (skips && this->isHidden(begin, end, from, from + n, lse_))
        continue;
      panelProduct<T>(rows, n, x.dim, q_, dimWidth_, keyPanels_ + from * x.dim, p_, kKeyBlock, static_cast<T>(x.scale));
      panelProduct<T>(rows, n, x.valueDim, grad_, valueWidth_, valuePanels_ + from * x.valueDim, ds_, kKeyBlock, T(1));
      for (int64_t r = 0; r < rows; ++r)
        gradRow(begin + r, r, from, n);
      product<T, LeftForm::Panels>(n, valueWidth_, rows, p_, kKeyBlock, grad_, valueWidth_, dv_ + from * valueWidth_,
                                   valueWidth_, T(1), T(1));
      product<T, LeftForm::Panels>(n, dimWidth_, rows, ds_, kKeyBlock, q_, dimWidth_, dk_ + from * dimWidth_, dimWidth_,
                                   T(1), T(1));
      product<T, LeftForm::Rows>(rows, dimWidth_, n, ds_, kKeyBlock, keys_.data + from * keys_.step, keys_.step, dq_,
                                 dimWidth_, T(1), T(1));
    }
    for (int64_t r = 0; r < rows; ++r)
      storeRow(dq_ + r * dimWidth_, x.dim, args_.dq.at(b, this->headOf(begin + r), this->queryOf(begin + r)),
               args_.dq.col);
  }

  void finish() {
    for (int64_t k = 0; k < x.keys; ++k) {
      storeRow(dk_ + k * dimWidth_, x.dim, args_.dk.at(b, h, k), args_.dk.col);
      storeRow(dv_ + k * valueWidth_, x.valueDim, args_.dv.at(b, h, k), args_.dv.col);
    }
  }

private:
  /// The logarithm of a sum beyond this is not exact enough to divide by.
  static constexpr T kLargeSum = 64;
  /// The probabilities of such a row are NaN, of hidden keys too.
  static bool sawNothing(T lse) { return lse == -kInfinity<T>; }

  void startRow(int64_t row, int64_t r) {
    int64_t head = this->headOf(row), query = this->queryOf(row);
    copyRow(x.q.at(b, head, query), x.q.col, x.dim, dimWidth_, q_ + r * dimWidth_);
    copyRow(args_.grad.at(b, head, query), args_.grad.col, x.valueDim, valueWidth_, grad_ + r * valueWidth_);
    copyRow(args_.out.at(b, head, query), args_.out.col, x.valueDim, valueWidth_, out_);
    delta_[r] = dotRows(grad_ + r * valueWidth_, out_, valueWidth_);
    T lse = args_.lse[(b * x.heads + head) * x.queries + query];
    // Against +inf, the exponentials of a row that sees nothing are 0.
    lse_[r] = x.zeroEmpty && lse == -kInfinity<T> ? kInfinity<T> : lse;
  }

  /// Where scores are large, the logarithm of their sum has lost the sum to rounding (all keys masked by a large finite
  /// number): one over the sum of what would be the row's probabilities.
  T normOf(int64_t row, int64_t r) {
    T sum(0);
    for (int64_t from = 0; from < x.keys; from += kKeyBlock) {
      int64_t n = std::min(kKeyBlock, x.keys - from);
      panelProduct<T>(1, n, x.dim, q_ + r * dimWidth_, dimWidth_, keyPanels_ + from * x.dim, p_, kKeyBlock,
                      static_cast<T>(x.scale));
      this->mask(row, from, n, p_);
      for (int64_t k = 0; k < n; k += kLanes<T>)
        store(p_ + k, expOf(load(p_ + k) - Vec<T>(lse_[r])));
      sum = std::accumulate(p_, p_ + n, sum);
    }
    return 1 / sum;
  }

  /// Scores become probabilities, and their gradients those of the scaled products.
  void gradRow(int64_t row, int64_t r, int64_t from, int64_t n) {
    T *p = p_ + r * kKeyBlock, *ds = ds_ + r * kKeyBlock;
    this->mask(row, from, n, p);
    Vec<T> lse(lse_[r]), norm(norm_[r]), delta(delta_[r]), scale(static_cast<T>(args_.gradScale));
    T replaced = static_cast<T>(args_.gradFill) * static_cast<T>(args_.gradScale);
    for (int64_t k = 0; k < n; k += kLanes<T>) {
      Vec<T> e = expOf(load(p + k) - lse) * norm;
      store(p + k, e);
      store(ds + k, e * (load(ds + k) - delta) * scale);
    }
    // Where the score was replaced, nothing flows back (`replaced` is 0).
    if (x.seen.data) {
      const bool *seen = x.seen.at(b, this->headOf(row), this->queryOf(row)) + from * x.seen.col;
      for (int64_t k = 0; k < n; ++k)
        ds[k] = seen[k * x.seen.col] ? ds[k] : replaced;
    }
    if (x.causal)
      for (int64_t k = std::max<int64_t>(0, this->queryOf(row) + 1 - from); k < n; ++k)
        ds[k] = replaced;
  }

  const AttentionBackward<S> &args_;
  int64_t dimWidth_, valueWidth_;
  bool skips_;
  T *q_, *dq_, *grad_, *out_, *p_, *ds_, *keyPanels_, *valuePanels_, *keyCopy_, *valueCopy_, *dk_, *dv_;
  WholeRows<T> keys_;
  T delta_[kQueryBlock], lse_[kQueryBlock], norm_[kQueryBlock];
};

template <class S> void backwardGroup(const AttentionBackward<S> &x, int64_t b, int64_t h) {
  Backward<S> pass(x, b, h);
  int64_t rows = x.heads / x.kvHeads * x.queries;
  for (int64_t r = 0; r < rows; r += kQueryBlock)
    pass.run(r, std::min(rows, r + kQueryBlock));
  pass.finish();
}

template <class S> constexpr AttentionCode<S> makeCode() { return {forwardRows<S>, backwardGroup<S>}; }
