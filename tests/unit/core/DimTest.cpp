// Concolic sizes: canonical expressions, facts, evaluation.
#include "runtime/core/Dim.h"
#include <gtest/gtest.h>

using namespace dlc;

namespace {

const Dim s0 = Dim::symbol(0, 8), s1 = Dim::symbol(1, 5);

TEST(Dim, EqualExpressionsAreOneObject) {
  EXPECT_TRUE((s0 + s1).same(s1 + s0));
  EXPECT_TRUE((s0 * (s1 + Dim(2))).same(s1 * s0 + Dim(2) * s0));
  EXPECT_TRUE((s0 - s0).same(Dim(0)));
  EXPECT_FALSE((s0 + Dim(1)).same(s0));
  EXPECT_EQ(str(s0 * s1 + Dim(2)), "s0*s1 + 2");
}

TEST(Dim, ExactDivisionSimplifies) {
  EXPECT_TRUE(floorDiv(s0 * s1 * Dim(6), s1 * Dim(2)).same(s0 * Dim(3)));
  EXPECT_TRUE(floorMod(s0 * Dim(4), Dim(2)).same(Dim(0)));
  EXPECT_FALSE(floorDiv(s0, Dim(2)).isConst());
  EXPECT_EQ(floorDiv(s0, Dim(3)).value(), 2);
}

TEST(Dim, ConstantsRecordNoFacts) {
  FactSink sink;
  EXPECT_TRUE(Dim(3) == Dim(3));
  EXPECT_TRUE(Dim(3) < Dim(4));
  EXPECT_TRUE(s0 == s0);
  EXPECT_TRUE(sink.take().empty());
}

TEST(Dim, DecisionsBecomeFacts) {
  FactSink sink;
  EXPECT_FALSE(s0 == Dim(1));
  EXPECT_TRUE(Dim(2) < s0);
  EXPECT_TRUE(maxDim(s0, s1).same(s0));
  std::vector<Fact> facts = sink.take();
  ASSERT_EQ(facts.size(), 3u);
  for (const Fact &f : facts)
    EXPECT_TRUE(holds(f, {8, 5})) << str(f);
  EXPECT_FALSE(holds(facts[0], {1, 5}));
  EXPECT_FALSE(holds(facts[1], {2, 5}));
  EXPECT_FALSE(holds(facts[2], {5, 6}));
}

TEST(Dim, EvaluationFollowsPythonsFloorDivision) {
  Dim half = floorDiv(s0 - Dim(9), Dim(2)), rest = floorMod(s0 - Dim(9), Dim(2));
  EXPECT_EQ(half.value(), -1);
  EXPECT_EQ(evaluate(half, {4, 0}), -3);
  EXPECT_EQ(evaluate(rest, {4, 0}), 1);
}

TEST(Dim, OverflowIsAnError) {
  Dim square = s0 * s0;
  EXPECT_THROW(evaluate(square, {int64_t(1) << 40, 0}), Error);
}

} // namespace
