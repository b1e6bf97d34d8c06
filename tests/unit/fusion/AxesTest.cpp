// Loop axes: reshapes regroup digits, equality is that of expressions, what no split expresses is refused.
#include "compiler/fusion/Axes.h"
#include <gtest/gtest.h>

using namespace dlc;
using namespace dlc::compiler;

namespace {

struct Fixture {
  AxisTable table;
  AxisList axes(std::initializer_list<Dim> sizes) {
    AxisList out;
    for (const Dim &d : sizes)
      out.push_back(table.add(d));
    return out;
  }
  std::vector<int64_t> sizes(const AxisList &list) {
    std::vector<int64_t> out;
    for (AxisId a : table.leaves(list))
      out.push_back(table.size(a).value());
    return out;
  }
};

TEST(Axes, MergedDimIsSplit) {
  Fixture f;
  AxisList flat = f.axes({24, 5}), full = f.axes({4, 6, 5});
  ASSERT_TRUE(f.table.unify(flat, full));
  EXPECT_EQ(f.sizes(flat), (std::vector<int64_t>{4, 6, 5}));
  EXPECT_EQ(f.table.leaves(flat), f.table.leaves(full));
}

TEST(Axes, SizeOneHasNoLoop) {
  Fixture f;
  AxisList a = f.axes({1, 7, 1}), b = f.axes({7});
  ASSERT_TRUE(f.table.unify(a, b));
  EXPECT_EQ(f.sizes(a), (std::vector<int64_t>{7}));
}

TEST(Axes, SplitsOnBothSides) {
  Fixture f;
  AxisList a = f.axes({4, 6}), b = f.axes({2, 12});
  ASSERT_TRUE(f.table.unify(a, b));
  EXPECT_EQ(f.sizes(a), (std::vector<int64_t>{2, 2, 6}));
  EXPECT_EQ(f.table.leaves(a), f.table.leaves(b));
}

TEST(Axes, RegroupingThatNoSplitExpressesIsRefused) {
  Fixture f;
  EXPECT_FALSE(f.table.unify(f.axes({6, 4}), f.axes({8, 3})));
  EXPECT_FALSE(f.table.unify(f.axes({6, 4}), f.axes({6, 5})));
}

TEST(Axes, SymbolsAreEqualByExpressionNotByValue) {
  Fixture f;
  Dim s0 = Dim::symbol(0, 6), s1 = Dim::symbol(1, 6);
  EXPECT_TRUE(f.table.unify(f.axes({s0 * 2}), f.axes({s0 + s0})));
  EXPECT_FALSE(f.table.unify(f.axes({s0}), f.axes({s1})));
  EXPECT_FALSE(f.table.unify(f.axes({s0}), f.axes({6})));
}

TEST(Axes, SymbolicMergesSplit) {
  Fixture f;
  Dim b = Dim::symbol(0, 3), t = Dim::symbol(1, 5);
  AxisList flat = f.axes({b * t, 8}), full = f.axes({b, t, 2, 4});
  ASSERT_TRUE(f.table.unify(flat, full));
  EXPECT_EQ(f.sizes(flat), (std::vector<int64_t>{3, 5, 2, 4}));
}

TEST(Axes, LaterSplitReachesAllUsers) {
  Fixture f;
  AxisList a = f.axes({12}), b = f.axes({12}), c = f.axes({3, 4});
  ASSERT_TRUE(f.table.unify(a, b));
  ASSERT_TRUE(f.table.unify(b, c));
  EXPECT_EQ(f.sizes(a), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(f.table.leaves(a), f.table.leaves(c));
}

TEST(Axes, ExactDivision) {
  Dim q, s = Dim::symbol(0, 4);
  EXPECT_TRUE(divides(s * 6, Dim(3), q));
  EXPECT_TRUE(q.same(s * 2));
  EXPECT_FALSE(divides(s, Dim(2), q)) << "4 is divisible, s0 is not";
  EXPECT_FALSE(divides(Dim(7), Dim(2), q));
  EXPECT_FALSE(divides(Dim(7), Dim(0), q));
}

} // namespace
