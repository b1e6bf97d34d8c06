// Reductions and scans against loops over indices: layouts, dimensions, dtypes, lengths, NaN, empty, threads.
#include "KernelTestUtil.h"
#include "kernels/Kernels.h"
#include "kernels/reduce/Reduce.h"
#include <cmath>
#include <limits>

using namespace dlc;
using namespace dlc::kernels;
using namespace dlc::testing;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

Tensor reduce(const Tensor &x, std::vector<int64_t> dims, ReduceOp op, DType result, bool keep = false) {
  Sizes sizes;
  for (int64_t d = 0; d < x.dim(); ++d) {
    bool reduced =
        dims.empty() || std::count(dims.begin(), dims.end(), d) || std::count(dims.begin(), dims.end(), d - x.dim());
    if (!reduced)
      sizes.push_back(x.size(d));
    else if (keep)
      sizes.push_back(1);
  }
  Tensor out = make(sizes, result);
  reduceInto(out, x, Ints(dims), op);
  return out;
}

/// The sum over `dims` by a plain loop in double, in the order of the kept dimensions.
std::vector<double> plainSum(const Tensor &x, std::vector<int64_t> dims) {
  std::vector<double> sums;
  std::vector<std::vector<int64_t>> keys;
  forEachIndex(x.sizes(), [&](const std::vector<int64_t> &i) {
    std::vector<int64_t> key;
    for (int64_t d = 0; d < x.dim(); ++d)
      if (!dims.empty() && !std::count(dims.begin(), dims.end(), d))
        key.push_back(i[d]);
    auto at = std::find(keys.begin(), keys.end(), key);
    if (at == keys.end()) {
      keys.push_back(key);
      sums.push_back(0);
      at = keys.end() - 1;
    }
    sums[at - keys.begin()] += readAt(x, i);
  });
  return sums;
}

TEST(Reduce, SumsOverAnyDimensions) {
  std::vector<std::vector<int64_t>> shapes = {{}, {7}, {5, 9}, {3, 4, 5}, {2, 3, 4, 5}, {40, 33}},
                                    dims = {{}, {0}, {1}, {0, 1}, {2}, {0, 2}, {1, 3}};
  for (auto &shape : shapes)
    for (auto &dim : dims) {
      if (std::any_of(dim.begin(), dim.end(), [&](int64_t d) { return d >= static_cast<int64_t>(shape.size()); }))
        continue;
      for (Layout l : kLayouts)
        for (DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::U8, DType::Bool}) {
          Tensor x = random(shape, t, 0, 5, 1, l);
          forEachIndex(shape, [&](const auto &i) { writeAt(x, i, std::floor(readAt(x, i))); }); // sums are exact
          DType r = isFloat(t) ? t : DType::I64;
          Tensor want = from(plainSum(x, dim), r);
          ASSERT_EQ(values(reduce(x, dim, ReduceOp::Sum, r)), values(want))
              << listStr(shape) << listStr(dim) << nameOf(t);
          ASSERT_EQ(values(reduce(x, dim, ReduceOp::Sum, r, true)), values(want));
        }
    }
}

TEST(Reduce, ExtremaOfEveryLength) {
  for (int64_t n = 1; n <= 70; ++n)
    for (DType t : {DType::U8, DType::I8, DType::I16, DType::I64, DType::F32, DType::F16, DType::F64})
      for (Layout l : {Layout::Contiguous, Layout::Strided}) {
        Tensor x = random({n}, t, 20, 60, static_cast<unsigned>(n), l);
        auto v = values(x);
        EXPECT_EQ(readAt(reduce(x, {}, ReduceOp::Min, t), {}), *std::min_element(v.begin(), v.end()));
        EXPECT_EQ(readAt(reduce(x, {}, ReduceOp::Max, t), {}), *std::max_element(v.begin(), v.end()));
      }
}

TEST(Reduce, NanWins) {
  for (int64_t n : {1, 5, 8, 33, 100})
    for (int64_t at = 0; at < n; ++at) {
      Tensor x = random({n}, DType::F32, -5, 5);
      writeAt(x, {at}, kNan);
      EXPECT_TRUE(std::isnan(readAt(reduce(x, {}, ReduceOp::Max, DType::F32), {})));
      EXPECT_TRUE(std::isnan(readAt(reduce(x, {}, ReduceOp::Min, DType::F32), {})));
      // down columns
      Tensor y = random({n, 3}, DType::F32, -5, 5);
      writeAt(y, {at, 1}, kNan);
      auto m = values(reduce(y, {0}, ReduceOp::Max, DType::F32));
      EXPECT_TRUE(!std::isnan(m[0]) && std::isnan(m[1]) && !std::isnan(m[2]));
    }
  EXPECT_EQ(readAt(reduce(from({-kInf, -kInf}), {}, ReduceOp::Max, DType::F32), {}), -kInf);
}

TEST(Reduce, EmptyOnes) {
  Tensor x = make({3, 0}, DType::F32);
  EXPECT_EQ(values(reduce(x, {1}, ReduceOp::Sum, DType::F32)), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(values(reduce(x, {}, ReduceOp::Prod, DType::F32)), (std::vector<double>{1}));
  EXPECT_EQ(values(reduce(x, {0}, ReduceOp::Sum, DType::F32)), std::vector<double>());
  EXPECT_TRUE(std::isnan(values(reduce(x, {}, ReduceOp::Mean, DType::F32))[0]));
  EXPECT_EQ(values(reduce(x, {}, ReduceOp::All, DType::Bool)), (std::vector<double>{1}));
  EXPECT_EQ(values(reduce(x, {}, ReduceOp::Any, DType::Bool)), (std::vector<double>{0}));
}

TEST(Reduce, TruthOfAnyDType) {
  Tensor x = from({0, 0.5, 0, 0}, {2, 2}, DType::F32);
  EXPECT_EQ(values(reduce(x, {1}, ReduceOp::Any, DType::Bool)), (std::vector<double>{1, 0}));
  EXPECT_EQ(values(reduce(x, {1}, ReduceOp::All, DType::Bool)), (std::vector<double>{0, 0}));
  EXPECT_EQ(values(reduce(from({256, kNan}), {}, ReduceOp::All, DType::Bool)), (std::vector<double>{1}));
}

TEST(Reduce, IntegersWrapInTheResultsWidth) {
  EXPECT_EQ(readAt(reduce(from({200, 100}, DType::U8), {}, ReduceOp::Sum, DType::U8), {}), 44);
  EXPECT_EQ(readAt(reduce(from({200, 100}, DType::U8), {}, ReduceOp::Sum, DType::I64), {}), 300);
  EXPECT_EQ(readAt(reduce(from({1 << 20, 1 << 20}, DType::I32), {}, ReduceOp::Prod, DType::I64), {}),
            std::pow(2.0, 40));
}

TEST(Reduce, SameBitsOnAnyNumberOfThreads) {
  for (auto &shape : std::vector<std::vector<int64_t>>{{300001}, {5000, 37}, {37, 5000}, {3, 70000, 2}})
    for (auto &dims : std::vector<std::vector<int64_t>>{{}, {0}, {-1}}) {
      Tensor x = random(shape, DType::F32, -1, 1);
      std::vector<int64_t> wrapped = dims;
      for (int64_t &d : wrapped)
        d = d < 0 ? d + static_cast<int64_t>(shape.size()) : d;
      setNumThreads(1);
      auto one = values(reduce(x, wrapped, ReduceOp::Sum, DType::F32));
      setNumThreads(4);
      EXPECT_EQ(one, values(reduce(x, wrapped, ReduceOp::Sum, DType::F32)));
      setNumThreads(2);
      if (one.size() > 100)
        continue;
      auto want = plainSum(x, wrapped);
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(one[i], want[i], 2e-2);
    }
}

TEST(Reduce, HalvesAccumulateInFloat) {
  Tensor x = make({4096}, DType::F16);
  fillWith(x, 1.0);
  EXPECT_EQ(readAt(reduce(x, {}, ReduceOp::Sum, DType::F16), {}), 4096);
  EXPECT_EQ(readAt(reduce(x, {}, ReduceOp::Mean, DType::F16), {}), 1);
}

std::vector<double> argOf(const Tensor &x, std::optional<int64_t> dim, bool most) {
  Sizes sizes;
  for (int64_t d = 0; dim && d < x.dim(); ++d)
    if (d != *dim)
      sizes.push_back(x.size(d));
  Tensor out = make(sizes, DType::I64);
  if (most)
    argmaxKernel({x, dim, false}, Span<Tensor>(&out, 1));
  else
    argminKernel({x, dim, false}, Span<Tensor>(&out, 1));
  return values(out);
}

TEST(ArgReduce, FirstExtremumAndFirstNan) {
  EXPECT_EQ(argOf(from({2, kNan, 5, kNan}), 0, true), (std::vector<double>{1}));
  EXPECT_EQ(argOf(from({2, kNan, 5}), std::nullopt, false), (std::vector<double>{1}));
  EXPECT_EQ(argOf(from({3, 7, 7, 1, 1}), 0, true), (std::vector<double>{1}));
  EXPECT_EQ(argOf(from({3, 7, 7, 1, 1}), 0, false), (std::vector<double>{3}));
  EXPECT_EQ(argOf(from({3, 7, kNan, 7, 5, 1, kNan, kNan}, {4, 2}, DType::F32), 0, true), (std::vector<double>{1, 3}));
  for (int64_t n = 1; n < 41; ++n) {
    Tensor x = make({n}, DType::U8);
    for (int64_t i = 0; i < n; ++i)
      writeAt(x, {i}, static_cast<double>(60 - i));
    EXPECT_EQ(argOf(x, 0, false), (std::vector<double>{static_cast<double>(n - 1)}));
    EXPECT_EQ(argOf(x, 0, true), (std::vector<double>{0}));
  }
}

TEST(Scan, RunningSumsAndProducts) {
  Tensor x = from({1, 2, 3, 4, 5, 6}, {2, 3}, DType::I32), out = make({2, 3}, DType::I64);
  cumsumKernel({x, 1, {}}, Span<Tensor>(&out, 1));
  EXPECT_EQ(values(out), (std::vector<double>{1, 3, 6, 4, 9, 15}));
  cumsumKernel({x, 0, {}}, Span<Tensor>(&out, 1));
  EXPECT_EQ(values(out), (std::vector<double>{1, 2, 3, 5, 7, 9}));
  cumprodKernel({x, -1, {}}, Span<Tensor>(&out, 1));
  EXPECT_EQ(values(out), (std::vector<double>{1, 2, 6, 4, 20, 120}));
}

} // namespace
