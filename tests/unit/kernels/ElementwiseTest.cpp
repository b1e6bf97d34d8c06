// The elementwise driver: every layout, dtype mix, broadcast and length against a loop over indices.
#include "KernelTestUtil.h"
#include "kernels/elementwise/Elementwise.h"
#include "runtime/core/Error.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/scalar/Arith.h"
#include <cmath>

using namespace dlc;
using namespace dlc::kernels;
using namespace dlc::testing;

namespace {

constexpr uint32_t kAll = (1u << kNumDTypes) - 1;
struct AddFn {
  static constexpr int kWide = -1, kArity = 3;
  static constexpr uint32_t kTypes = kAll, kBoolOperands = 0;
  template <class B, class V> static auto run(B &s, V a, V b, V alpha) {
    return scalar::add_(s, a, scalar::mul_(s, alpha, b));
  }
};
struct LtFn {
  static constexpr int kWide = -1, kArity = 2;
  static constexpr uint32_t kTypes = kAll, kBoolOperands = 0;
  template <class B, class V> static auto run(B &s, V a, V b) { return scalar::lt_(s, a, b); }
};
struct WhereFn {
  static constexpr int kWide = -1, kArity = 3;
  static constexpr uint32_t kTypes = kAll, kBoolOperands = 1;
  template <class B, class C, class V> static auto run(B &s, C c, V a, V b) { return scalar::select_(s, c, a, b); }
};
struct FloorDivFn {
  static constexpr int kWide = -1, kArity = 2;
  static constexpr uint32_t kTypes = kAll & ~1u, kBoolOperands = 0;
  template <class B, class V> static auto run(B &s, V a, V b) { return scalar::floor_div_(s, a, b); }
};

Tensor add(const Tensor &a, const Tensor &b, Number alpha, Tensor out) {
  Operands in("add", Promotion::Arith);
  in.tensor(a);
  in.tensor(b);
  in.number(alpha);
  run<AddFn>(in, Span<Tensor>(&out, 1));
  return out;
}

double rounded(DType t, double v) {
  Tensor s = make({}, t);
  writeAt(s, {}, v);
  return readAt(s, {});
}

void checkAdd(const Tensor &a, const Tensor &b, const Tensor &out) {
  forEachIndex(out.sizes(), [&](const std::vector<int64_t> &i) {
    auto at = [&](const Tensor &t) {
      std::vector<int64_t> j;
      for (int64_t d = 0; d < t.dim(); ++d) {
        int64_t k = i[i.size() - t.dim() + d];
        j.push_back(t.size(d) == 1 ? 0 : k);
      }
      return readAt(t, j);
    };
    ASSERT_EQ(readAt(out, i), rounded(out.dtype(), at(a) + 2 * at(b)));
  });
}

TEST(Elementwise, LayoutsAndShapes) {
  std::vector<std::vector<int64_t>> shapes = {{},        {0},       {1},        {7},       {40},  {3, 5},
                                              {4, 1, 6}, {33, 300}, {2, 3, 64}, {1500, 9}, {5000}};
  for (auto &shape : shapes)
    for (Layout la : kLayouts)
      for (Layout lb : kLayouts)
        for (Layout lo : kLayouts) {
          Tensor a = random(shape, DType::F32, -8, 8, 1, la), b = random(shape, DType::F32, -8, 8, 2, lb);
          Tensor out = add(a, b, 2, make(shape, DType::F32, lo));
          forEachIndex(shape, [&](const auto &i) {
            ASSERT_EQ(static_cast<float>(readAt(out, i)),
                      static_cast<float>(readAt(a, i)) + 2 * static_cast<float>(readAt(b, i)));
          });
        }
}

TEST(Elementwise, Broadcasts) {
  std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> pairs = {
      {{4, 5}, {5}},    {{4, 5}, {4, 1}},       {{5}, {4, 1}},       {{200, 300}, {300}}, {{200, 300}, {200, 1}},
      {{2000, 3}, {3}}, {{3, 16, 64}, {16, 1}}, {{6, 1, 4}, {5, 1}}, {{3, 4}, {}},        {{0, 4}, {4}},
      {{1}, {0}}};
  for (auto &[sa, sb] : pairs) {
    Sizes so;
    size_t rank = std::max(sa.size(), sb.size());
    for (size_t d = 0; d < rank; ++d) {
      int64_t x = d + sa.size() < rank ? 1 : sa[d + sa.size() - rank],
              y = d + sb.size() < rank ? 1 : sb[d + sb.size() - rank];
      so.push_back(x == 1 ? y : x);
    }
    for (Layout l : kLayouts) {
      Tensor a = random(sa, DType::I32, -100, 100, 1, l), b = random(sb, DType::I32, -100, 100, 2);
      checkAdd(a, b, add(a, b, 2, make(so, DType::I32)));
      checkAdd(a, b, add(a, b, 2, make(so, DType::I32, l)));
    }
  }
}

TEST(Elementwise, MixedDTypesAreExact) {
  for (int x = 0; x < kNumDTypes; ++x)
    for (int y = 0; y < kNumDTypes; ++y) {
      DType dx = static_cast<DType>(x), dy = static_cast<DType>(y), result = promoteTypes(dx, dy);
      if (result == DType::Bool)
        continue;
      for (int64_t n : {1, 5, 33, 1030}) {
        Tensor a = random({n}, dx, 0, 20, 3), b = random({n}, dy, 0, 20, 4);
        // fractions would make f16 round differently in the reference
        forEachIndex(a.sizes(), [&](const auto &i) {
          writeAt(a, i, std::floor(readAt(a, i))), writeAt(b, i, std::floor(readAt(b, i)));
        });
        checkAdd(a, b, add(a, b, 2, make({n}, result)));
      }
    }
}

TEST(Elementwise, InPlaceAndNarrowOutput) {
  Tensor a = random({3000}, DType::F32, -8, 8), b = random({3000}, DType::F64, -8, 8, 2);
  auto before = values(a);
  add(a, b, 1, a);
  for (int64_t i = 0; i < 3000; ++i) {
    float y = static_cast<float>(readAt(b, {i})); // b only promotes among equals: both have dimensions, so f64
    (void)y;
    ASSERT_EQ(readAt(a, {i}), static_cast<float>(before[i] + readAt(b, {i})));
  }
}

TEST(Elementwise, IntegersWrapInTheirWidth) {
  Tensor a = from({200, 100}, DType::U8);
  EXPECT_EQ(values(add(a, a, 1, make({2}, DType::U8))), (std::vector<double>{144, 200}));
  Tensor b = from({1 << 30, 2147483647.0}, DType::I32);
  EXPECT_EQ(values(add(b, b, 1, make({2}, DType::I32))), (std::vector<double>{-2147483648.0, -2}));
}

TEST(Elementwise, ComparisonsAndWhere) {
  for (int64_t n = 0; n < 41; ++n)
    for (DType t : {DType::F32, DType::I8, DType::U8, DType::F16, DType::I64}) {
      Tensor a = random({n}, t, 0, 9, 1), b = random({n}, t, 0, 9, 2), mask = make({n}, DType::Bool),
             out = make({n}, t);
      Operands lt("lt", Promotion::ToBool);
      lt.tensor(a);
      lt.tensor(b);
      run<LtFn>(lt, Span<Tensor>(&mask, 1));
      Operands w("where", Promotion::Arith);
      w.boolTensor(mask);
      w.tensor(a);
      w.tensor(b);
      run<WhereFn>(w, Span<Tensor>(&out, 1));
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(readAt(mask, {i}), readAt(a, {i}) < readAt(b, {i}));
        ASSERT_EQ(readAt(out, {i}), std::min(readAt(a, {i}), readAt(b, {i})));
      }
    }
}

TEST(Elementwise, WrappedNumbersKeepTheDType) {
  Operands in("add", Promotion::Arith);
  Tensor half = make({2}, DType::F16), ints = make({2}, DType::I32), two(Number(2.5)), three(Number(3));
  in.tensor(half);
  in.tensor(two);
  EXPECT_EQ(in.promoted(), DType::F16);
  Operands mixed("add", Promotion::Arith);
  mixed.tensor(ints);
  mixed.tensor(two);
  EXPECT_EQ(mixed.promoted(), defaultDType());
  Operands whole("add", Promotion::Arith);
  whole.tensor(ints);
  whole.tensor(three);
  EXPECT_EQ(whole.promoted(), DType::I32);
}

TEST(Elementwise, DivisionFaultsAreErrors) {
  Tensor a = from({5, 0}, DType::I32), b = from({2, 0}, DType::I32), out = make({2}, DType::I32);
  Operands in("floor_divide", Promotion::Arith);
  in.tensor(a);
  in.tensor(b);
  try {
    run<FloorDivFn>(in, Span<Tensor>(&out, 1));
    FAIL();
  } catch (const Error &e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
  }
}

TEST(Elementwise, SameOnAnyNumberOfThreads) {
  Tensor a = random({70000, 3}, DType::F32, -8, 8), b = random({3}, DType::F32, -8, 8);
  setNumThreads(1);
  auto one = values(add(a, b, 3, make({70000, 3}, DType::F32)));
  setNumThreads(4);
  EXPECT_EQ(one, values(add(a, b, 3, make({70000, 3}, DType::F32))));
  setNumThreads(2);
}

} // namespace
