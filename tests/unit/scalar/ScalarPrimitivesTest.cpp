// Semantics of the scalar primitives on every kind: Python's division, wrapping, shifts, casts, NaN
// rules, random bits.
#include "runtime/scalar/NativeBuilder.h"
#include "runtime/scalar/Primitives.h"

#include <gtest/gtest.h>
#include <set>

namespace s = dlc::scalar;
using s::Kind;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Scalar : testing::Test {
  s::NativeBuilder b;
};

TEST_F(Scalar, FloorDivisionOfIntsRoundsDown) {
  for (int32_t x = -7; x <= 7; ++x)
    for (int32_t y : {-3, -2, -1, 1, 2, 3}) {
      int32_t want = static_cast<int32_t>(std::floor(static_cast<double>(x) / y));
      EXPECT_EQ(s::floor_div_(b, x, y), want) << x << " // " << y;
      EXPECT_EQ(s::remainder_(b, x, y), x - want * y) << x << " % " << y;
      EXPECT_EQ(s::trunc_div_(b, x, y), x / y);
      EXPECT_EQ(s::fmod_(b, x, y), x % y);
    }
  EXPECT_EQ(s::floor_div_(b, uint8_t(200), uint8_t(7)), 28);
  EXPECT_EQ(s::remainder_(b, uint8_t(200), uint8_t(255)), 200);
  EXPECT_EQ(b.fault, 0);
}

TEST_F(Scalar, MostNegativeDividedByMinusOneWraps) {
  EXPECT_EQ(s::floor_div_(b, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(s::trunc_div_(b, INT64_MIN, int64_t(-1)), INT64_MIN);
  EXPECT_EQ(s::floor_div_(b, int8_t(-128), int8_t(-1)), -128);
  EXPECT_EQ(s::remainder_(b, INT32_MIN, -1), 0);
  EXPECT_EQ(s::neg_(b, INT32_MIN), INT32_MIN);
  EXPECT_EQ(s::abs_(b, INT64_MIN), INT64_MIN);
  EXPECT_EQ(b.fault, 0);
}

TEST_F(Scalar, IntDivisionByZeroRaises) {
  s::floor_div_(b, 5, 0);
  EXPECT_EQ(b.fault, static_cast<int64_t>(s::Fault::DivisionByZero));
  for (auto f : {+[](s::NativeBuilder &c) { s::remainder_(c, int64_t(5), int64_t(0)); },
                 +[](s::NativeBuilder &c) { s::trunc_div_(c, uint8_t(5), uint8_t(0)); },
                 +[](s::NativeBuilder &c) { s::fmod_(c, int16_t(5), int16_t(0)); }}) {
    s::NativeBuilder fresh;
    f(fresh);
    EXPECT_EQ(fresh.fault, 1);
  }
}

TEST_F(Scalar, FloatFloorDivisionIsPythons) {
  EXPECT_EQ(s::floor_div_(b, 6.0, 0.1), 59.0);
  EXPECT_EQ(s::floor_div_(b, -7.0f, 2.0f), -4.0f);
  EXPECT_EQ(s::floor_div_(b, 7.0f, -2.0f), -4.0f);
  EXPECT_EQ(s::floor_div_(b, 1.0f, 0.0f), kInf);
  EXPECT_TRUE(std::isnan(s::floor_div_(b, 0.0f, 0.0f)));
  EXPECT_TRUE(std::signbit(s::floor_div_(b, -0.0f, 3.0f)));
  EXPECT_EQ(s::remainder_(b, -7.0f, 3.0f), 2.0f);
  EXPECT_EQ(s::remainder_(b, 7.0, -3.0), -2.0);
  EXPECT_EQ(s::fmod_(b, -7.0f, 3.0f), -1.0f);
  EXPECT_TRUE(std::isnan(s::remainder_(b, 1.0f, 0.0f)));
  EXPECT_EQ(b.fault, 0);
}

TEST_F(Scalar, MaxAndMinPropagateNanFromEitherSide) {
  EXPECT_TRUE(std::isnan(s::max_(b, kNan, 1.0f)));
  EXPECT_TRUE(std::isnan(s::max_(b, 1.0f, kNan)));
  EXPECT_TRUE(std::isnan(s::min_(b, double(kNan), 1.0)));
  EXPECT_TRUE(std::isnan(s::min_(b, 1.0, double(kNan))));
  EXPECT_EQ(s::fmax_(b, kNan, 1.0f), 1.0f);
  EXPECT_EQ(s::fmin_(b, 1.0f, kNan), 1.0f);
  EXPECT_EQ(s::max_(b, uint8_t(200), uint8_t(100)), 200);
  EXPECT_EQ(s::min_(b, int8_t(-56), int8_t(100)), -56);
  EXPECT_TRUE(std::isnan(s::relu_(b, kNan)));
  EXPECT_TRUE(std::isnan(s::clamp_(b, 1.0f, kNan, 2.0f)));
}

TEST_F(Scalar, FloatToIntFollowsOneRule) {
  EXPECT_EQ(s::castTo<Kind::U8>(b, -1.0f), 255);
  EXPECT_EQ(s::castTo<Kind::U8>(b, -2.5f), 254);
  EXPECT_EQ(s::castTo<Kind::U8>(b, 300.0f), 44);
  EXPECT_EQ(s::castTo<Kind::I32>(b, 3e9f), INT32_MIN);
  EXPECT_EQ(s::castTo<Kind::I32>(b, kNan), INT32_MIN);
  EXPECT_EQ(s::castTo<Kind::I32>(b, -2147483648.5), INT32_MIN);
  EXPECT_EQ(s::castTo<Kind::I32>(b, 2147483647.5), INT32_MAX);
  EXPECT_EQ(s::castTo<Kind::I64>(b, 3e9f), 3000000000);
  EXPECT_EQ(s::castTo<Kind::I64>(b, kInf), INT64_MIN);
  EXPECT_EQ(s::castTo<Kind::I64>(b, double(kNan)), INT64_MIN);
  EXPECT_EQ(s::castTo<Kind::I16>(b, kNan), 0);
  EXPECT_EQ(s::castTo<Kind::I8>(b, 1e20), 0);
}

TEST_F(Scalar, OtherCasts) {
  EXPECT_EQ(s::castTo<Kind::Bool>(b, kNan), true);
  EXPECT_EQ(s::castTo<Kind::Bool>(b, -0.0), false);
  EXPECT_EQ(s::castTo<Kind::I8>(b, int64_t(300)), 44);
  EXPECT_EQ(s::castTo<Kind::U8>(b, -1), 255);
  EXPECT_EQ(s::castTo<Kind::F32>(b, int64_t(16777217)), 16777216.0f);
  EXPECT_EQ(s::castTo<Kind::F32>(b, uint8_t(255)), 255.0f);
  EXPECT_EQ(s::castTo<Kind::I64>(b, true), 1);
  EXPECT_EQ(s::f32ToBf16Bits(b, 1.00390625f), 0x3f80); // a tie goes to even
  EXPECT_EQ(s::f32ToBf16Bits(b, 3.4e38f), 0x7f80);
  EXPECT_EQ(s::f32ToBf16Bits(b, std::copysign(kNan, 1.0f)), 0x7fc0);
  EXPECT_EQ(s::bf16BitsToF32(b, 0x3f80), 1.0f);
}

TEST_F(Scalar, IntPowerWrapsAndTruncates) {
  EXPECT_EQ(s::pow_(b, 3, 4), 81);
  EXPECT_EQ(s::pow_(b, int64_t(-2), int64_t(63)), INT64_MIN);
  EXPECT_EQ(s::pow_(b, uint8_t(3), uint8_t(6)), uint8_t(729));
  EXPECT_EQ(s::pow_(b, 2, -1), 0);
  EXPECT_EQ(s::pow_(b, -1, -3), -1);
  EXPECT_EQ(s::pow_(b, 0, 0), 1);
}

TEST_F(Scalar, ShiftsOutOfRange) {
  EXPECT_EQ(s::shl_(b, 1, 31), INT32_MIN);
  EXPECT_EQ(s::shl_(b, 1, 32), 0);
  EXPECT_EQ(s::shl_(b, 1, -1), 0);
  EXPECT_EQ(s::shr_(b, -8, 1), -4);
  EXPECT_EQ(s::shr_(b, -8, 40), -1);
  EXPECT_EQ(s::shr_(b, uint8_t(200), uint8_t(3)), 25);
  EXPECT_EQ(s::shr_(b, uint8_t(200), uint8_t(8)), 0);
}

TEST_F(Scalar, BoolArithmeticIsLogic) {
  EXPECT_EQ(s::add_(b, true, true), true);
  EXPECT_EQ(s::mul_(b, true, false), false);
  EXPECT_EQ(s::max_(b, false, true), true);
  EXPECT_EQ(s::not_(b, true), false);
  EXPECT_EQ(s::not_(b, uint8_t(1)), 254);
  EXPECT_EQ(s::logical_and_(b, 2.0f, 4.0f), true);
  EXPECT_EQ(s::logical_not_(b, kNan), false);
}

TEST_F(Scalar, RoundingAndSigns) {
  EXPECT_EQ(s::round_(b, 2.5f), 2.0f);
  EXPECT_EQ(s::round_(b, 3.5), 4.0);
  EXPECT_EQ(s::round_(b, 7), 7);
  EXPECT_EQ(s::sign_(b, -3.0f), -1.0f);
  EXPECT_EQ(s::sign_(b, uint8_t(3)), 1);
  EXPECT_FALSE(std::signbit(s::sign_(b, -0.0f)));
  EXPECT_TRUE(std::signbit(s::neg_(b, 0.0f)));
  EXPECT_TRUE(s::signbit_(b, -0.0));
  EXPECT_EQ(s::lerp_(b, 1.0f, 3.0f, 1.0f), 3.0f);
}

TEST_F(Scalar, ActivationsInTheTails) {
  EXPECT_EQ(s::softplus_(b, 30.0f, 1.0f, 20.0f), 30.0f);
  EXPECT_EQ(s::mish_(b, 100.0f), 100.0f);
  EXPECT_EQ(s::mish_(b, -200.0f), 0.0f);
  EXPECT_EQ(s::silu_(b, -200.0f), 0.0f);
  EXPECT_NEAR(s::log_sigmoid_(b, -100.0f), -100.0f, 1e-5);
  EXPECT_EQ(s::gelu_erf_(b, 10.0f), 10.0f);
  for (double x = -8; x < 8; x += 0.37)
    EXPECT_NEAR(s::mish_(b, static_cast<float>(x)), x * std::tanh(std::log1p(std::exp(x))), 1e-6);
}

// Known answers of Random123's philox4x32-10: all-zero input, and the digits of pi for counter (low
// half) and key.
TEST_F(Scalar, PhiloxKnownAnswer) {
  auto zero = s::philox(b, int64_t(0), int64_t(0));
  const int64_t want[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(zero.word[i], want[i]);
}

TEST_F(Scalar, RandomNumbersHaveTheirMoments) {
  double sum = 0, squares = 0, unit = 0;
  constexpr int64_t kCount = 100000;
  for (int64_t i = 0; i < kCount; ++i) {
    float u = s::philox_uniform_(b, int64_t(7), int64_t(0), i);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    unit += u;
    double z = s::philox_normal_(b, int64_t(7), int64_t(0), i);
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(unit / kCount, 0.5, 0.004);
  EXPECT_NEAR(sum / kCount, 0, 0.015);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
}

TEST(ScalarTable, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  s::forEachPrimitive([&](const auto &p) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_EQ(s::primitiveArity(p.name), p.kArity);
  });
  EXPECT_EQ(s::primitiveArity("exp_"), -1);
  EXPECT_EQ(s::primitiveResult("lt", Kind::F32), Kind::Bool);
  EXPECT_EQ(s::primitiveResult("to_i16", Kind::F32), Kind::I16);
  EXPECT_EQ(s::primitiveResult("exp", Kind::F64), Kind::F64);
}

} // namespace
