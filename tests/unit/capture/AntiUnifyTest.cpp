// Generalising from two recordings: what is lifted, what is shared, what stays constant.
#include "frontend/compile/Skeleton.h"
#include <gtest/gtest.h>

using namespace dlc;

namespace {

TEST(AntiUnify, WhatAgreesStaysConstant) {
  Lifting l = antiUnify({{8, 16, 3}, {9, 16, 3}}, 3);
  ASSERT_EQ(l.positions.size(), 1u);
  EXPECT_EQ(str(l.forms[0]), "s0");
  EXPECT_TRUE(l.forms[1].isConst());
}

TEST(AntiUnify, EqualColumnsShareASymbol) {
  Lifting l = antiUnify({{8, 8, 5}, {9, 9, 5}}, 2);
  EXPECT_EQ(l.positions.size(), 1u);
  EXPECT_TRUE(l.forms[0].same(l.forms[1]));
  EXPECT_FALSE(l.matches({8, 9, 5}, l.symbols({8, 9, 5})));
  EXPECT_TRUE(l.matches({7, 7, 5}, l.symbols({7, 7, 5})));
}

TEST(AntiUnify, ArgumentsBecomeExpressionsOfInputs) {
  // batch, length; then arguments batch*length, 4*batch, length - 1.
  Lifting l = antiUnify({{8, 16, 128, 32, 15}, {6, 10, 60, 24, 9}}, 2);
  ASSERT_EQ(l.positions.size(), 2u);
  EXPECT_EQ(str(l.forms[2]), "s0*s1");
  EXPECT_EQ(str(l.forms[3]), "4*s0");
  EXPECT_EQ(str(l.forms[4]), "s1 - 1");
  std::vector<int64_t> other{3, 7, 21, 12, 6};
  EXPECT_TRUE(l.matches(other, l.symbols(other)));
}

TEST(AntiUnify, InputsNeverBecomeMultiplesOfEachOther) {
  Lifting l = antiUnify({{4, 8}, {8, 16}}, 2);
  EXPECT_EQ(l.positions.size(), 2u);
}

TEST(AntiUnify, PinnedColumnsStayConstant) {
  Lifting l = antiUnify({{4, 8, 4}, {1, 9, 1}}, 2, {{4, 1}});
  ASSERT_EQ(l.positions.size(), 1u);
  EXPECT_TRUE(l.forms[0].same(1));
  EXPECT_TRUE(l.forms[2].same(1));
}

TEST(AntiUnify, AFactMayFixASymbol) {
  Dim s0 = Dim::symbol(0, 3), s1 = Dim::symbol(1, 4);
  EXPECT_EQ(symbolFixedBy({Fact::Kind::EqZero, (s0 - Dim(3)).expr()}), 0);
  EXPECT_EQ(symbolFixedBy({Fact::Kind::EqZero, (s0 - s1 + Dim(1)).expr()}), -1);
  EXPECT_EQ(symbolFixedBy({Fact::Kind::EqZero, (s0 * s1 - Dim(12)).expr()}), -1);
  EXPECT_EQ(symbolFixedBy({Fact::Kind::NeZero, (s0 - Dim(1)).expr()}), -1);
}

TEST(AntiUnify, AThirdSampleRefutesACoincidence) {
  std::vector<std::vector<int64_t>> samples{{4, 8}, {8, 16}, {5, 9}};
  Lifting l = antiUnify(samples, 1);
  EXPECT_EQ(l.positions.size(), 2u);
}

} // namespace
