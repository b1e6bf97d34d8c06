// Convolution and its gradients against seven plain loops, on integer-valued data, so that equality is exact.
#include "kernels/lib/Conv.h"
#include "runtime/core/ThreadPool.h"
#include <cstring>
#include <gtest/gtest.h>
#include <tuple>
#include <vector>

using namespace dlc;
using namespace dlc::kernels;

namespace {

template <class T> std::vector<T> integers(int64_t count, unsigned seed) {
  std::vector<T> v(count);
  for (auto &x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = T(float(int(seed >> 20) % 3 - (std::is_unsigned_v<T> ? 0 : 1)));
  }
  return v;
}

/// Calls f(input index, weight index, output index) for every product of the definition.
template <class F> void forEachProduct(const ConvShape &s, F f) {
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.outChannels; ++o)
      for (int64_t oh = 0; oh < s.outHeight; ++oh)
        for (int64_t ow = 0; ow < s.outWidth; ++ow)
          for (int64_t c = 0; c < s.inPerGroup(); ++c)
            for (int64_t kh = 0; kh < s.kernelHeight; ++kh)
              for (int64_t kw = 0; kw < s.kernelWidth; ++kw) {
                int64_t ih = oh * s.strideHeight - s.padTop + kh * s.dilationHeight;
                int64_t iw = ow * s.strideWidth - s.padLeft + kw * s.dilationWidth;
                if (ih < 0 || ih >= s.height || iw < 0 || iw >= s.width)
                  continue;
                int64_t channel = o / s.outPerGroup() * s.inPerGroup() + c;
                f(((n * s.inChannels + channel) * s.height + ih) * s.width + iw,
                  ((o * s.inPerGroup() + c) * s.kernelHeight + kh) * s.kernelWidth + kw,
                  ((n * s.outChannels + o) * s.outHeight + oh) * s.outWidth + ow);
              }
}

template <class T> void expectEqual(const std::vector<T> &got, const std::vector<double> &want, const char *what) {
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(double(GemmAcc<T>(got[i])), double(GemmAcc<T>(T(GemmAcc<T>(want[i]))))) << what << " at " << i;
}

template <class T> void check(const ConvShape &s) {
  SCOPED_TRACE(testing::Message() << s.batch << "x" << s.inChannels << "x" << s.height << "x" << s.width << " -> "
                                  << s.outChannels << "x" << s.outHeight << "x" << s.outWidth << " kernel "
                                  << s.kernelHeight << "x" << s.kernelWidth << " stride " << s.strideHeight << ","
                                  << s.strideWidth << " pad " << s.padTop << "," << s.padLeft << " dilation "
                                  << s.dilationHeight << "," << s.dilationWidth << " groups " << s.groups);
  int64_t inputs = s.batch * s.inChannels * s.inPlane(), outputs = s.batch * s.outChannels * s.outPlane();
  auto x = integers<T>(inputs, 1), w = integers<T>(s.outChannels * s.taps(), 2), bias = integers<T>(s.outChannels, 3),
       dy = integers<T>(outputs, 4);
  std::vector<double> y(outputs), biased(outputs), dx(inputs), dw(w.size());
  auto value = [](T v) { return double(GemmAcc<T>(v)); };
  forEachProduct(s, [&](int64_t i, int64_t k, int64_t o) {
    y[o] += value(x[i]) * value(w[k]);
    dx[i] += value(dy[o]) * value(w[k]);
    dw[k] += value(dy[o]) * value(x[i]);
  });
  for (int64_t i = 0; i < outputs; ++i)
    biased[i] = y[i] + value(bias[i / s.outPlane() % s.outChannels]);
  std::vector<T> out(outputs, T(77.0f)), inGrad(inputs, T(77.0f)), weightGrad(w.size(), T(77.0f));
  convForward<T>(s, x.data(), w.data(), nullptr, out.data());
  expectEqual(out, y, "forward");
  convForward<T>(s, x.data(), w.data(), bias.data(), out.data());
  expectEqual(out, biased, "forward with bias");
  convBackwardInput<T>(s, dy.data(), w.data(), inGrad.data());
  expectEqual(inGrad, dx, "gradient of the input");
  convBackwardWeight<T>(s, x.data(), dy.data(), weightGrad.data());
  expectEqual(weightGrad, dw, "gradient of the weight");
}

ConvShape shape(int64_t batch, int64_t in, int64_t h, int64_t w, int64_t out, int64_t kh, int64_t kw,
                int64_t stride = 1, int64_t pad = 0, int64_t dilation = 1, int64_t groups = 1) {
  ConvShape s;
  s.batch = batch, s.inChannels = in, s.height = h, s.width = w, s.outChannels = out;
  s.kernelHeight = kh, s.kernelWidth = kw, s.groups = groups;
  s.strideHeight = s.strideWidth = stride, s.padTop = s.padLeft = pad, s.dilationHeight = s.dilationWidth = dilation;
  setConvOutputSize(s);
  return s;
}

} // namespace

TEST(Conv, stridesPaddingsDilations) {
  for (int64_t stride : {1, 2, 3})
    for (int64_t pad : {0, 1, 2})
      for (int64_t dilation : {1, 2})
        for (int64_t kernel : {1, 2, 3})
          for (int64_t size : {5, 9})
            check<float>(shape(2, 3, size, size + 2, 5, kernel, kernel, stride, pad, dilation));
}
TEST(Conv, groups) {
  for (int64_t groups : {2, 3, 6})
    for (int64_t stride : {1, 2})
      check<float>(shape(2, 6, 7, 8, 12, 3, 3, stride, 1, 1, groups));
  check<float>(shape(2, 12, 9, 9, 12, 3, 3, 1, 1, 1, 12));
  check<float>(shape(1, 4, 9, 9, 24, 3, 3, 1, 1, 1, 4));
}
TEST(Conv, manyTapsAndColumns) {
  check<float>(shape(1, 50, 20, 21, 17, 3, 3, 1, 1));
  check<float>(shape(9, 48, 4, 4, 40, 3, 3, 1, 1));
  check<float>(shape(1, 2, 60, 61, 3, 5, 5, 2, 2));
  check<float>(shape(3, 70, 6, 6, 30, 1, 1));
  check<float>(shape(1, 8, 40, 40, 24, 1, 1));
}
TEST(Conv, unequalDirections) {
  ConvShape s = shape(2, 3, 11, 6, 4, 3, 2);
  s.strideHeight = 2, s.padLeft = 1, s.dilationHeight = 2;
  setConvOutputSize(s);
  check<float>(s);
  // More padding below and to the right than above and to the left, as "same" gives for even kernels.
  ConvShape same = shape(1, 2, 6, 7, 3, 2, 2);
  same.outHeight = 6, same.outWidth = 7;
  check<float>(same);
}
TEST(Conv, everyDType) {
  for (const ConvShape &s : {shape(2, 4, 6, 7, 6, 3, 3, 1, 1, 1, 2), shape(2, 3, 5, 5, 5, 2, 2, 2, 1)}) {
    check<double>(s);
    check<Half>(s);
    check<BFloat16>(s);
    check<int8_t>(s);
    check<uint8_t>(s);
    check<int16_t>(s);
    check<int32_t>(s);
    check<int64_t>(s);
  }
}
TEST(Conv, emptySizes) {
  check<float>(shape(0, 3, 5, 5, 4, 3, 3));
  check<float>(shape(2, 0, 5, 5, 4, 3, 3));
  check<float>(shape(2, 3, 5, 5, 0, 3, 3));
  check<float>(shape(2, 3, 2, 2, 4, 3, 3));
}
TEST(Conv, bitsDoNotDependOnThreads) {
  int before = getNumThreads();
  for (const ConvShape &s : {shape(5, 16, 14, 14, 33, 3, 3, 1, 1), shape(1, 64, 7, 7, 96, 3, 3, 1, 1),
                             shape(16, 1, 8, 8, 16, 3, 3, 1, 1), shape(2, 32, 40, 40, 32, 3, 3, 2, 1, 1, 4)}) {
    int64_t inputs = s.batch * s.inChannels * s.inPlane(), outputs = s.batch * s.outChannels * s.outPlane();
    auto noise = [](int64_t n, unsigned seed) {
      std::vector<float> v(n);
      for (float &x : v)
        x = float((seed = seed * 1664525u + 1013904223u) >> 8) / float(1 << 24) - 0.5f;
      return v;
    };
    auto x = noise(inputs, 1), w = noise(s.outChannels * s.taps(), 2), dy = noise(outputs, 3);
    std::vector<float> first;
    for (int threads : {1, 2, 3, 8}) {
      setNumThreads(threads);
      std::vector<float> all(outputs + inputs + w.size());
      convForward<float>(s, x.data(), w.data(), nullptr, all.data());
      convBackwardInput<float>(s, dy.data(), w.data(), all.data() + outputs);
      convBackwardWeight<float>(s, x.data(), dy.data(), all.data() + outputs + inputs);
      if (first.empty())
        first = all;
      ASSERT_EQ(0, std::memcmp(all.data(), first.data(), all.size() * sizeof(float))) << threads << " threads";
    }
  }
  setNumThreads(before);
}
