// The register tile, its vectors and the dot-product tile. Included inside an anonymous namespace by one file for each
// instruction set, with DLC_GEMM_VECTOR_BYTES and DLC_GEMM_ROWS set and the target attribute in force.

template <class T> constexpr int kLanes = DLC_GEMM_VECTOR_BYTES / sizeof(T);
template <class T> struct VecTypes {
  typedef T Aligned __attribute__((ext_vector_type(kLanes<T>)));
  typedef T Unaligned __attribute__((ext_vector_type(kLanes<T>), aligned(sizeof(T)), may_alias));
};
template <class T> using Vec = typename VecTypes<T>::Aligned;

#define DLC_INLINE __attribute__((always_inline)) inline

template <class T> DLC_INLINE Vec<T> load(const T *p) {
  return *reinterpret_cast<const typename VecTypes<T>::Unaligned *>(p);
}
template <class T> DLC_INLINE void store(T *p, Vec<T> v) {
  *reinterpret_cast<typename VecTypes<T>::Unaligned *>(p) = v;
}
template <class T> DLC_INLINE Vec<T> multiplyAdd(Vec<T> a, Vec<T> b, Vec<T> c) {
  if constexpr (std::is_floating_point_v<T>)
    return __builtin_elementwise_fma(a, b, c);
  else
    return a * b + c;
}
/// beta * c + value, rounded as the vectors do it; c is not read if beta is 0.
template <class T> DLC_INLINE T update(T beta, const T &c, T value) {
  if (beta == T(0))
    return value;
  if constexpr (std::is_floating_point_v<T>)
    return __builtin_elementwise_fma(beta, c, value);
  else
    return T(beta * c + value);
}
/// The first `count` elements, and zeros.
template <class T> DLC_INLINE Vec<T> loadPart(const T *p, int64_t count) {
  alignas(DLC_GEMM_VECTOR_BYTES) T part[kLanes<T>] = {};
  for (int64_t i = 0; i < count; ++i)
    part[i] = p[i];
  return load(part);
}

/// Rows of the largest tile: floats fill the registers; for integers a small tile keeps the code small.
template <class T> constexpr int kTileRows = std::is_floating_point_v<T> ? DLC_GEMM_ROWS : 4;
constexpr int kPanelVectors = 2;
template <class T> constexpr int kPanelCols = kPanelVectors * kLanes<T>;

/// How a tile reads A: panels hold the rows' elements side by side for each p (packed, or a transposed A in place);
/// `Rows` is a row-major A in place.
enum class LeftForm { Panels, Rows };

/// c = alpha * A * B + beta * c for MR rows and NV vectors of columns. `aStride` separates the elements of successive p
/// in panels, and successive rows in rows. B's rows are ldb apart, C's ldc.
template <class T, int MR, int NV, LeftForm Form>
void tile(int64_t k, const T *a, int64_t aStride, const T *b, int64_t ldb, T *c, int64_t ldc, T alpha, T beta) {
  constexpr int L = kLanes<T>;
  Vec<T> acc[MR][NV] = {};
#pragma clang loop unroll_count(4)
  for (int64_t p = 0; p < k; ++p) {
    Vec<T> row[NV];
#pragma unroll
    for (int j = 0; j < NV; ++j)
      row[j] = load(b + j * L);
#pragma unroll
    for (int i = 0; i < MR; ++i) {
      Vec<T> left = Form == LeftForm::Rows ? a[i * aStride + p] : a[i];
#pragma unroll
      for (int j = 0; j < NV; ++j)
        acc[i][j] = multiplyAdd<T>(left, row[j], acc[i][j]);
    }
    if constexpr (Form == LeftForm::Panels)
      a += aStride;
    b += ldb;
  }
#pragma unroll
  for (int i = 0; i < MR; ++i)
#pragma unroll
    for (int j = 0; j < NV; ++j) {
      T *out = c + i * ldc + j * L;
      Vec<T> value = acc[i][j] * Vec<T>(alpha);
      if (beta != T(0))
        value = multiplyAdd<T>(Vec<T>(beta), load(out), value);
      store(out, value);
    }
}

template <class T> using TileFn = void (*)(int64_t, const T *, int64_t, const T *, int64_t, T *, int64_t, T, T);

/// Vectors of columns that use the registers well when there are only `rows` rows and B is read in place.
constexpr int wideVectors(int rows) {
  constexpr int registers = DLC_GEMM_VECTOR_BYTES == 64 ? 24 : 12;
  constexpr int most = DLC_GEMM_VECTOR_BYTES == 64 ? 8 : 6;
  int vectors = registers / rows;
  return vectors > most ? most : vectors < 2 ? 2 : vectors;
}

template <class T, LeftForm Form> struct TileTable {
  /// Each row in place takes an address register.
  static constexpr int kRows = Form == LeftForm::Rows && kTileRows<T> > 8 ? 8 : kTileRows<T>;
  TileFn<T> panel[kRows + 1][kPanelVectors + 1] = {};
  TileFn<T> wide[kRows + 1] = {};
  template <int MR> constexpr void fill() {
    panel[MR][1] = tile<T, MR, 1, Form>;
    panel[MR][2] = tile<T, MR, 2, Form>;
    wide[MR] = tile<T, MR, wideVectors(MR), Form>;
    if constexpr (MR > 1)
      fill<MR - 1>();
  }
  constexpr TileTable() { fill<kRows>(); }
};
template <class T, LeftForm Form> constexpr TileTable<T, Form> kTiles{};

/// Lanes of the first (High = 0) or second half of every segment of `Segment` lanes of two vectors, in order.
template <int Segment, int High, class V, size_t... I> DLC_INLINE V halves(V a, V b, std::index_sequence<I...>) {
  constexpr int half = Segment / 2;
  return __builtin_shufflevector(a, b, (I / half * Segment + I % half + High * half)...);
}

/// Sums of the lanes of Count vectors into the first Count lanes of one: halves are added to halves, so the order of
/// each sum is the same whatever Count is.
template <class T, int Count, int Segment = kLanes<T>> DLC_INLINE Vec<T> sumLanes(const Vec<T> *v) {
  using Lanes = std::make_index_sequence<kLanes<T>>;
  if constexpr (Segment == 1) {
    return v[0];
  } else {
    constexpr int pairs = (Count + 1) / 2;
    Vec<T> next[pairs];
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      Vec<T> a = v[2 * i], b = 2 * i + 1 < Count ? v[2 * i + 1] : a;
      next[i] = halves<Segment, 0, Vec<T>>(a, b, Lanes{}) + halves<Segment, 1, Vec<T>>(a, b, Lanes{});
    }
    return sumLanes<T, pairs, Segment / 2>(next);
  }
}

/// sums[i * NR + j] = sum_p a[i * lda + p] * b[j * ldb + p]. Whole vectors of sums are written.
template <class T, int MR, int NR> void dotTile(int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb, T *sums) {
  constexpr int L = kLanes<T>;
  Vec<T> acc[MR][NR] = {};
  int64_t p = 0;
  for (; p + L <= k; p += L) {
    Vec<T> left[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
      left[i] = load(a + i * lda + p);
#pragma unroll
    for (int j = 0; j < NR; ++j) {
      Vec<T> right = load(b + j * ldb + p);
#pragma unroll
      for (int i = 0; i < MR; ++i)
        acc[i][j] = multiplyAdd<T>(left[i], right, acc[i][j]);
    }
  }
  if (p < k) {
    Vec<T> left[MR];
#pragma unroll
    for (int i = 0; i < MR; ++i)
      left[i] = loadPart(a + i * lda + p, k - p);
#pragma unroll
    for (int j = 0; j < NR; ++j) {
      Vec<T> right = loadPart(b + j * ldb + p, k - p);
#pragma unroll
      for (int i = 0; i < MR; ++i)
        acc[i][j] = multiplyAdd<T>(left[i], right, acc[i][j]);
    }
  }
  constexpr int group = MR * NR < L ? MR * NR : L, rest = MR * NR % group;
#pragma unroll
  for (int i = 0; i < MR * NR; i += group) {
    const Vec<T> *first = &acc[0][0] + i;
    store(sums + i, i + group <= MR * NR ? sumLanes<T, group>(first) : sumLanes<T, rest ? rest : 1>(first));
  }
}
