// Packing of A and B into panels. Included after GemmTiles.h, under the same conditions.

template <int Offset, class V, class T, size_t... I> DLC_INLINE V interleave(V a, V b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I % 2 ? kLanes<T> : 0) + Offset + I / 2 ...);
}

/// Transposes kLanes rows of kLanes elements: interleaving row i with row i + half, log2(kLanes) times.
template <class T> DLC_INLINE void transpose(Vec<T> (&rows)[kLanes<T>]) {
  constexpr int L = kLanes<T>;
  using Lanes = std::make_index_sequence<L>;
#pragma unroll
  for (int stage = 1; stage < L; stage *= 2) {
    Vec<T> next[L];
#pragma unroll
    for (int i = 0; i < L / 2; ++i) {
      next[2 * i] = interleave<0, Vec<T>, T>(rows[i], rows[i + L / 2], Lanes{});
      next[2 * i + 1] = interleave<L / 2, Vec<T>, T>(rows[i], rows[i + L / 2], Lanes{});
    }
#pragma unroll
    for (int i = 0; i < L; ++i)
      rows[i] = next[i];
  }
}

/// Elements of `count` sequences (at `step`), each contiguous along p, to out[p * width + i]. Up to one vector past
/// the last element is written. Zeros fill i from count to the next multiple of the lanes, or to width.
template <class T, int Vectors>
void packContiguous(int64_t k, int64_t count, const T *src, int64_t step, int64_t width, T *out) {
  constexpr int L = kLanes<T>;
  for (int64_t p = 0; p < k; p += L) {
    int64_t rest = k - p < L ? k - p : L;
    Vec<T> block[Vectors][L];
#pragma unroll
    for (int v = 0; v < Vectors; ++v) {
#pragma unroll
      for (int i = 0; i < L; ++i) {
        int64_t row = v * L + i;
        if (row >= count)
          block[v][i] = Vec<T>(T(0));
        else
          block[v][i] = rest == L ? load(src + row * step + p) : loadPart(src + row * step + p, rest);
      }
      transpose<T>(block[v]);
    }
    // In the order of p: what a store writes past its `width` elements is written again by the next one.
    for (int i = 0; i < rest; ++i)
#pragma unroll
      for (int v = 0; v < Vectors; ++v)
        store(out + (p + i) * width + v * L, block[v][i]);
  }
}

/// Whole vectors of each of k rows, to rows of `width`; what is written past them is written again by the next row.
template <class T, int Vectors> void copyRows(int64_t k, const T *src, int64_t step, int64_t width, T *out) {
  constexpr int L = kLanes<T>;
  for (int64_t p = 0; p < k; ++p)
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
      store(out + p * width + v * L, load(src + p * step + v * L));
}

/// The general form: element (p, i) at src[p * pStep + i * iStep] to out[p * width + i], zeros for i >= count.
template <class S, class T>
void packStrided(int64_t k, int64_t count, const S *src, int64_t pStep, int64_t iStep, int64_t width, T *out) {
  for (int64_t p = 0; p < k; ++p) {
    const S *from = src + p * pStep;
    T *to = out + p * width;
    for (int64_t i = 0; i < count; ++i)
      to[i] = T(from[i * iStep]);
    for (int64_t i = count; i < width; ++i)
      to[i] = T(0);
  }
}

/// One panel of A (`width` = its rows) or of B (`width` = kPanelCols, of which `count` exist).
template <class S, class T>
void packPanel(int64_t k, int64_t count, const S *src, int64_t pStep, int64_t iStep, int64_t width, T *out) {
  if constexpr (std::is_same_v<S, T> && std::is_floating_point_v<T>) {
    constexpr int L = kLanes<T>;
    if (pStep == 1 && count > 2) {
      if (width <= L)
        return packContiguous<T, 1>(k, count, src, iStep, width, out);
      if (width <= 2 * L)
        return packContiguous<T, 2>(k, count, src, iStep, width, out);
    }
    if (iStep == 1 && count == kPanelCols<T> && width == count)
      return copyRows<T, kPanelVectors>(k, src, pStep, width, out);
    // Reading too far is safe where a later row of the same matrix follows; the last row is copied below.
    if (iStep == 1 && count == width && count > 2 && width <= 2 * L && pStep >= 2 * L) {
      if (width <= L)
        copyRows<T, 1>(k - 1, src, pStep, width, out);
      else
        copyRows<T, 2>(k - 1, src, pStep, width, out);
      src += (k - 1) * pStep, out += (k - 1) * width;
      k = 1;
    }
  }
  if (iStep == 1)
    return packStrided<S, T>(k, count, src, pStep, 1, width, out);
  packStrided<S, T>(k, count, src, pStep, iStep, width, out);
}

/// All panels of columns [0, n) and rows [0, k) of a slice of B.
template <class S, class T> void packColumns(int64_t k, int64_t n, const S *b, int64_t bRow, int64_t bCol, T *out) {
  constexpr int64_t width = kPanelCols<T>;
  for (int64_t j = 0; j < n; j += width)
    packPanel<S, T>(k, n - j < width ? n - j : width, b + j * bCol, bRow, bCol, width, out + j * k);
}

template <class S, class T> void packWholeB(int64_t k, int64_t n, const S *b, int64_t bRow, int64_t bCol, T *out) {
  constexpr int64_t width = kPanelCols<T>;
  int64_t padded = (n + width - 1) / width * width, slice = sliceRows(k);
  for (int64_t p = 0; p < k; p += slice)
    packColumns<S, T>(k - p < slice ? k - p : slice, n, b + p * bRow, bRow, bCol, out + p * padded);
}
