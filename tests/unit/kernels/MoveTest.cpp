// Copies, casts, flips, padding, concatenation and the index family.
#include "KernelTestUtil.h"
#include "kernels/Kernels.h"
#include "kernels/common/Views.h"
#include <cmath>
#include <limits>

using namespace dlc;
using namespace dlc::kernels;
using namespace dlc::testing;
using Values = std::vector<double>;

namespace {

Span<Tensor> span(Tensor &t) { return Span<Tensor>(&t, 1); }

ErrorKind kindOf(const std::function<void()> &f) {
  try {
    f();
  } catch (const Error &e) {
    return e.kind();
  }
  return ErrorKind::Internal;
}

TEST(Copy, EveryLayoutToEveryLayout) {
  for (auto &shape : std::vector<std::vector<int64_t>>{{}, {0, 3}, {5}, {37, 70}, {3, 40, 50}, {2, 3, 4, 5}, {1, 9, 1}})
    for (Layout a : kLayouts)
      for (Layout b : kLayouts)
        for (DType t : {DType::F32, DType::I64, DType::U8, DType::F16}) {
          Tensor x = random(shape, DType::F32, -9, 9, 1, a), y = make(shape, DType::F32, b);
          copyInto(y, x);
          ASSERT_EQ(values(x), values(y));
          Tensor z = make(shape, t, b), w = make(shape, t);
          copyInto(z, x);
          copyInto(w, x);
          ASSERT_EQ(values(z), values(w));
        }
}

TEST(Copy, CastsOutOfRangeFollowOneRule) {
  const double given[] = {-1, -2.5, 300}, want[] = {255, 254, 44};
  for (int64_t n : {3, 40}) { // scalar tail and vector body
    Tensor x = make({n}, DType::F32), y = make({n}, DType::U8);
    for (int64_t i = 0; i < n; ++i)
      writeAt(x, {i}, given[i % 3]);
    copyInto(y, x);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(readAt(y, {i}), want[i % 3]);
  }
  Tensor x = from({0.1, 3.14159, std::nan("")}), y = make({3}, DType::BF16);
  copyInto(y, x);
  EXPECT_EQ(readAt(y, {0}), 0.10009765625);
  EXPECT_EQ(readAt(y, {1}), 3.140625);
  EXPECT_TRUE(std::isnan(readAt(y, {2})));
}

TEST(Move, FlipTriangleCat) {
  Tensor x = from({1, 2, 3, 4, 5, 6}, {2, 3}, DType::F32), out = make({2, 3}, DType::F32);
  int64_t both[] = {0, -1};
  flipKernel({x, Ints(both, 2)}, span(out));
  EXPECT_EQ(values(out), (Values{6, 5, 4, 3, 2, 1}));
  trilKernel({x, 0}, span(out));
  EXPECT_EQ(values(out), (Values{1, 0, 0, 4, 5, 0}));
  triuKernel({x, 1}, span(out));
  EXPECT_EQ(values(out), (Values{0, 2, 3, 0, 0, 6}));
  trilKernel({x, -5}, span(out));
  EXPECT_EQ(values(out), (Values{0, 0, 0, 0, 0, 0}));
  Tensor wide = make({2, 6}, DType::F32), parts[] = {x, make({0}, DType::F32), x};
  catKernel({Span<const Tensor>(parts, 3), 1}, span(wide));
  EXPECT_EQ(values(wide), (Values{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
}

TEST(Move, PadModes) {
  Tensor x = from({1, 2, 3}, {1, 3}, DType::F32), out = make({1, 7}, DType::F32);
  Dim pad[] = {2, 2};
  auto run = [&](Str mode) {
    padKernel({x, Span<const Dim>(pad, 2), mode, Number(9)}, span(out));
    return values(out);
  };
  EXPECT_EQ(run("constant"), (Values{9, 9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(run("reflect"), (Values{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(run("replicate"), (Values{1, 1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(run("circular"), (Values{2, 3, 1, 2, 3, 1, 2}));
  Tensor grad = make({1, 3}, DType::F32), ones = make({1, 7}, DType::F32);
  fillWith(ones, 1);
  Dim sizes[] = {1, 3};
  padBackwardKernel({ones, Span<const Dim>(sizes, 2), Span<const Dim>(pad, 2), "reflect"}, span(grad));
  EXPECT_EQ(values(grad), (Values{2, 3, 2}));
  Dim crop[] = {-1, 1};
  Tensor narrow = make({1, 3}, DType::F32);
  padKernel({x, Span<const Dim>(crop, 2), "constant", {}}, span(narrow));
  EXPECT_EQ(values(narrow), (Values{2, 3, 0}));
}

TEST(Index, RowsAndErrors) {
  Tensor w = from({0, 1, 2, 3, 4, 5}, {3, 2}, DType::F32), i = from({2, 0}, DType::I64), out = make({2, 2}, DType::F32);
  embeddingKernel({i, w, {}}, span(out));
  EXPECT_EQ(values(out), (Values{4, 5, 0, 1}));
  Tensor bad = from({0, -1}, DType::I64), one = make({1}, DType::F32), far = from({4}, DType::I64),
         x = from({0, 1, 2, 3});
  EXPECT_EQ(kindOf([&] { embeddingKernel({bad, w, {}}, span(out)); }), ErrorKind::Index);
  EXPECT_EQ(kindOf([&] { indexSelectKernel({x, 0, far}, span(one)); }), ErrorKind::Index);
  Tensor list[] = {from({-1}, DType::I64)};
  indexKernel({x, Span<const Tensor>(list, 1)}, span(one));
  EXPECT_EQ(values(one), (Values{3}));
  list[0] = from({-5}, DType::I64);
  EXPECT_EQ(kindOf([&] { indexKernel({x, Span<const Tensor>(list, 1)}, span(one)); }), ErrorKind::Index);
  Tensor empty = make({0}, DType::F32), zero[] = {from({0}, DType::I64)};
  EXPECT_EQ(kindOf([&] { indexKernel({empty, Span<const Tensor>(zero, 1)}, span(one)); }), ErrorKind::Index);
}

TEST(Index, AdvancedFormsPlaceTheirDimensions) {
  Tensor x = make({2, 3, 4}, DType::I32);
  int64_t k = 0;
  forEachIndex(x.sizes(), [&](const auto &i) { writeAt(x, i, static_cast<double>(k++)); });
  for (Layout l : {Layout::Contiguous, Layout::Transposed, Layout::Strided}) {
    Tensor y = make({2, 3, 4}, DType::I32, l);
    copyInto(y, x);
    // y[:, [2, 0]]: in place
    Tensor a[] = {Tensor(), from({2, 0}, DType::I64)}, out = make({2, 2, 4}, DType::I32);
    indexKernel({y, Span<const Tensor>(a, 2)}, span(out));
    forEachIndex(out.sizes(), [&](const auto &i) { EXPECT_EQ(readAt(out, i), readAt(x, {i[0], i[1] ? 0 : 2, i[2]})); });
    // y[[1, 0, 1], :, [3, 2, 1]]: to the front
    Tensor b[] = {from({1, 0, 1}, DType::I64), Tensor(), from({3, 2, 1}, DType::I64)}, front = make({3, 3}, DType::I32);
    indexKernel({y, Span<const Tensor>(b, 3)}, span(front));
    const int64_t i0[] = {1, 0, 1}, i2[] = {3, 2, 1};
    forEachIndex(front.sizes(),
                 [&](const auto &i) { EXPECT_EQ(readAt(front, i), readAt(x, {i0[i[0]], i[1], i2[i[0]]})); });
    // a mask over the first two dimensions
    Tensor m = from({0, 1, 0, 1, 0, 0}, {2, 3}, DType::Bool), masked;
    Tensor c[] = {m};
    indexKernel({y, Span<const Tensor>(c, 1)}, span(masked));
    EXPECT_EQ(values(masked), (Values{4, 5, 6, 7, 12, 13, 14, 15}));
  }
}

TEST(Index, PutReadsAllThenWrites) {
  Tensor x = from({1, 2}), v = from({7, 7}), i[] = {from({1, 1}, DType::I64)};
  indexPutKernel({x, Span<const Tensor>(i, 1), v, false}, span(x)); // in place: out is self
  EXPECT_EQ(values(x), (Values{1, 7}));
  Tensor out = make({2}, DType::F16), h = from({1, 2}, DType::F16), w = from({0.5, 0.25}, DType::F16);
  indexPutKernel({h, Span<const Tensor>(i, 1), w, true}, span(out));
  EXPECT_EQ(values(out), (Values{1, 2.75}));
  EXPECT_EQ(values(h), (Values{1, 2}));
}

TEST(Index, GatherScatterAdd) {
  Tensor x = from({1, 2, 3, 4, 5, 6}, {2, 3}, DType::F32), i = from({2, 0, 1, 1}, {2, 2}, DType::I64),
         out = make({2, 2}, DType::F32);
  gatherKernel({x, 1, i}, span(out));
  EXPECT_EQ(values(out), (Values{3, 1, 5, 5}));
  Tensor sum = make({2, 3}, DType::F32), src = from({10, 20, 30, 40}, {2, 2}, DType::F32);
  scatterAddKernel({x, 1, i, src}, span(sum));
  EXPECT_EQ(values(sum), (Values{21, 2, 13, 4, 75, 6}));
  scatterKernel({x, 1, i, Tensor(Number(0))}, span(sum));
  EXPECT_EQ(values(sum), (Values{0, 2, 0, 4, 0, 6}));
  EXPECT_EQ(kindOf([&] { gatherKernel({x, 1, from({3, 0, 1, 1}, {2, 2}, DType::I64)}, span(out)); }),
            ErrorKind::Runtime);
  Tensor rows = make({2, 3}, DType::F32), at = from({1, 1}, DType::I64);
  indexAddKernel({x, 0, at, x, Number(2)}, span(rows));
  EXPECT_EQ(values(rows), (Values{1, 2, 3, 14, 19, 24}));
}

TEST(Index, SortTopkAndDataDependent) {
  double nan = std::nan("");
  Tensor x = from({3, nan, 1, 2, 3}), v = make({5}, DType::F32), i = make({5}, DType::I64), outs[] = {v, i};
  sortKernel({x, -1, false, false}, Span<Tensor>(outs, 2));
  EXPECT_EQ(values(i), (Values{2, 3, 0, 4, 1}));
  sortKernel({x, -1, true, false}, Span<Tensor>(outs, 2));
  EXPECT_EQ(values(i), (Values{1, 0, 4, 3, 2}));
  Tensor tv = make({2}, DType::F32), ti = make({2}, DType::I64), top[] = {tv, ti};
  topkKernel({x, 2, 0, false, true}, Span<Tensor>(top, 2));
  EXPECT_EQ(values(tv), (Values{1, 2}));
  Tensor m = from({0, 3, -1, 0}, {2, 2}, DType::I32), out;
  nonzeroKernel({m}, span(out));
  EXPECT_EQ(values(out), (Values{0, 1, 1, 0}));
  EXPECT_EQ(out.sizes(), (Sizes{2, 2}));
  maskedSelectKernel({from({1, 2, 3}), from({1, 0, 1}, DType::Bool)}, span(out));
  EXPECT_EQ(values(out), (Values{1, 3}));
}

} // namespace
