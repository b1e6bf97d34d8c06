// Channels-last convolution against the definition, on small integers, so that equality is exact.
#include "kernels/lib/ConvLast.h"
#include "kernels/lib/ConvLastCore.h"
#include "runtime/core/ThreadPool.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace dlc;
using namespace dlc::kernels;

namespace {

std::vector<float> integers(int64_t count, unsigned seed) {
  std::vector<float> v(static_cast<size_t>(count));
  for (float &x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int>(seed >> 20) % 5 - 2);
  }
  return v;
}

/// [n, c, plane] to [n, plane, c].
std::vector<float> channelsLast(const std::vector<float> &x, int64_t n, int64_t c, int64_t plane) {
  std::vector<float> y(x.size());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < c; ++k)
      for (int64_t p = 0; p < plane; ++p)
        y[(i * plane + p) * c + k] = x[(i * c + k) * plane + p];
  return y;
}

/// Sums by the definition, in NCHW.
std::vector<float> sumsOf(const ConvShape &s, const std::vector<float> &x, const std::vector<float> &w) {
  std::vector<float> y(static_cast<size_t>(s.batch * s.outChannels * s.outPlane()));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.outChannels; ++o)
      for (int64_t oh = 0; oh < s.outHeight; ++oh)
        for (int64_t ow = 0; ow < s.outWidth; ++ow) {
          float sum = 0;
          for (int64_t c = 0; c < s.inPerGroup(); ++c)
            for (int64_t kh = 0; kh < s.kernelHeight; ++kh)
              for (int64_t kw = 0; kw < s.kernelWidth; ++kw) {
                int64_t ih = oh * s.strideHeight - s.padTop + kh * s.dilationHeight;
                int64_t iw = ow * s.strideWidth - s.padLeft + kw * s.dilationWidth;
                if (ih < 0 || ih >= s.height || iw < 0 || iw >= s.width)
                  continue;
                int64_t channel = o / s.outPerGroup() * s.inPerGroup() + c;
                sum += x[((n * s.inChannels + channel) * s.height + ih) * s.width + iw] *
                       w[((o * s.inPerGroup() + c) * s.kernelHeight + kh) * s.kernelWidth + kw];
              }
          y[((n * s.outChannels + o) * s.outHeight + oh) * s.outWidth + ow] = sum;
        }
  return y;
}

float activated(ConvActivation f, float x) {
  float six = std::min(std::max(x + 3, 0.0f), 6.0f);
  switch (f) {
  case ConvActivation::Relu:
    return std::max(x, 0.0f);
  case ConvActivation::Relu6:
    return std::min(std::max(x, 0.0f), 6.0f);
  case ConvActivation::Hardswish:
    return x * six / 6;
  case ConvActivation::Hardsigmoid:
    return six / 6;
  default:
    return x;
  }
}

void check(const ConvShape &s, bool planar) {
  SCOPED_TRACE(testing::Message() << s.batch << "x" << s.inChannels << "x" << s.height << "x" << s.width << " -> "
                                  << s.outChannels << " kernel " << s.kernelHeight << "x" << s.kernelWidth << " stride "
                                  << s.strideHeight << "," << s.strideWidth << " pad " << s.padTop << "," << s.padLeft
                                  << " dilation " << s.dilationHeight << "," << s.dilationWidth << " groups "
                                  << s.groups << " planar " << planar);
  ASSERT_TRUE(convLastSupports(s));
  auto x = integers(s.batch * s.inChannels * s.inPlane(), 1), w = integers(s.outChannels * s.taps(), 2);
  auto scale = integers(s.outChannels, 3), shift = integers(s.outChannels, 4);
  std::vector<float> sums = channelsLast(sumsOf(s, x, w), s.batch, s.outChannels, s.outPlane());
  std::vector<float> input = planar ? x : channelsLast(x, s.batch, s.inChannels, s.inPlane());
  std::vector<float> packed(static_cast<size_t>(convLastPackedSize(s)), NAN), y(sums.size());
  auto residual = integers(static_cast<int64_t>(y.size()), 5);
  convLastPack(s, planar, w.data(), packed.data());
  for (int form = 0; form < 8; ++form) {
    ConvEpilogue e;
    e.scale = form & 1 ? scale.data() : nullptr;
    e.shift = form & 3 ? shift.data() : nullptr;
    e.residual = form & 4 ? residual.data() : nullptr;
    e.activation = static_cast<ConvActivation>(form % 5);
    std::fill(y.begin(), y.end(), NAN);
    convLastForward(s, planar, input.data(), packed.data(), e, y.data());
    for (size_t i = 0; i < y.size(); ++i) {
      size_t c = i % static_cast<size_t>(s.outChannels);
      float v = sums[i] * (e.scale ? scale[c] : 1) + (e.shift ? shift[c] : 0) + (e.residual ? residual[i] : 0);
      ASSERT_EQ(y[i], activated(e.activation, v)) << "at " << i << " form " << form;
    }
  }
}

void checkAll(int64_t batch, int64_t in, int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
              int64_t dilation, int64_t groups) {
  ConvShape s;
  s.batch = batch, s.inChannels = in, s.height = size, s.width = size + 1, s.outChannels = out, s.groups = groups;
  s.kernelHeight = kernel, s.kernelWidth = std::max<int64_t>(1, kernel - 1), s.strideHeight = stride;
  s.strideWidth = stride > 2 ? 1 : stride, s.padTop = pad, s.padLeft = pad;
  s.dilationHeight = dilation, s.dilationWidth = dilation;
  setConvOutputSize(s);
  if (s.outPlane() == 0)
    return;
  check(s, false);
  if (groups == 1 || in / groups > 1)
    check(s, true);
}

} // namespace

TEST(ConvLast, WindowsAndSizes) {
  for (int64_t size : {1, 2, 5, 8, 15, 22})
    for (int64_t kernel : {1, 3, 4})
      for (int64_t stride : {1, 2, 3})
        for (int64_t pad : {0, 1})
          checkAll(2, 3, size, 5, kernel, stride, pad, 1, 1);
}

TEST(ConvLast, Channels) {
  for (int64_t in : {1, 2, 4, 8, 17})
    for (int64_t out : {1, 7, 8, 16, 17, 24, 33, 40, 70})
      checkAll(1, in, 6, out, 3, 1, 1, 1, 1);
}

TEST(ConvLast, LongSums) {
  checkAll(1, 100, 3, 20, 3, 1, 1, 1, 1); // several slices
  checkAll(1, 385, 2, 3, 1, 1, 0, 1, 1);
}

TEST(ConvLast, Dilation) {
  checkAll(1, 4, 9, 6, 3, 1, 2, 2, 1);
  checkAll(1, 5, 9, 6, 3, 2, 3, 3, 1);
}

TEST(ConvLast, Groups) {
  checkAll(2, 8, 7, 8, 3, 1, 1, 1, 2);
  checkAll(1, 12, 7, 24, 3, 2, 1, 1, 3);
}

TEST(ConvLast, Depthwise) {
  for (int64_t channels : {2, 7, 8, 16, 19, 40, 72})
    for (int64_t kernel : {1, 3, 5})
      for (int64_t stride : {1, 2})
        for (int64_t size : {3, 9, 20})
          checkAll(2, channels, size, channels, kernel, stride, kernel / 2, 1, channels);
  checkAll(1, 20, 24, 20, 3, 1, 2, 2, 20);
}

TEST(ConvLast, NanStaysAndThreadsAgree) {
  ConvShape s;
  s.batch = 3, s.inChannels = 40, s.height = s.width = 13, s.outChannels = 70;
  s.kernelHeight = s.kernelWidth = 3, s.padTop = s.padLeft = 1;
  setConvOutputSize(s);
  std::vector<float> x(static_cast<size_t>(s.batch * s.inChannels * s.inPlane())), w(70 * 40 * 9);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = std::cos(static_cast<float>(i));
  x[0] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> packed(static_cast<size_t>(convLastPackedSize(s)));
  convLastPack(s, false, w.data(), packed.data());
  ConvEpilogue e;
  e.activation = ConvActivation::Relu;
  std::vector<float> one(static_cast<size_t>(s.batch * s.outChannels * s.outPlane())), many(one.size());
  setNumThreads(1);
  convLastForward(s, false, x.data(), packed.data(), e, one.data());
  setNumThreads(3);
  convLastForward(s, false, x.data(), packed.data(), e, many.data());
  EXPECT_EQ(0, std::memcmp(one.data(), many.data(), one.size() * sizeof(float)));
  EXPECT_TRUE(std::isnan(one[0]));
  EXPECT_FALSE(std::isnan(one[5 * 70]));
}

TEST(ConvLast, WeightGradient) {
  for (int64_t in : {1, 3, 20})
    for (int64_t out : {16, 48})
      for (int64_t kernel : {1, 3})
        for (int64_t stride : {1, 2})
          for (int64_t dilation : {1, 2}) {
            ConvShape s;
            s.batch = 5, s.inChannels = in, s.height = 11, s.width = 14, s.outChannels = out;
            s.kernelHeight = s.kernelWidth = kernel, s.padTop = s.padLeft = 1;
            s.strideHeight = s.strideWidth = stride, s.dilationHeight = s.dilationWidth = dilation;
            setConvOutputSize(s);
            ASSERT_TRUE(convLastHasWeightGradient(s));
            auto x = integers(s.batch * in * s.inPlane(), 1), dy = integers(s.batch * out * s.outPlane(), 2);
            std::vector<float> dw(static_cast<size_t>(out * s.taps())), want(dw.size());
            convBackwardWeight<float>(s, x.data(), dy.data(), want.data());
            convLastBackwardWeight(s, channelsLast(x, s.batch, in, s.inPlane()).data(),
                                   channelsLast(dy, s.batch, out, s.outPlane()).data(), dw.data());
            for (size_t i = 0; i < dw.size(); ++i)
              ASSERT_EQ(dw[i], want[i]) << "at " << i << " in " << in << " out " << out << " kernel " << kernel;
          }
}
