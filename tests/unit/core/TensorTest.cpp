// Layout queries, promotion, overlap.
#include "runtime/core/Tensor.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace dlc;

namespace {

Tensor viewOf(const Tensor &base, Sizes sizes, Sizes strides, int64_t offset) {
  return Tensor::viewOf(base.storageRef(), sizes, strides, offset, base.dtype());
}

TEST(Tensor, ContiguityIgnoresStridesOfSizeOne) {
  Tensor t = Tensor::empty({4, 6}, DType::F32);
  EXPECT_TRUE(t.isContiguous());
  EXPECT_TRUE(viewOf(t, {1, 6}, {99, 1}, 0).isContiguous());
  EXPECT_FALSE(viewOf(t, {6, 4}, {1, 6}, 0).isContiguous());
  EXPECT_TRUE(viewOf(t, {0, 4}, {7, 7}, 0).isContiguous());
}

TEST(Tensor, OverlapWithinAView) {
  Tensor t = Tensor::empty({12}, DType::F32);
  EXPECT_TRUE(viewOf(t, {3, 4}, {4, 1}, 0).isNonOverlapping());
  EXPECT_TRUE(viewOf(t, {4, 3}, {1, 4}, 0).isNonOverlapping());
  EXPECT_FALSE(viewOf(t, {3, 4}, {0, 1}, 0).isNonOverlapping());
  EXPECT_FALSE(viewOf(t, {3, 4}, {2, 1}, 0).isNonOverlapping());
}

TEST(Tensor, OverlapBetweenViews) {
  Tensor t = Tensor::empty({12}, DType::F32), u = Tensor::empty({12}, DType::F32);
  EXPECT_TRUE(mayOverlap(viewOf(t, {4}, {1}, 0), viewOf(t, {4}, {1}, 2)));
  EXPECT_FALSE(mayOverlap(viewOf(t, {4}, {1}, 0), viewOf(t, {4}, {1}, 4)));
  EXPECT_FALSE(mayOverlap(t, u));
}

TEST(Tensor, AFloatOperandKeepsItsBits) {
  Tensor t{Number(0.1)};
  EXPECT_TRUE(t.isWrapped());
  EXPECT_EQ(t.item().toDouble(), 0.1);
  EXPECT_EQ(Tensor(Number(true)).dtype(), DType::Bool);
}

TEST(Tensor, HugeSizesAreErrors) {
  EXPECT_THROW(Tensor::empty({int64_t(1) << 40, int64_t(1) << 40}, DType::F32), Error);
  EXPECT_THROW(Tensor::empty({int64_t(1) << 50}, DType::F32), Error);
  EXPECT_THROW(Tensor::empty({-1}, DType::F32), Error);
}

TEST(DType, PromotionIsPyTorchs) {
  EXPECT_EQ(promoteTypes(DType::U8, DType::I8), DType::I16);
  EXPECT_EQ(promoteTypes(DType::U8, DType::I32), DType::I32);
  EXPECT_EQ(promoteTypes(DType::F16, DType::BF16), DType::F32);
  EXPECT_EQ(promoteTypes(DType::I64, DType::F16), DType::F16);
  EXPECT_EQ(promoteTypes(DType::Bool, DType::U8), DType::U8);
  for (int a = 0; a < kNumDTypes; ++a)
    for (int b = 0; b < kNumDTypes; ++b)
      EXPECT_EQ(promoteTypes(DType(a), DType(b)), promoteTypes(DType(b), DType(a)));
}

TEST(Half, RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(float(BFloat16(0.1f)), 0.10009765625f);
  EXPECT_EQ(float(BFloat16(3.14159f)), 3.140625f);
  EXPECT_TRUE(std::isnan(float(BFloat16(std::nanf("")))));
  EXPECT_TRUE(std::isinf(float(BFloat16(3.4e38f))));
  EXPECT_EQ(float(Half(65504.f)), 65504.f);
  EXPECT_TRUE(std::isinf(float(Half(65520.f))));
}

} // namespace
