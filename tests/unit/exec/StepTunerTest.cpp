// The choice between one thread and all, from made-up times.
#include "runtime/exec/StepTuner.h"
#include <gtest/gtest.h>

using namespace dlc;

namespace {

/// Runs until the tuner is done: step i takes serial[i] or parallel[i], and `penalty` more for each change of side.
void tune(StepTuner &t, int threads, std::vector<double> serial, std::vector<double> parallel, double penalty) {
  for (int run = 0; run < 100 && !t.done(threads); ++run) {
    ASSERT_TRUE(t.begin(threads));
    double total = 0;
    for (size_t i = 0; i < serial.size(); ++i) {
      bool alone = t.runSerial(i);
      double took = alone ? serial[i] : parallel[i];
      if (t.timesSteps())
        t.stepTook(i, took);
      total += took + (i && alone != t.runSerial(i - 1) ? penalty : 0);
    }
    t.finish(total);
  }
  ASSERT_TRUE(t.done(threads));
}

TEST(StepTuner, EachStepAsItIsFaster) {
  StepTuner t(3);
  tune(t, 2, {1, 4, 1}, {3, 2, 2}, 0);
  EXPECT_TRUE(t.serial(0));
  EXPECT_FALSE(t.serial(1));
  EXPECT_TRUE(t.serial(2));
}

TEST(StepTuner, TheWholeDecidesWhenStepsShareCaches) {
  StepTuner t(3);
  tune(t, 2, {1, 4, 1}, {3, 2, 2}, 10);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(t.serial(i)) << i; // 6 in all, against 7 in parallel and 24 mixed
}

TEST(StepTuner, AnotherThreadCountIsMeasuredAnew) {
  StepTuner t(1);
  tune(t, 2, {1}, {2}, 0);
  EXPECT_TRUE(t.serial(0));
  EXPECT_FALSE(t.done(4));
  tune(t, 4, {1}, {0.5}, 0);
  EXPECT_FALSE(t.serial(0));
}

TEST(StepTuner, ADisturbedMomentDoesNotStick) {
  StepTuner t(2);
  tune(t, 2, {1, 1}, {5, 5}, 0); // the other core was busy
  EXPECT_TRUE(t.serial(0));
  int runs = 0;
  while (t.done(2))
    ASSERT_LT(++runs, 1000);
  EXPECT_GT(runs, 100);
  tune(t, 2, {1, 1}, {0.5, 3}, 0);
  EXPECT_FALSE(t.serial(0));
  EXPECT_TRUE(t.serial(1));
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(t.done(2)) << "the pause did not grow";
}

TEST(StepTuner, OneRunMeasuresAtATimeAndFailedOnesDoNotCount) {
  StepTuner t(1);
  ASSERT_TRUE(t.begin(2));
  EXPECT_FALSE(t.begin(2));
  t.finish(-1);
  tune(t, 2, {1}, {2}, 0);
  EXPECT_TRUE(t.serial(0));
}

} // namespace
