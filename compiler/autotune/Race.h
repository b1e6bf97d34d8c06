// The measuring protocol: which of several ways of doing the same thing is reliably faster than the default. Knows
// nothing of kernels, so that it can be tested with planted times and a clock of its own.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

namespace dlc::compiler {

/// How candidates are raced. Candidate 0 is the default.
struct RaceRules {
  double gain = 0.03;       ///< what a candidate must save to win a round
  double winShare = 0.7;    ///< of the rounds of a final that it must win
  int finalRounds = 10;     ///< rounds of a final
  int firstRounds = 2;      ///< rounds before the first halving; each stage has twice as many as the one before
  double canarySlack = 0.1; ///< a round counts only if the canary is at most this far above its best
  int maxDropped = 60;      ///< rounds that the canary may drop in a race
};

struct RaceResult {
  size_t winner = 0;        ///< 0 unless a candidate won both finals
  bool decided = false;     ///< false: the deadline came first, or the machine was too busy
  int measurements = 0;     ///< samples taken
  std::vector<double> best; ///< of each candidate, seconds; infinite if it was not measured
};

/// Interleaved rounds A B C A B C, of which the slower half drops out at a time; the last one meets the default in two
/// finals of paired rounds, and has to win both: noise that helps it once does not help it twice.
class Race {
public:
  /// `sample(i)` runs candidate i once and gives seconds; `now` is the clock of the deadline; `canary`, if given, takes
  /// a piece of work that always costs the same.
  Race(std::function<double(size_t)> sample, std::function<double()> now, std::function<double()> canary = {},
       RaceRules rules = {})
      : sample_(std::move(sample)), now_(std::move(now)), canary_(std::move(canary)), rules_(rules) {}

  /// Races candidates 0..n-1 until there is a winner or the clock says `deadline`.
  RaceResult run(size_t n, double deadline);

private:
  bool round(const std::vector<size_t> &who, std::vector<double> &times);
  bool winsFinal(size_t challenger);

  std::function<double(size_t)> sample_;
  std::function<double()> now_, canary_;
  RaceRules rules_;
  RaceResult result_;
  double deadline_ = 0, bestCanary_ = 1e30;
  int dropped_ = 0;
  bool late_ = false;
};

} // namespace dlc::compiler
