// The loops around the register tile: cache blocks, slices of K, edges. Included after GemmPack.h.

/// Rows of a panel when m rows are cut evenly into as few panels of at most `most` as will do.
inline int64_t evenRows(int64_t m, int64_t most) {
  int64_t panels = (m + most - 1) / most;
  return (m + panels - 1) / panels;
}

/// One slice of the sum, and what becomes of C's old value in it.
template <class T> struct Slice {
  int64_t k;
  T alpha, beta;
};

/// Rows of A for one slice: packed panels (each as wide as its rows), or A in place.
template <class T> struct Left {
  bool packed;
  LeftForm form;
  const T *a;
  int64_t stride, panelRows;
  const T *panel(int64_t i, int64_t k) const {
    return packed ? a + i * k : form == LeftForm::Rows ? a + i * stride : a + i;
  }
  int64_t step(int64_t rows) const { return packed ? rows : stride; }
  TileFn<T> tileFor(int64_t rows, int64_t vectors) const {
    return form == LeftForm::Rows ? kTiles<T, LeftForm::Rows>.panel[rows][vectors]
                                  : kTiles<T, LeftForm::Panels>.panel[rows][vectors];
  }
  TileFn<T> wideTileFor(int64_t rows) const {
    return form == LeftForm::Rows ? kTiles<T, LeftForm::Rows>.wide[rows] : kTiles<T, LeftForm::Panels>.wide[rows];
  }
};

/// Runs a tile whose C is not whole vectors of contiguous columns, through a buffer.
template <class T, class Run>
void edgeTile(Run run, int64_t rows, int64_t cols, T *c, int64_t cRow, int64_t cCol, T beta) {
  constexpr int64_t width = kPanelCols<T>;
  alignas(64) T buffer[kTileRows<T> * width];
  run(buffer, width);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      T &out = c[i * cRow + j * cCol];
      out = update<T>(beta, out, buffer[i * width + j]);
    }
}

/// A block of C from packed B.
template <class T>
void packedColumns(const Slice<T> &slice, int64_t m, int64_t n, const Left<T> &left, const T *b, T *c, int64_t cRow,
                   int64_t cCol) {
  constexpr int64_t width = kPanelCols<T>, L = kLanes<T>;
  for (int64_t j = 0; j < n; j += width) {
    int64_t cols = n - j < width ? n - j : width, vectors = cols > L ? 2 : 1;
    const T *right = b + j * slice.k;
    for (int64_t i = 0; i < m; i += left.panelRows) {
      int64_t rows = m - i < left.panelRows ? m - i : left.panelRows;
      TileFn<T> fn = left.tileFor(rows, vectors);
      const T *a = left.panel(i, slice.k);
      T *out = c + i * cRow + j * cCol;
      if (cCol == 1 && cols == vectors * L) {
        fn(slice.k, a, left.step(rows), right, width, out, cRow, slice.alpha, slice.beta);
        continue;
      }
      auto run = [&](T *buffer, int64_t ldc) __attribute__((always_inline)) {
        fn(slice.k, a, left.step(rows), right, width, buffer, ldc, slice.alpha, T(0));
      };
      edgeTile<T>(run, rows, cols, out, cRow, cCol, slice.beta);
    }
  }
}

/// A block of C (its columns contiguous) from B in place (likewise), as far as whole vectors go. Returns the columns
/// done.
template <class T>
int64_t columnsInPlace(const Slice<T> &slice, int64_t m, int64_t n, const Left<T> &left, const T *b, int64_t ldb, T *c,
                       int64_t cRow) {
  constexpr int64_t width = kPanelCols<T>, L = kLanes<T>;
  int64_t wide = wideVectors(static_cast<int>(left.panelRows)) * L, j = 0;
  while (n - j >= L) {
    int64_t cols = n - j >= wide ? wide : n - j >= width ? width : L;
    for (int64_t i = 0; i < m; i += left.panelRows) {
      int64_t rows = m - i < left.panelRows ? m - i : left.panelRows;
      // The columns were cut for a full panel; a shorter last one takes them in parts.
      bool whole = cols == wide && rows == left.panelRows;
      for (int64_t s = 0; s < cols;) {
        int64_t step = whole ? cols : cols - s >= width ? width : L;
        TileFn<T> fn = whole ? left.wideTileFor(rows) : left.tileFor(rows, step / L);
        fn(slice.k, left.panel(i, slice.k), left.step(rows), b + j + s, ldb, c + i * cRow + j + s, cRow, slice.alpha,
           slice.beta);
        s += step;
      }
    }
    j += cols;
  }
  return j;
}

/// Packs rows [0, m) of a slice of A into panels.
template <class S, class T>
void packRows(int64_t k, int64_t m, int64_t panelRows, const S *a, int64_t aRow, int64_t aCol, T *out) {
  for (int64_t i = 0; i < m; i += panelRows) {
    int64_t rows = m - i < panelRows ? m - i : panelRows;
    packPanel<S, T>(k, rows, a + i * aRow, aCol, aRow, rows, out + i * k);
  }
}

/// Past a panel, room for the vectors that packing writes too far.
constexpr size_t kSlack = 4 * DLC_GEMM_VECTOR_BYTES;

/// Up to this many panels of the other side, packing a side costs more than reading it in place.
constexpr int64_t kPanelsInPlace = 4;

/// Whether, and how, A is read in place.
template <class S, class T> Left<T> chooseLeft(const CoreArgs<S, T> &x) {
  if constexpr (std::is_same_v<S, T>)
    if (x.n <= kPanelsInPlace * kPanelCols<T>) {
      if (x.aRow == 1)
        return {false, LeftForm::Panels, x.a, x.aCol, evenRows(x.m, kTileRows<T>)};
      if (x.aCol == 1)
        return {false, LeftForm::Rows, x.a, x.aRow, evenRows(x.m, TileTable<T, LeftForm::Rows>::kRows)};
    }
  return {true, LeftForm::Panels, nullptr, 0, evenRows(x.m, kTileRows<T>)};
}

template <class S, class T> void tiles(const CoreArgs<S, T> &x) {
  constexpr int64_t width = kPanelCols<T>;
  int64_t sliceK = sliceRows(x.k);
  Left<T> left = chooseLeft<S, T>(x);
  const bool packA = left.packed;
  const bool packB = !x.packedB && !(std::is_same_v<S, T> && x.bCol == 1 && x.cCol == 1 &&
                                     x.m <= kPanelsInPlace * kTileRows<T> && x.n >= kLanes<T>);
  const bool inPlaceB = !packB && !x.packedB;
  int64_t blockM = x.m, blockN = x.n;
  if (packA) {
    blockM = blockRows(sliceK, sizeof(T)) / left.panelRows * left.panelRows;
    blockM = blockM < left.panelRows ? left.panelRows : blockM;
  }
  if (packB)
    blockN = blockCols(sliceK, sizeof(T)) / width * width;
  T *leftPanels = nullptr, *right = nullptr;
  if (packA)
    leftPanels = static_cast<T *>(scratch(kScratchA, (x.m < blockM ? x.m : blockM) * sliceK * sizeof(T) + kSlack));
  if (!x.packedB) {
    // In place, B's last partial panel is packed.
    int64_t cols = inPlaceB ? width : ((x.n < blockN ? x.n : blockN) + width - 1) / width * width;
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
      else if (packB)
        packColumns<S, T>(slice.k, n, x.b + p * x.bRow + j * x.bCol, x.bRow, x.bCol, right);
      for (int64_t i = 0; i < x.m; i += blockM) {
        int64_t m = x.m - i < blockM ? x.m - i : blockM;
        const S *a = x.a + i * x.aRow + p * x.aCol;
        if (packA)
          packRows<S, T>(slice.k, m, left.panelRows, a, x.aRow, x.aCol, leftPanels);
        T *c = x.c + i * x.cRow + j * x.cCol;
        if constexpr (std::is_same_v<S, T>) {
          left.a = packA ? leftPanels : a;
          if (inPlaceB) {
            const T *from = x.b + p * x.bRow;
            int64_t done = columnsInPlace<T>(slice, m, n, left, from, x.bRow, c, x.cRow);
            if (done == n)
              continue;
            packPanel<T, T>(slice.k, n - done, from + done, x.bRow, 1, width, right);
            packedColumns<T>(slice, m, n - done, left, right, c + done, x.cRow, 1);
            continue;
          }
        } else {
          left.a = leftPanels;
        }
        packedColumns<T>(slice, m, n, left, b, c, x.cRow, x.cCol);
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
  alignas(64) T sums[kDotRows * kDotCols + kLanes<T>];
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
