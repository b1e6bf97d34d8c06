// Row kernels, pooling, products, random numbers and optimizer steps against plain formulas in double.
#include "KernelTestUtil.h"
#include "kernels/Kernels.h"
#include "runtime/scalar/NativeBuilder.h"
#include "runtime/scalar/Philox.h"
#include <cmath>
#include <limits>

using namespace dlc;
using namespace dlc::kernels;
using namespace dlc::testing;
using Values = std::vector<double>;

namespace {

Span<Tensor> span(Tensor &t) { return Span<Tensor>(&t, 1); }

void expectNear(const Tensor &got, const Values &want, double tolerance) {
  Values v = values(got);
  ASSERT_EQ(v.size(), want.size());
  for (size_t i = 0; i < v.size(); ++i)
    ASSERT_NEAR(v[i], want[i], tolerance) << i;
}

TEST(Softmax, RowsOfEveryLengthAndLayout) {
  for (int64_t n : {1, 2, 7, 8, 9, 31, 32, 33, 40, 600, 1500})
    for (Layout l : kLayouts)
      for (int64_t dim : {0, 1}) {
        Tensor x = random({n, 3}, DType::F32, -6, 6, 1, l), y = make({n, 3}, DType::F32), z = make({n, 3}, DType::F32);
        softmaxKernel({x, dim, {}}, span(y));
        logSoftmaxKernel({x, dim, {}}, span(z));
        Values want, wantLog;
        forEachIndex(x.sizes(), [&](const auto &i) {
          double sum = 0;
          for (int64_t k = 0; k < x.size(dim); ++k)
            sum += std::exp(dim ? readAt(x, {i[0], k}) : readAt(x, {k, i[1]}));
          want.push_back(std::exp(readAt(x, i)) / sum);
          wantLog.push_back(readAt(x, i) - std::log(sum));
        });
        expectNear(y, want, 2e-6);
        expectNear(z, wantLog, 4e-6);
      }
}

TEST(Softmax, InfinitiesAndHugeScores) {
  double inf = std::numeric_limits<double>::infinity();
  auto run = [](Values v) {
    Tensor x = from(v), y = make({static_cast<int64_t>(v.size())}, DType::F32);
    softmaxKernel({x, 0, {}}, span(y));
    return values(y);
  };
  for (double v : run({inf, 1}))
    EXPECT_TRUE(std::isnan(v));
  for (double v : run({-inf, -inf}))
    EXPECT_TRUE(std::isnan(v));
  EXPECT_EQ(run({-inf, 3}), (Values{0, 1}));
  EXPECT_EQ(run({-1e14, -2e14, -4e14}), (Values{1, 0, 0}));
}

TEST(LayerNorm, ForwardAndGradient) {
  int64_t rows = 150, n = 37, shape[] = {n};
  Tensor x = random({rows, n}, DType::F64, -2, 2), w = random({n}, DType::F64, 0, 2, 2),
         b = random({n}, DType::F64, -1, 1, 3);
  Tensor outs[] = {make({rows, n}, DType::F64), make({rows, 1}, DType::F64), make({rows, 1}, DType::F64)};
  auto forward = [&] {
    layerNormKernel({x, Ints(shape, 1), &w, &b, 1e-5}, Span<Tensor>(outs, 3));
    double s = 0; // a weighted sum as the loss
    forEachIndex(x.sizes(), [&](const auto &i) { s += readAt(outs[0], i) * std::sin(double(i[0] * n + i[1])); });
    return s;
  };
  forward();
  Tensor g = make({rows, n}, DType::F64),
         grads[] = {make({rows, n}, DType::F64), make({n}, DType::F64), make({n}, DType::F64)};
  forEachIndex(x.sizes(), [&](const auto &i) { writeAt(g, i, std::sin(double(i[0] * n + i[1]))); });
  layerNormBackwardKernel({g, x, Ints(shape, 1), outs[1], outs[2], &w, true, true}, Span<Tensor>(grads, 3));
  auto numeric = [&](const Tensor &t, const std::vector<int64_t> &i) {
    double old = readAt(t, i), h = 1e-5;
    writeAt(t, i, old + h);
    double up = forward();
    writeAt(t, i, old - h);
    double down = forward();
    writeAt(t, i, old);
    return (up - down) / (2 * h);
  };
  for (int64_t k : {0, 5, 36}) {
    EXPECT_NEAR(readAt(grads[0], {7, k}), numeric(x, {7, k}), 1e-6);
    EXPECT_NEAR(readAt(grads[0], {149, k}), numeric(x, {149, k}), 1e-6);
    EXPECT_NEAR(readAt(grads[1], {k}), numeric(w, {k}), 1e-6);
    EXPECT_NEAR(readAt(grads[2], {k}), numeric(b, {k}), 1e-6);
  }
}

TEST(BatchNorm, TrainingGradientAndRunningStatistics) {
  Tensor x = random({6, 3, 4, 5}, DType::F64, -2, 2), mean = make({3}, DType::F64), var = make({3}, DType::F64);
  Tensor outs[] = {make({6, 3, 4, 5}, DType::F64), make({3}, DType::F64), make({3}, DType::F64)};
  fillWith(mean, 0);
  fillWith(var, 1);
  auto forward = [&](const Tensor *m, const Tensor *v) {
    batchNormKernel({x, m, v, nullptr, nullptr, true, Number(0.1), 1e-5}, Span<Tensor>(outs, 3));
    double s = 0;
    int64_t k = 0;
    forEachIndex(x.sizes(), [&](const auto &i) { s += readAt(outs[0], i) * std::cos(double(k++)); });
    return s;
  };
  forward(&mean, &var);
  double sum = 0;
  forEachIndex({6, 4, 5}, [&](const auto &i) { sum += readAt(x, {i[0], 1, i[1], i[2]}); });
  EXPECT_NEAR(readAt(mean, {1}), 0.1 * sum / 120, 1e-12);
  EXPECT_NEAR(readAt(outs[1], {1}), sum / 120, 1e-12);
  Tensor g = make({6, 3, 4, 5}, DType::F64),
         grads[] = {make({6, 3, 4, 5}, DType::F64), make({3}, DType::F64), make({3}, DType::F64)};
  int64_t k = 0;
  forEachIndex(x.sizes(), [&](const auto &i) { writeAt(g, i, std::cos(double(k++))); });
  batchNormBackwardKernel({g, x, outs[1], outs[2], nullptr, true, true, true}, Span<Tensor>(grads, 3));
  for (std::vector<int64_t> i : {std::vector<int64_t>{0, 0, 0, 0}, {5, 2, 3, 4}, {2, 1, 1, 1}}) {
    double old = readAt(x, i), h = 1e-5;
    writeAt(x, i, old + h);
    double up = forward(nullptr, nullptr);
    writeAt(x, i, old - h);
    double down = forward(nullptr, nullptr);
    writeAt(x, i, old);
    EXPECT_NEAR(readAt(grads[0], i), (up - down) / (2 * h), 1e-6);
  }
}

TEST(NllLoss, MeanIgnoresAndChecks) {
  Tensor x = from({-1, -2, -3, -4, -5, -6}, {3, 2}, DType::F32), t = from({1, -100, 0}, DType::I64), w = from({1, 3}),
         outs[] = {make({}, DType::F32), make({}, DType::F32)};
  nllLossKernel({x, t, &w, -100, "mean"}, Span<Tensor>(outs, 2));
  EXPECT_FLOAT_EQ(readAt(outs[0], {}), (2 * 3 + 5) / 4.0);
  Tensor g = from({1}, {}, DType::F32), dx = make({3, 2}, DType::F32);
  Dim sizes[] = {3, 2};
  nllLossBackwardKernel({g, DType::F32, Span<const Dim>(sizes, 2), t, &w, outs[1], -100, "mean"}, span(dx));
  expectNear(dx, {0, -0.75, 0, 0, -0.25, 0}, 1e-7);
  EXPECT_THROW(nllLossKernel({x, from({0, 2, 0}, DType::I64), nullptr, -100, "mean"}, Span<Tensor>(outs, 2)), Error);
}

TEST(Pool, MaxKeepsNanAndPositions) {
  Tensor x = from({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3}, DType::F32),
         outs[] = {make({1, 2, 2}, DType::F32), make({1, 2, 2}, DType::I64)};
  int64_t two[] = {2, 2}, one[] = {1, 1}, zero[] = {0, 0};
  maxPool2dKernel({x, Ints(two, 2), Ints(one, 2), Ints(zero, 2), Ints(one, 2), false}, Span<Tensor>(outs, 2));
  EXPECT_EQ(values(outs[0]), (Values{5, 6, 8, 9}));
  EXPECT_EQ(values(outs[1]), (Values{4, 5, 7, 8}));
  Tensor avg = make({1, 2, 2}, DType::F32);
  avgPool2dKernel({x, Ints(two, 2), Ints(two, 2), Ints(one, 2), false, true, {}}, span(avg));
  expectNear(avg, {0.25, 1.25, 2.75, 7}, 1e-6);
  avgPool2dKernel({x, Ints(two, 2), Ints(two, 2), Ints(one, 2), false, false, {}}, span(avg));
  expectNear(avg, {1, 2.5, 5.5, 7}, 1e-6);
  writeAt(x, {0, 1, 1}, std::nan(""));
  maxPool2dKernel({x, Ints(two, 2), Ints(one, 2), Ints(zero, 2), Ints(one, 2), false}, Span<Tensor>(outs, 2));
  for (double v : values(outs[0]))
    EXPECT_TRUE(std::isnan(v));
}

TEST(Pool, WindowsOfEveryKind) {
  for (int64_t k : {1, 2, 3})
    for (int64_t stride : {1, 2, 3})
      for (int64_t pad : {int64_t(0), k / 2})
        for (int64_t dilation : {1, 2}) {
          int64_t n = 11, out = (n + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
          Tensor x = random({2, n, n}, DType::F32, -3, 3, 1, Layout::Transposed),
                 outs[] = {make({2, out, out}, DType::F32), make({2, out, out}, DType::I64)};
          int64_t ks[] = {k, k}, ss[] = {stride, stride}, ps[] = {pad, pad}, ds[] = {dilation, dilation};
          maxPool2dKernel({x, Ints(ks, 2), Ints(ss, 2), Ints(ps, 2), Ints(ds, 2), false}, Span<Tensor>(outs, 2));
          forEachIndex(outs[0].sizes(), [&](const auto &o) {
            double best = -1e9;
            int64_t where = -1;
            for (int64_t i = 0; i < k; ++i)
              for (int64_t j = 0; j < k; ++j) {
                int64_t r = o[1] * stride - pad + i * dilation, c = o[2] * stride - pad + j * dilation;
                if (r >= 0 && r < n && c >= 0 && c < n && readAt(x, {o[0], r, c}) > best)
                  best = readAt(x, {o[0], r, c}), where = r * n + c;
              }
            ASSERT_EQ(readAt(outs[0], o), best);
            ASSERT_EQ(readAt(outs[1], o), where);
          });
        }
}

TEST(Matmul, StridesBatchesAndEmpty) {
  for (Layout la : kLayouts)
    for (Layout lb : kLayouts)
      for (Layout lo : kLayouts) {
        Tensor a = random({3, 5, 7}, DType::F32, -2, 2, 1, la), b = random({3, 7, 4}, DType::F32, -2, 2, 2, lb),
               out = make({3, 5, 4}, DType::F32, lo);
        bmmKernel({a, b}, span(out));
        Values want;
        forEachIndex(out.sizes(), [&](const auto &i) {
          double s = 0;
          for (int64_t k = 0; k < 7; ++k)
            s += readAt(a, {i[0], i[1], k}) * readAt(b, {i[0], k, i[2]});
          want.push_back(s);
        });
        expectNear(out, want, 1e-5);
      }
  Tensor out = make({3, 2}, DType::F32);
  fillWith(out, 5);
  mmKernel({make({3, 0}, DType::F32), make({0, 2}, DType::F32)}, span(out));
  EXPECT_EQ(values(out), (Values{0, 0, 0, 0, 0, 0}));
  Tensor a = from({1, 2, 3, 4}, {2, 2}, DType::I32), sum = make({2, 2}, DType::I32), bias = from({10, 20}, DType::I32);
  addmmKernel({bias, a, a, Number(2), Number(3)}, span(sum));
  EXPECT_EQ(values(sum), (Values{41, 70, 65, 106}));
}

TEST(Random, SameNumbersOnAnyNumberOfThreads) {
  auto draw = [](int threads, bool normal) {
    setNumThreads(threads);
    auto g = makeRef<Generator>(7);
    Tensor t = make({10001}, DType::F32), u = make({5}, DType::F32);
    for (Tensor *o : {&t, &u})
      if (normal)
        randnKernel({{}, g.get(), {}, {}}, span(*o));
      else
        randKernel({{}, g.get(), {}, {}}, span(*o));
    Values v = values(t), w = values(u);
    v.insert(v.end(), w.begin(), w.end());
    setNumThreads(2);
    return v;
  };
  for (bool normal : {false, true}) {
    Values v = draw(1, normal);
    EXPECT_EQ(v, draw(4, normal));
    double mean = 0, square = 0;
    for (double x : v)
      mean += x / v.size(), square += x * x / v.size();
    EXPECT_NEAR(mean, normal ? 0 : 0.5, 0.03);
    EXPECT_NEAR(square, normal ? 1 : 1.0 / 3, 0.05);
  }
}

TEST(Random, ElementsAreThePrimitives) {
  auto g = makeRef<Generator>(11);
  g->setOffset(5);
  Tensor u = make({4099}, DType::F32), z = make({4099}, DType::F32);
  randKernel({{}, g.get(), {}, {}}, span(u));
  EXPECT_EQ(g->offset(), 5u + 1025u);
  randnKernel({{}, g.get(), {}, {}}, span(z));
  for (int64_t i = 0; i < 4099; ++i) {
    scalar::NativeBuilder b;
    ASSERT_EQ(u.dataAs<float>()[i], scalar::philox_uniform_(b, int64_t(11), int64_t(5), i));
    ASSERT_EQ(z.dataAs<float>()[i], scalar::philox_normal_(b, int64_t(11), int64_t(1030), i));
  }
}

TEST(Random, IntegersPermutationsAndDraws) {
  auto g = makeRef<Generator>(3);
  Tensor t = make({2000}, DType::I64);
  randintKernel({-3, 4, {}, g.get(), {}, {}}, span(t));
  Values v = values(t);
  EXPECT_EQ(*std::min_element(v.begin(), v.end()), -3);
  EXPECT_EQ(*std::max_element(v.begin(), v.end()), 3);
  Tensor p = make({100}, DType::I64);
  randpermKernel({100, g.get(), {}, {}}, span(p));
  v = values(p);
  EXPECT_NE(v[0] + v[1] * 100, 100);
  std::sort(v.begin(), v.end());
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(v[i], i);
  Tensor w = from({0, 1, 3, 0}), m = make({2000}, DType::I64);
  multinomialKernel({w, 2000, true, g.get()}, span(m));
  v = values(m);
  EXPECT_NEAR(std::count(v.begin(), v.end(), 2) / 2000.0, 0.75, 0.05);
  EXPECT_EQ(std::count(v.begin(), v.end(), 0) + std::count(v.begin(), v.end(), 3), 0);
  Tensor two = make({2}, DType::I64), three = make({3}, DType::I64);
  multinomialKernel({w, 2, false, g.get()}, span(two));
  EXPECT_EQ(readAt(two, {0}) + readAt(two, {1}), 3);
  EXPECT_THROW(multinomialKernel({w, 3, false, g.get()}, span(three)), Error);
}

TEST(Optim, AdamAgainstTheFormula) {
  for (Layout l : {Layout::Contiguous, Layout::Transposed, Layout::Strided}) {
    Tensor p = random({30, 41}, DType::F32, -1, 1, 1, l), g = random({30, 41}, DType::F32, -1, 1, 2),
           m = make({30, 41}, DType::F32), v = make({30, 41}, DType::F32), step = make({}, DType::F32);
    fillWith(m, 0), fillWith(v, 0), fillWith(step, 0);
    Values want = values(p), grad = values(g), wm(want.size()), wv(want.size());
    for (int k = 1; k <= 3; ++k) {
      adamStepKernel({Span<const Tensor>(&p, 1), Span<const Tensor>(&g, 1), Span<const Tensor>(&m, 1),
                      Span<const Tensor>(&v, 1), step, Number(0.01), Number(0.9), Number(0.999), Number(1e-8),
                      Number(0.1), true, false},
                     Span<Tensor>());
      for (size_t i = 0; i < want.size(); ++i) {
        want[i] *= 1 - 0.01 * 0.1;
        wm[i] = 0.9 * wm[i] + 0.1 * grad[i];
        wv[i] = 0.999 * wv[i] + 0.001 * grad[i] * grad[i];
        want[i] -=
            0.01 / (1 - std::pow(0.9, k)) * wm[i] / (std::sqrt(wv[i]) / std::sqrt(1 - std::pow(0.999, k)) + 1e-8);
      }
    }
    EXPECT_EQ(readAt(step, {}), 3);
    expectNear(p, want, 2e-6);
  }
}

TEST(Optim, NormAndClipping) {
  Tensor a = from({3, 0}), b = from({0, 4, 0}), list[] = {a, b}, norm = make({}, DType::F32);
  totalNormKernel({Span<const Tensor>(list, 2), 2}, span(norm));
  EXPECT_FLOAT_EQ(readAt(norm, {}), 5);
  clipByNormKernel({Span<const Tensor>(list, 2), norm, Number(1.0)}, Span<Tensor>());
  EXPECT_NEAR(readAt(a, {0}), 0.6, 1e-6);
  totalNormKernel({Span<const Tensor>(list, 2), std::numeric_limits<double>::infinity()}, span(norm));
  EXPECT_NEAR(readAt(norm, {}), 0.8, 1e-6);
}

} // namespace
