// The register tile over pixels and output channels, and the depthwise tile. Included inside an anonymous namespace by
// one file for each instruction set, with DLC_CONV_LANES, DLC_CONV_PIXELS (pixels of a segment), DLC_CONV_VECTORS
// (of a panel) and DLC_CONV_SUMS (accumulators at most) set and the target attribute in force.

#define DLC_INLINE __attribute__((always_inline)) inline

constexpr int kLanes = DLC_CONV_LANES, kPixels = DLC_CONV_PIXELS, kVectors = DLC_CONV_VECTORS;
typedef float Vec __attribute__((ext_vector_type(kLanes)));
typedef float UnalignedVec __attribute__((ext_vector_type(kLanes), aligned(4), may_alias));

DLC_INLINE Vec load(const float *p) { return *reinterpret_cast<const UnalignedVec *>(p); }
DLC_INLINE void store(float *p, Vec v) { *reinterpret_cast<UnalignedVec *>(p) = v; }
DLC_INLINE Vec multiplyAdd(Vec a, Vec b, Vec c) { return __builtin_elementwise_fma(a, b, c); }
DLC_INLINE Vec loadPart(const float *p, int64_t count) {
  alignas(64) float part[kLanes] = {};
  __builtin_memcpy(part, p, static_cast<size_t>(count) * sizeof(float));
  return load(part);
}
DLC_INLINE void storePart(float *p, Vec v, int64_t count) {
  alignas(64) float part[kLanes];
  store(part, v);
  __builtin_memcpy(p, part, static_cast<size_t>(count) * sizeof(float));
}

/// As scalar::max_ and min_: NaN in x stays.
DLC_INLINE Vec atLeast(Vec x, Vec low) { return ((x > low) | (x != x)) ? x : low; }
DLC_INLINE Vec atMost(Vec x, Vec high) { return ((x < high) | (x != x)) ? x : high; }
DLC_INLINE Vec relu6(Vec x) { return atMost(atLeast(x, Vec(0.0f)), Vec(6.0f)); }
/// x / 6, rounded as division rounds it: a product and one step of correction are several times faster.
DLC_INLINE Vec sixth(Vec x) {
  Vec inverse = 1.0f / 6.0f, near = x * inverse;
  Vec exact = multiplyAdd(multiplyAdd(near, Vec(-6.0f), x), inverse, near);
  return exact == exact ? exact : near; // infinities
}
template <ConvActivation F> DLC_INLINE Vec activate(Vec x) {
  if constexpr (F == ConvActivation::Relu)
    return atLeast(x, Vec(0.0f));
  else if constexpr (F == ConvActivation::Relu6)
    return relu6(x);
  else if constexpr (F == ConvActivation::Hardswish)
    return sixth(x * relu6(x + Vec(3.0f)));
  else if constexpr (F == ConvActivation::Hardsigmoid)
    return sixth(relu6(x + Vec(3.0f)));
  else
    return x;
}
/// Calls f with the activation as a constant.
template <class Fn> DLC_INLINE void withActivation(ConvActivation f, Fn fn) {
  using A = ConvActivation;
  switch (f) {
  case A::None:
    return fn(std::integral_constant<A, A::None>());
  case A::Relu:
    return fn(std::integral_constant<A, A::Relu>());
  case A::Relu6:
    return fn(std::integral_constant<A, A::Relu6>());
  case A::Hardswish:
    return fn(std::integral_constant<A, A::Hardswish>());
  case A::Hardsigmoid:
    return fn(std::integral_constant<A, A::Hardsigmoid>());
  }
}

/// The epilogue for one vector of sums; `count` of its lanes are in memory.
template <ConvActivation F>
DLC_INLINE void finish(Vec v, const float *scale, const float *shift, const float *residual, float *y, int64_t count) {
  if (scale)
    v = multiplyAdd(v, load(scale), load(shift));
  else if (shift)
    v += load(shift);
  if (count >= kLanes) {
    if (residual)
      v += load(residual);
    store(y, activate<F>(v));
  } else {
    if (residual)
      v += loadPart(residual, count);
    storePart(y, activate<F>(v), count);
  }
}

/// A segment is a few pixels side by side in one row.
struct Tile {
  const float *x[2]; ///< the first pixel of each segment
  const float *w;
  float *y[2];
  const float *residual[2];
  const float *scale, *shift;
  int64_t lastCount; ///< lanes in memory of the panel's last vector
  /// The part of the next panel that this tile brings into the second-level cache, a line or none at each offset.
  const char *ahead;
  int64_t aheadStep;
  int64_t wStep; ///< elements from one row of w to the next
};

/// Few accumulators do not hide the latency of a product: then each sum is made as this many parts.
template <int L, int NV> constexpr int partsOf() {
  return L * NV >= 8 ? 1 : 8 * L * NV <= DLC_CONV_SUMS ? 4 : 4 * L * NV <= DLC_CONV_SUMS ? 2 : 1;
}

/// Adds x[k] * w[k] of S segments of L pixels to `acc`, for U successive k from `x` on.
template <int S, int L, int NV, int U, int P>
DLC_INLINE void steps(const char *const (&x)[S], const int64_t (&stride)[3], const float *w, Vec (&acc)[P][S][L][NV]) {
#pragma unroll
  for (int u = 0; u < U; ++u) {
    Vec row[NV];
#pragma unroll
    for (int j = 0; j < NV; ++j)
      row[j] = load(w + (u * NV + j) * kLanes);
#pragma unroll
    for (int s = 0; s < S; ++s)
#pragma unroll
      for (int i = 0; i < L; ++i) {
        // Multiples of the stride by addressing modes: an address register for each pixel would be too many.
        int64_t by = i == 0 ? 0 : i == 3 ? stride[1] : i == 5 ? stride[2] : i == 6 ? 2 * stride[1] : i * stride[0];
        Vec left = *reinterpret_cast<const float *>(x[s] + by + u * 4);
#pragma unroll
        for (int j = 0; j < NV; ++j)
          acc[u % P][s][i][j] = multiplyAdd(left, row[j], acc[u % P][s][i][j]);
      }
  }
}

/// The sums of S x L pixels by NV vectors of channels. U products lie side by side at each offset of the table.
template <int S, int L, int NV, int U> void tile(const ConvLastArgs &a, const Tile &t) {
  constexpr int P = U == 1 ? 1 : partsOf<L, NV>();
  Vec acc[P][S][L][NV], sums[S][L][NV];
  int64_t stride[3] = {a.pixelStride * 4, a.pixelStride * 12, a.pixelStride * 20};
  asm("" : "+r"(stride[0]), "+r"(stride[1]), "+r"(stride[2]));
  const float *w = t.w;
  const char *base[S], *ahead = t.ahead;
#pragma unroll
  for (int s = 0; s < S; ++s)
    base[s] = reinterpret_cast<const char *>(t.x[s]);
  for (int64_t begin = 0; begin < a.numOffsets; begin += a.sliceOffsets) {
    int64_t end = begin + a.sliceOffsets < a.numOffsets ? begin + a.sliceOffsets : a.numOffsets;
#pragma unroll
    for (auto &part : acc)
#pragma unroll
      for (auto &segment : part)
#pragma unroll
        for (auto &pixel : segment)
#pragma unroll
          for (Vec &v : pixel)
            v = 0.0f;
    for (int64_t k = begin; k < end; ++k) {
      const char *x[S];
#pragma unroll
      for (int s = 0; s < S; ++s)
        x[s] = base[s] + a.offsets[k];
      steps<S, L, NV, U>(x, stride, w, acc);
      w += U == 1 ? t.wStep : U * NV * kLanes;
      if constexpr (U == 4) {
        __builtin_prefetch(ahead, 0, 2);
        __builtin_prefetch(ahead + 64, 0, 2);
        ahead += t.aheadStep;
      }
    }
#pragma unroll
    for (int s = 0; s < S; ++s)
#pragma unroll
      for (int i = 0; i < L; ++i)
#pragma unroll
        for (int j = 0; j < NV; ++j) {
          Vec v = acc[0][s][i][j];
          if (P == 2)
            v += acc[P - 1][s][i][j];
          if (P == 4)
            v = (v + acc[1 % P][s][i][j]) + (acc[2 % P][s][i][j] + acc[3 % P][s][i][j]);
          sums[s][i][j] = begin ? sums[s][i][j] + v : v;
        }
  }
  withActivation(a.activation, [&](auto f) __attribute__((always_inline)) {
#pragma unroll
    for (int s = 0; s < S; ++s)
#pragma unroll
      for (int i = 0; i < L; ++i)
#pragma unroll
        for (int j = 0; j < NV; ++j) {
          int64_t at = i * a.outStride + j * kLanes;
          finish<f.value>(sums[s][i][j], t.scale ? t.scale + j * kLanes : nullptr,
                          t.shift ? t.shift + j * kLanes : nullptr, t.residual[s] ? t.residual[s] + at : nullptr,
                          t.y[s] + at, j == NV - 1 ? t.lastCount : kLanes);
        }
  });
}

using TileFn = void (*)(const ConvLastArgs &, const Tile &);
template <int U> struct TileTable {
  TileFn fn[3][kPixels + 1][kVectors + 1] = {};
  template <int L, int NV> constexpr void fill() {
    fn[1][L][NV] = tile<1, L, NV, U>;
    if constexpr (2 * L * NV * partsOf<L, NV>() <= DLC_CONV_SUMS)
      fn[2][L][NV] = tile<2, L, NV, U>;
    if constexpr (NV > 1)
      fill<L, NV - 1>();
    else if constexpr (L > 1)
      fill<L - 1, kVectors>();
  }
  constexpr TileTable() { fill<kPixels, kVectors>(); }
};
template <int U> constexpr TileTable<U> kTiles;

/// The segments of rows [first, last) with one length: `count` of them a row, from pixel `at`.
struct Segments {
  int64_t first, last, count, at;
  int length;
};

/// One panel for all segments of a kind, two at a time where the registers allow it.
DLC_INLINE void runSegments(const ConvLastArgs &a, const Segments &g, int vectors, Tile &t, int64_t channel) {
  bool four = a.perOffset == 4;
  TileFn one = (four ? kTiles<4>.fn : kTiles<1>.fn)[1][g.length][vectors];
  TileFn two = (four ? kTiles<4>.fn : kTiles<1>.fn)[2][g.length][vectors];
  int waiting = 0;
  for (int64_t r = g.first; r < g.last; ++r) {
    const float *x = a.x + r / a.rowsPerImage * a.imageStride + r % a.rowsPerImage * a.rowStride;
    for (int64_t i = 0; i < g.count; ++i) {
      int64_t pixel = g.at + i * g.length, out = (r * a.width + pixel) * a.outStride + channel;
      t.x[waiting] = x + pixel * a.pixelStride;
      t.y[waiting] = a.y + out;
      t.residual[waiting] = a.residual ? a.residual + out : nullptr;
      if (!two)
        one(a, t);
      else if (waiting == 1)
        two(a, t);
      waiting = two ? 1 - waiting : 0;
      if (!waiting)
        t.ahead += t.aheadStep * a.numOffsets;
    }
  }
  if (waiting)
    one(a, t);
}

/// Rows of equal width, cut in segments of as equal a length as possible.
DLC_INLINE void runRows(const ConvLastArgs &a, int64_t first, int64_t last, int64_t width, int vectors, Tile &t,
                        int64_t channel) {
  if (first >= last || width <= 0)
    return;
  int64_t parts = (width + kPixels - 1) / kPixels;
  int length = static_cast<int>((width + parts - 1) / parts);
  int64_t full = width / length;
  runSegments(a, {first, last, full, 0, length}, vectors, t, channel);
  if (int rest = static_cast<int>(width - full * length))
    runSegments(a, {first, last, 1, full * length, rest}, vectors, t, channel);
}

void convRows(const ConvLastArgs &a, int64_t first, int64_t last, int64_t firstPanel, int64_t lastPanel) {
  PanelCut cut(a.channels, kLanes, kVectors);
  for (int64_t p = firstPanel; p < lastPanel; ++p) {
    int64_t vector = cut.first(p), channel = vector * kLanes;
    int vectors = static_cast<int>(cut.first(p + 1) - vector);
    Tile t{};
    t.w = a.w + channel * (a.wStep ? 1 : a.taps);
    t.wStep = a.wStep ? a.wStep : vectors * kLanes;
    t.scale = a.scale ? a.scale + channel : nullptr;
    t.shift = a.shift ? a.shift + channel : nullptr;
    int64_t left = a.channels - channel - (vectors - 1) * kLanes;
    t.lastCount = left < kLanes ? left : kLanes;
    // Few tiles share a panel of weights that are seldom in the cache: they fetch the next one while they compute.
    int64_t bytes = a.taps * a.channels * int64_t(sizeof(float));
    bool far = !a.wStep && p + 1 < cut.panels && bytes > (a.rows * a.width <= 256 ? 64 << 10 : 1 << 20);
    t.ahead = reinterpret_cast<const char *>(t.w + (far ? a.taps * vectors * kLanes : 0));
    t.aheadStep = far ? 128 : 0;
    bool hasLast = last == a.rows && a.lastWidth != a.width;
    runRows(a, first, last - hasLast, a.width, vectors, t, channel);
    if (hasLast)
      runRows(a, last - 1, last, a.lastWidth, vectors, t, channel);
  }
}

//===--- Depthwise ---===//

/// The taps within the input.
struct DepthwiseTaps {
  int64_t khBegin, khEnd, kwBegin, kwEnd;
};

/// N pixels side by side by M vectors of channels from `channel` on; KW columns of taps, or as many as `k` says.
/// `Part`: there are fewer channels than lanes.
template <int N, int M, int KW, bool Part = false>
DLC_INLINE void depthwisePixels(const DepthwiseArgs &a, const DepthwiseTaps &k, const float *x, int64_t channel,
                                int64_t out) {
  const ConvShape &s = *a.shape;
  int64_t channels = s.outChannels, column = s.dilationWidth * a.pixelStride;
  int64_t row = s.dilationHeight * s.width * a.pixelStride, step = s.strideWidth * a.pixelStride,
          count = channels - channel;
  int64_t stride[3] = {step * 4, step * 12, step * 20};
  asm("" : "+r"(stride[0]), "+r"(stride[1]), "+r"(stride[2]));
  Vec acc[N][M] = {};
  for (int64_t kh = k.khBegin; kh < k.khEnd; ++kh) {
    const float *w = a.w + (kh * s.kernelWidth + k.kwBegin) * a.weightStride + channel;
    const float *from = x + kh * row + k.kwBegin * column + channel - a.firstChannel;
    auto tap = [&]() __attribute__((always_inline)) {
#pragma unroll
      for (int j = 0; j < M; ++j) {
        Vec weight = load(w + j * kLanes);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          int64_t by = i == 0 ? 0 : i == 3 ? stride[1] : i == 5 ? stride[2] : i == 6 ? 2 * stride[1] : i * stride[0];
          auto *p = reinterpret_cast<const float *>(reinterpret_cast<const char *>(from + j * kLanes) + by);
          acc[i][j] = multiplyAdd(Part ? loadPart(p, count) : load(p), weight, acc[i][j]);
        }
      }
      w += a.weightStride, from += column;
      asm("" : "+r"(from), "+r"(w)); // two pointers, not one for each of the taps
    };
    if constexpr (KW != 0) {
#pragma unroll
      for (int kw = 0; kw < KW; ++kw)
        tap();
    } else {
      for (int64_t kw = k.kwBegin; kw < k.kwEnd; ++kw)
        tap();
    }
  }
  withActivation(a.activation, [&](auto f) __attribute__((always_inline)) {
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
      for (int j = 0; j < M; ++j) {
        int64_t c = channel + j * kLanes, at = out + i * channels + c;
        finish<f.value>(acc[i][j], a.scale ? a.scale + c : nullptr, a.shift ? a.shift + c : nullptr,
                        a.residual ? a.residual + at : nullptr, a.y + at, Part ? count : kLanes);
      }
  });
}

/// Channels [first, last) of N pixels, M vectors at a time; a part of a vector at the end is moved back, if it can be.
template <int N, int M, int KW>
void depthwiseChannels(const DepthwiseArgs &a, const DepthwiseTaps &k, const float *x, int64_t out, int64_t first,
                       int64_t last) {
  int64_t c = first;
  for (; c + M * kLanes <= last; c += M * kLanes)
    depthwisePixels<N, M, KW>(a, k, x, c, out);
  for (; c + kLanes <= last; c += kLanes)
    depthwisePixels<N, 1, KW>(a, k, x, c, out);
  if (c < last && last >= kLanes)
    depthwisePixels<N, 1, KW>(a, k, x, last - kLanes, out);
  else if (c < last)
    depthwisePixels<N, 1, KW, true>(a, k, x, c, out);
}

using DepthwiseFn = void (*)(const DepthwiseArgs &, const DepthwiseTaps &, const float *, int64_t, int64_t, int64_t);
/// For seven and for four pixels.
template <int KW> constexpr DepthwiseFn kDepthwise[2] = {depthwiseChannels<7, 1, KW>, depthwiseChannels<4, 2, KW>};

/// The taps of `kernel` whose input index (at + k * dilation) is within [0, size).
DLC_INLINE void clipTaps(int64_t at, int64_t dilation, int64_t kernel, int64_t size, int64_t &begin, int64_t &end) {
  begin = at < 0 ? (-at + dilation - 1) / dilation : 0;
  end = at >= size ? 0 : (size - at + dilation - 1) / dilation;
  begin = begin < kernel ? begin : kernel;
  end = end < kernel ? end : kernel;
  end = end < begin ? begin : end;
}

/// One output row, channels [first, last).
void depthwiseRow(const DepthwiseArgs &a, int64_t r, int64_t first, int64_t last) {
  const ConvShape &s = *a.shape;
  int64_t channels = s.outChannels;
  // Pixels [inBegin, inEnd) read no padding to the left or right.
  int64_t inBegin = (s.padLeft + s.strideWidth - 1) / s.strideWidth;
  int64_t room = s.width - 1 - (s.kernelWidth - 1) * s.dilationWidth + s.padLeft;
  int64_t inEnd = room < 0 ? 0 : room / s.strideWidth + 1;
  inEnd = inEnd < s.outWidth ? inEnd : s.outWidth;
  const DepthwiseFn *inside = s.kernelWidth == 3 ? kDepthwise<3> : s.kernelWidth == 5 ? kDepthwise<5> : kDepthwise<0>;
  int64_t image = r / s.outHeight - a.firstImage, top = r % s.outHeight * s.strideHeight - s.padTop;
  DepthwiseTaps k;
  clipTaps(top, s.dilationHeight, s.kernelHeight, s.height, k.khBegin, k.khEnd);
  const float *x = a.x + (image * s.height + top) * s.width * a.pixelStride;
  for (int64_t ow = 0; ow < s.outWidth;) {
    int64_t left = ow * s.strideWidth - s.padLeft, out = (r * s.outWidth + ow) * channels, rest = inEnd - ow;
    const float *from = x + left * a.pixelStride;
    if (ow >= inBegin && rest >= 4) {
      k.kwBegin = 0, k.kwEnd = s.kernelWidth;
      bool seven = rest == 7 || rest >= 11;
      inside[seven ? 0 : 1](a, k, from, out, first, last);
      ow += seven ? 7 : 4;
      continue;
    }
    clipTaps(left, s.dilationWidth, s.kernelWidth, s.width, k.kwBegin, k.kwEnd);
    depthwiseChannels<1, 4, 0>(a, k, from, out, first, last);
    ++ow;
  }
}

constexpr ConvLastCode kCode{kLanes, kVectors, convRows, depthwiseRow};
