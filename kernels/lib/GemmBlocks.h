// The loops around the register tile: cache blocks, slices of K, edges. Included after GemmPack.h.

/// Rows of a panel when m rows are cut evenly into as few panels as the tile allows.
template <class T> int64_t evenRows(int64_t m) {
  int64_t panels = (m + kTileRows<T> - 1) / kTileRows<T>;
  return (m + panels - 1) / panels;
}

/// Runs a tile whose C is not whole vectors of contiguous columns, through a buffer.
template <class T>
void edgeTile(TileFn<T> fn, int64_t rows, int64_t cols, int64_t k, const T *a, const T *b, int64_t ldb, T *c,
              int64_t cRow, int64_t cCol, T alpha, T beta) {
  constexpr int64_t width = kPanelCols<T>;
  alignas(64) T buffer[kTileRows<T> * width];
  fn(k, a, b, ldb, buffer, width, alpha, T(0));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      T &out = c[i * cRow + j * cCol];
      out = update<T>(beta, out, buffer[i * width + j]);
    }
}

template <class T> struct Slice {
  int64_t k;
  T alpha, beta;
};

/// C's block of packed A (panels of `panelRows`) and packed B.
template <class T>
void panels(const Slice<T> &slice, int64_t m, int64_t n, int64_t panelRows, const T *a, const T *b, T *c, int64_t cRow,
            int64_t cCol) {
  constexpr int64_t width = kPanelCols<T>, L = kLanes<T>;
  for (int64_t j = 0; j < n; j += width) {
    int64_t cols = n - j < width ? n - j : width;
    int vectors = cols > L ? 2 : 1;
    for (int64_t i = 0; i < m; i += panelRows) {
      int64_t rows = m - i < panelRows ? m - i : panelRows;
      TileFn<T> fn = kTiles<T>.panel[rows][vectors];
      T *out = c + i * cRow + j * cCol;
      const T *left = a + i * slice.k, *right = b + j * slice.k;
      if (cCol == 1 && cols == vectors * L)
        fn(slice.k, left, right, width, out, cRow, slice.alpha, slice.beta);
      else
        edgeTile<T>(fn, rows, cols, slice.k, left, right, width, out, cRow, cCol, slice.alpha, slice.beta);
    }
  }
}

/// Packs rows [0, m) of a slice of A into panels.
template <class S, class T>
void packRows(int64_t k, int64_t m, int64_t panelRows, const S *a, int64_t aRow, int64_t aCol, T *out) {
  for (int64_t i = 0; i < m; i += panelRows) {
    int64_t rows = m - i < panelRows ? m - i : panelRows;
    packPanel<S, T>(k, rows, a + i * aRow, aCol, aRow, rows, out + i * k);
  }
}

enum ScratchSlot { kScratchA = 0, kScratchB = 1 };
/// Past a panel, room for the vectors that packContiguous writes too far.
constexpr size_t kSlack = 4 * DLC_GEMM_VECTOR_BYTES;

/// Few rows and B's rows contiguous: B is read in place, once; only its last partial panel is packed.
template <class T> void fewRows(const CoreArgs<T, T> &x) {
  constexpr int64_t width = kPanelCols<T>, L = kLanes<T>;
  int64_t sliceK = sliceRows(x.k), panelRows = evenRows<T>(x.m);
  T *left = static_cast<T *>(scratch(kScratchA, x.m * sliceK * sizeof(T) + kSlack));
  T *last = static_cast<T *>(scratch(kScratchB, width * sliceK * sizeof(T) + kSlack));
  int64_t wide = wideVectors(static_cast<int>(panelRows)) * L;
  for (int64_t p = 0; p < x.k; p += sliceK) {
    Slice<T> slice{x.k - p < sliceK ? x.k - p : sliceK, x.alpha, p == 0 ? x.beta : T(1)};
    packRows<T, T>(slice.k, x.m, panelRows, x.a + p * x.aCol, x.aRow, x.aCol, left);
    const T *b = x.b + p * x.bRow;
    int64_t j = 0;
    while (x.n - j >= L) {
      int64_t cols = x.n - j >= wide ? wide : x.n - j >= width ? width : L;
      for (int64_t i = 0; i < x.m; i += panelRows) {
        int64_t rows = x.m - i < panelRows ? x.m - i : panelRows;
        // The last panel has fewer rows and could be wider; the columns were cut for the first.
        TileFn<T> fn = cols == wide && rows == panelRows ? kTiles<T>.wide[rows] : nullptr;
        for (int64_t s = 0; s < cols;) {
          int64_t step = fn ? cols : cols - s >= width ? width : L;
          TileFn<T> part = fn ? fn : kTiles<T>.panel[rows][step / L];
          part(slice.k, left + i * slice.k, b + j + s, x.bRow, x.c + i * x.cRow + j + s, x.cRow, slice.alpha,
               slice.beta);
          s += step;
        }
      }
      j += cols;
    }
    if (j < x.n) {
      packPanel<T, T>(slice.k, x.n - j, b + j, x.bRow, 1, width, last);
      panels<T>(slice, x.m, x.n - j, panelRows, left, last, x.c + j, x.cRow, 1);
    }
  }
}

template <class S, class T> void tiles(const CoreArgs<S, T> &x) {
  constexpr int64_t width = kPanelCols<T>;
  if constexpr (std::is_same_v<S, T>)
    if (!x.packedB && x.bCol == 1 && x.cCol == 1 && x.m <= 2 * kTileRows<T> && x.n >= kLanes<T>)
      return fewRows<T>(x);
  int64_t sliceK = sliceRows(x.k), panelRows = evenRows<T>(x.m);
  int64_t blockM = blockRows(sliceK, sizeof(T)) / panelRows * panelRows;
  blockM = blockM < panelRows ? panelRows : blockM;
  int64_t blockN = x.packedB ? x.n : blockCols(sliceK, sizeof(T)) / width * width;
  T *left = static_cast<T *>(scratch(kScratchA, (x.m < blockM ? x.m : blockM) * sliceK * sizeof(T) + kSlack));
  T *right = nullptr;
  if (!x.packedB) {
    int64_t cols = ((x.n < blockN ? x.n : blockN) + width - 1) / width * width;
    right = static_cast<T *>(scratch(kScratchB, cols * sliceK * sizeof(T) + kSlack));
  }
  int64_t packedCols = (x.packedN + width - 1) / width * width;
  for (int64_t j = 0; j < x.n; j += blockN) {
    int64_t n = x.n - j < blockN ? x.n - j : blockN;
    for (int64_t p = 0; p < x.k; p += sliceK) {
      Slice<T> slice{x.k - p < sliceK ? x.k - p : sliceK, x.alpha, p == 0 ? x.beta : T(1)};
      const T *b = right;
      if (x.packedB)
        b = x.packedB + p * packedCols + (x.packedCol + j) * slice.k;
      else
        packColumns<S, T>(slice.k, n, x.b + p * x.bRow + j * x.bCol, x.bRow, x.bCol, right);
      for (int64_t i = 0; i < x.m; i += blockM) {
        int64_t m = x.m - i < blockM ? x.m - i : blockM;
        packRows<S, T>(slice.k, m, panelRows, x.a + i * x.aRow + p * x.aCol, x.aRow, x.aCol, left);
        panels<T>(slice, m, n, panelRows, left, b, x.c + i * x.cRow + j * x.cCol, x.cRow, x.cCol);
      }
    }
  }
}

constexpr int kDotRows = DLC_GEMM_VECTOR_BYTES == 64 ? 4 : 3;
constexpr int kDotCols = 4;

template <class T> using DotFn = void (*)(int64_t, const T *, int64_t, const T *, int64_t, T *);
template <class T> struct DotTable {
  DotFn<T> fn[kDotRows + 1][kDotCols + 1] = {};
  template <int MR, int NR> constexpr void fill() {
    fn[MR][NR] = dotTile<T, MR, NR>;
    if constexpr (NR > 1)
      fill<MR, NR - 1>();
    else if constexpr (MR > 1)
      fill<MR - 1, kDotCols>();
  }
  constexpr DotTable() { fill<kDotRows, kDotCols>(); }
};
template <class T> constexpr DotTable<T> kDots{};

/// Rows of A against kDotCols columns of B at a time; A stays in the cache, B is streamed once.
template <class T> void dots(const CoreArgs<T, T> &x) {
  T sums[kDotRows * kDotCols];
  for (int64_t j = 0; j < x.n; j += kDotCols) {
    int64_t cols = x.n - j < kDotCols ? x.n - j : kDotCols;
    for (int64_t i = 0; i < x.m; i += kDotRows) {
      int64_t rows = x.m - i < kDotRows ? x.m - i : kDotRows;
      kDots<T>.fn[rows][cols](x.k, x.a + i * x.aRow, x.aRow, x.b + j * x.bCol, x.bCol, sums);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t s = 0; s < cols; ++s) {
          T &out = x.c[(i + r) * x.cRow + (j + s) * x.cCol];
          out = update<T>(x.beta, out, x.alpha * sums[r * cols + s]);
        }
    }
  }
}

template <class S, class T> constexpr CoreCode<S, T> makeCode() {
  CoreCode<S, T> code{};
  code.tiles = tiles<S, T>;
  if constexpr (std::is_same_v<S, T> && std::is_floating_point_v<T>)
    code.dots = dots<T>;
  code.packB = packWholeB<S, T>;
  code.panelCols = kPanelCols<T>;
  code.panelRows = kTileRows<T>;
  code.lanes = kLanes<T>;
  return code;
}

constexpr CoreTable kTable{makeCode<float, float>(),       makeCode<double, double>(),
                           makeCode<Half, float>(),        makeCode<BFloat16, float>(),
                           makeCode<uint8_t, uint8_t>(),   makeCode<uint16_t, uint16_t>(),
                           makeCode<uint32_t, uint32_t>(), makeCode<uint64_t, uint64_t>()};
