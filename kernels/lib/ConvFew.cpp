// Convolutions of groups with one or two channels (depthwise): each output row tap by tap from padded planes, in
// vectors.
#include "kernels/lib/ConvColumns.h"
#include "runtime/core/ThreadPool.h"
#include <vector>

namespace dlc::kernels::detail {
namespace {

template <class T> struct RunTypes {
  typedef T Vector __attribute__((ext_vector_type(kRunBytes / sizeof(T))));
};
template <class T> using Run = typename RunTypes<T>::Vector;

template <class T> inline Run<T> loadRun(const T *p) {
  Run<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T, class V> inline V multiplyAdd(V a, V b, V c) {
  if constexpr (std::is_floating_point_v<T>)
    return __builtin_elementwise_fma(a, b, c);
  else
    return V(a * b + c);
}

/// Outputs in registers at a time, in vectors.
constexpr int kRuns = 4;

int64_t planeSize(const ConvShape &s, const PlaneLayout &l) { return PlaneLayout::rows(s, s.outHeight) * l.rowSize; }

/// Planes a task should take at least.
int64_t planeGrain(const ConvShape &s) {
  return std::max<int64_t>(1, 75000 / std::max<int64_t>(1, s.outPlane() * s.taps()));
}

/// Offsets of the taps of a group's channels in its padded planes.
std::vector<int64_t> tapOffsets(const ConvShape &s, const PlaneLayout &l) {
  std::vector<int64_t> offsets;
  for (int64_t c = 0; c < s.inPerGroup(); ++c)
    for (int64_t kh = 0; kh < s.kernelHeight; ++kh)
      for (int64_t kw = 0; kw < s.kernelWidth; ++kw)
        offsets.push_back(c * planeSize(s, l) + l.at(s, 0, kh, kw));
  return offsets;
}

template <class S, class T>
void loadGroup(const ConvShape &s, const PlaneLayout &l, int64_t image, int64_t g, const S *x, T *planes) {
  for (int64_t c = 0; c < s.inPerGroup(); ++c)
    padPlane(s, l, 0, PlaneLayout::rows(s, s.outHeight),
             x + (image * s.inChannels + g * s.inPerGroup() + c) * s.inPlane(), planes + c * planeSize(s, l));
}

/// Bytes of a group's padded planes, with room for the loads of a row's last vectors.
template <class T> int64_t groupBytes(const ConvShape &s, const PlaneLayout &l) {
  return s.inPerGroup() * planeSize(s, l) * sizeof(T) + kRuns * kRunBytes;
}

} // namespace

template <class S> void fewForward(const ConvShape &s, const S *x, const S *w, const S *bias, S *y) {
  using T = GemmAcc<S>;
  const PlaneLayout layout(s);
  const std::vector<int64_t> offsets = tapOffsets(s, layout);
  const int64_t taps = s.taps(), outputs = s.outPerGroup();
  parallelFor(s.batch * s.groups, planeGrain(s), [&](int64_t begin, int64_t end) {
    T *planes = static_cast<T *>(scratch(kScratchColumns, groupBytes<T>(s, layout)));
    for (int64_t t = begin; t < end; ++t) {
      int64_t image = t / s.groups, g = t % s.groups;
      loadGroup(s, layout, image, g, x, planes);
      for (int64_t o = g * outputs; o < (g + 1) * outputs; ++o) {
        const S *weight = w + o * taps;
        S *out = y + (image * s.outChannels + o) * s.outPlane();
        T add = bias ? T(bias[o]) : T(0);
        for (int64_t oh = 0; oh < s.outHeight; ++oh)
          for (int64_t ow = 0; ow < s.outWidth; ow += kRuns * kRunLanes<T>) {
            const T *from = planes + oh * s.strideHeight * layout.rowSize + ow;
            Run<T> sums[kRuns] = {};
            for (int64_t p = 0; p < taps; ++p) {
              Run<T> factor = T(weight[p]);
#pragma unroll
              for (int r = 0; r < kRuns; ++r)
                sums[r] = multiplyAdd<T>(factor, loadRun(from + offsets[p] + r * kRunLanes<T>), sums[r]);
            }
            T line[kRuns * kRunLanes<T>];
            std::memcpy(line, sums, sizeof line);
            int64_t length = std::min<int64_t>(s.outWidth - ow, kRuns * kRunLanes<T>);
            for (int64_t i = 0; i < length; ++i)
              out[oh * s.outWidth + ow + i] = bias ? S(T(line[i] + add)) : S(line[i]);
          }
      }
    }
  });
}

template <class S> void fewBackwardInput(const ConvShape &s, const S *dy, const S *w, S *dx) {
  using T = GemmAcc<S>;
  const PlaneLayout layout(s);
  const std::vector<int64_t> offsets = tapOffsets(s, layout);
  const int64_t taps = s.taps(), size = planeSize(s, layout), channels = s.inPerGroup(), width = s.outWidth;
  parallelFor(s.batch * s.groups, planeGrain(s), [&](int64_t begin, int64_t end) {
    T *planes = static_cast<T *>(scratch(kScratchColumns, groupBytes<T>(s, layout)));
    T *row = static_cast<T *>(scratch(kScratchRows, width * sizeof(T) + kRunBytes));
    for (int64_t t = begin; t < end; ++t) {
      int64_t image = t / s.groups, g = t % s.groups;
      std::fill_n(planes, channels * size, T(0));
      for (int64_t o = g * s.outPerGroup(); o < (g + 1) * s.outPerGroup(); ++o)
        for (int64_t oh = 0; oh < s.outHeight; ++oh) {
          const S *gradient = dy + (image * s.outChannels + o) * s.outPlane() + oh * width;
          std::copy(gradient, gradient + width, row);
          for (int64_t p = 0; p < taps; ++p) {
            T *to = planes + oh * s.strideHeight * layout.rowSize + offsets[p], factor = T(w[o * taps + p]);
            int64_t i = 0;
            for (; i + kRunLanes<T> <= width; i += kRunLanes<T>) {
              Run<T> sum = multiplyAdd<T>(Run<T>(factor), loadRun(row + i), loadRun(to + i));
              std::memcpy(to + i, &sum, sizeof sum);
            }
            for (; i < width; ++i)
              to[i] = multiplyAdd<T>(factor, row[i], to[i]);
          }
        }
      for (int64_t c = 0; c < channels; ++c)
        unpadPlane(s, layout, planes + c * size, dx + (image * s.inChannels + g * channels + c) * s.inPlane());
    }
  });
}

template <class S> void fewBackwardWeight(const ConvShape &s, const S *x, const S *dy, S *dw) {
  using T = GemmAcc<S>;
  const PlaneLayout layout(s);
  const std::vector<int64_t> offsets = tapOffsets(s, layout);
  const int64_t taps = s.taps(), outputs = s.outPerGroup(), width = s.outWidth;
  parallelFor(s.groups, 1, [&](int64_t begin, int64_t end) {
    T *planes = static_cast<T *>(scratch(kScratchColumns, groupBytes<T>(s, layout)));
    T *row = static_cast<T *>(scratch(kScratchRows, width * sizeof(T) + kRunBytes));
    std::vector<Run<T>> sums(outputs * taps);
    std::vector<T> rests(outputs * taps);
    for (int64_t g = begin; g < end; ++g) {
      std::fill(sums.begin(), sums.end(), Run<T>(T(0)));
      std::fill(rests.begin(), rests.end(), T(0));
      for (int64_t image = 0; image < s.batch; ++image) {
        loadGroup(s, layout, image, g, x, planes);
        for (int64_t o = 0; o < outputs; ++o)
          for (int64_t oh = 0; oh < s.outHeight; ++oh) {
            const S *gradient = dy + (image * s.outChannels + g * outputs + o) * s.outPlane() + oh * width;
            std::copy(gradient, gradient + width, row);
            for (int64_t p = 0; p < taps; ++p) {
              const T *from = planes + oh * s.strideHeight * layout.rowSize + offsets[p];
              Run<T> sum = sums[o * taps + p];
              T rest = rests[o * taps + p];
              int64_t i = 0;
              for (; i + kRunLanes<T> <= width; i += kRunLanes<T>)
                sum = multiplyAdd<T>(loadRun(row + i), loadRun(from + i), sum);
              for (; i < width; ++i)
                rest = multiplyAdd<T>(row[i], from[i], rest);
              sums[o * taps + p] = sum, rests[o * taps + p] = rest;
            }
          }
      }
      for (int64_t i = 0; i < outputs * taps; ++i) {
        T total = rests[i];
        for (int64_t lane = 0; lane < kRunLanes<T>; ++lane)
          total = T(total + sums[i][lane]);
        dw[g * outputs * taps + i] = S(total);
      }
    }
  });
}

#define DLC_X(S)                                                                                                       \
  template void fewForward(const ConvShape &, const S *, const S *, const S *, S *);                                   \
  template void fewBackwardInput(const ConvShape &, const S *, const S *, S *);                                        \
  template void fewBackwardWeight(const ConvShape &, const S *, const S *, S *);
DLC_STORAGE_TYPES(DLC_X)
#undef DLC_X

} // namespace dlc::kernels::detail
