// The measuring protocol under a clock of its own: what is really faster wins, noise and luck do not, and no sample is
// taken after the deadline.
#include "compiler/autotune/Race.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <random>

using namespace dlc::compiler;

namespace {

/// Candidates of planted times on a machine with noise. Sampling one moves the clock.
struct Machine {
  std::vector<double> seconds;
  double noise = 0; ///< of each sample, up to
  std::mt19937 random{7};
  double time = 0;
  std::vector<int> samples;

  explicit Machine(std::vector<double> s, double n = 0) : seconds(std::move(s)), noise(n), samples(seconds.size()) {}
  double sample(size_t i) {
    ++samples[i];
    double t = seconds[i] * (1 + noise * std::generate_canonical<double, 32>(random));
    time += t;
    return t;
  }
  RaceResult race(double deadline, RaceRules rules = {}) {
    return Race([this](size_t i) { return sample(i); }, [this] { return time; }, {}, rules)
        .run(seconds.size(), deadline);
  }
  int total() const {
    int n = 0;
    for (int s : samples)
      n += s;
    return n;
  }
};

TEST(Race, ASlowDefaultIsBeaten) {
  for (size_t fast = 1; fast < 8; ++fast) {
    std::vector<double> seconds(8, 1e-4);
    seconds[fast] = 0.8e-4;
    RaceResult r = Machine(seconds, 0.05).race(1e9);
    EXPECT_TRUE(r.decided);
    EXPECT_EQ(r.winner, fast);
  }
}

TEST(Race, ASlowCandidateIsNeverChosen) {
  // Under noise ten times what it would have to save, and in many races.
  int chosen = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Machine m({1e-4, 1.05e-4, 1.3e-4, 1.02e-4, 2e-4}, 0.3);
    m.random.seed(seed);
    chosen += m.race(1e9).winner != 0;
  }
  EXPECT_EQ(chosen, 0);
}

TEST(Race, EqualCandidatesKeepTheDefault) {
  int chosen = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Machine m(std::vector<double>(9, 1e-4), 0.05);
    m.random.seed(seed);
    chosen += m.race(1e9).winner != 0;
  }
  EXPECT_LE(chosen, 2);
}

TEST(Race, AGainBelowTheThresholdIsNotTaken) {
  RaceResult r = Machine({1e-4, 0.985e-4}).race(1e9);
  EXPECT_TRUE(r.decided);
  EXPECT_EQ(r.winner, 0u);
  EXPECT_EQ(Machine({1e-4, 0.96e-4}).race(1e9).winner, 1u);
}

TEST(Race, OneLuckyFinalIsNotEnough) {
  // Fast while it is compared the first time, slow from then on: as code is whose data happened to be in the cache.
  int n = 0;
  double time = 0;
  Race race(
      [&](size_t i) {
        double t = i == 0 ? 1e-4 : n++ < 10 ? 0.5e-4 : 1.5e-4;
        time += t;
        return t;
      },
      [&] { return time; });
  RaceResult r = race.run(2, 1e9);
  EXPECT_TRUE(r.decided);
  EXPECT_EQ(r.winner, 0u);
}

TEST(Race, NothingIsMeasuredAfterTheDeadline) {
  for (double budget : {0.0, 5.5, 20.5, 60.5, 1e9}) {
    Machine m(std::vector<double>(9, 1.0), 0);
    m.seconds[4] = 0.5;
    RaceResult r = m.race(budget);
    EXPECT_EQ(r.measurements, m.total());
    EXPECT_LE(m.time, budget + 1.0) << "the sample that the deadline fell into is the last";
    EXPECT_EQ(r.decided, budget > 1e6);
    EXPECT_EQ(r.winner, budget > 1e6 ? 4u : 0u) << "the default, without a decision";
    if (budget == 0)
      EXPECT_EQ(r.measurements, 0);
  }
}

TEST(Race, MostSamplesGoToTheBestHalf) {
  Machine m({1, 9, 8, 7, 6, 5, 4, 0.5, 3});
  EXPECT_EQ(m.race(1e9).winner, 7u);
  for (size_t slow = 1; slow < 7; ++slow)
    EXPECT_LE(m.samples[slow], m.samples[7] / 3) << slow;
  EXPECT_GE(m.samples[0], m.samples[7]) << "the default is in every round";
}

TEST(Race, RoundsOfABusyMachineDoNotCount) {
  // The canary says when others use the core; just then the default looks slow.
  Machine m({1e-4, 1e-4});
  int n = 0;
  bool busy = false;
  auto canary = [&] {
    busy = n++ % 5 >= 3;
    return busy ? 2e-5 : 1e-5;
  };
  auto sample = [&](size_t i) { return m.sample(i) * (busy && i == 0 ? 3 : 1); };
  RaceResult r = Race(sample, [&] { return m.time; }, canary).run(2, 1e9);
  EXPECT_EQ(r.winner, 0u);
  // Never quiet: no decision, and an end.
  auto never = [&, k = 0]() mutable { return k++ ? 2e-5 : 1e-5; };
  r = Race([&](size_t i) { return m.sample(i); }, [&] { return m.time; }, never).run(2, 1e9);
  EXPECT_FALSE(r.decided);
  EXPECT_EQ(r.winner, 0u);
  EXPECT_LE(r.measurements, 200);
}

TEST(Race, OneCandidateNeedsNoMeasuring) {
  Machine m({1.0});
  RaceResult r = m.race(1e9);
  EXPECT_TRUE(r.decided);
  EXPECT_EQ(m.total(), 0);
}

} // namespace
