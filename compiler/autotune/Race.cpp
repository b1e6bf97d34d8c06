// Successive halving by minimum, then two finals.
#include "compiler/autotune/Race.h"
#include <algorithm>
#include <limits>
#include <numeric>

namespace dlc::compiler {

/// One sample of each; false if time is up. Rounds in which the machine was busy with others are repeated.
bool Race::round(const std::vector<size_t> &who, std::vector<double> &times) {
  for (;;) {
    bool quiet = true;
    times.assign(who.size(), 0);
    for (size_t k = 0; k < who.size(); ++k) {
      if (now_() >= deadline_ || dropped_ > rules_.maxDropped) {
        late_ = true;
        return false;
      }
      if (canary_) {
        double t = canary_();
        bestCanary_ = std::min(bestCanary_, t);
        quiet &= t <= bestCanary_ * (1 + rules_.canarySlack);
      }
      times[k] = sample_(who[k]);
      ++result_.measurements;
    }
    if (quiet)
      break;
    ++dropped_;
  }
  for (size_t k = 0; k < who.size(); ++k)
    result_.best[who[k]] = std::min(result_.best[who[k]], times[k]);
  return true;
}

/// Paired rounds against the default. Stops as soon as the outcome is clear.
bool Race::winsFinal(size_t challenger) {
  int needed = static_cast<int>(rules_.winShare * rules_.finalRounds + 0.999), wins = 0;
  std::vector<double> times;
  for (int i = 0; i < rules_.finalRounds; ++i) {
    // Who goes first alternates: what the first leaves in the caches serves the second.
    std::vector<size_t> who = i % 2 ? std::vector<size_t>{challenger, 0} : std::vector<size_t>{0, challenger};
    if (!round(who, times))
      return false;
    double base = times[i % 2 ? 1 : 0], other = times[i % 2 ? 0 : 1];
    wins += other <= base * (1 - rules_.gain);
    if (wins + rules_.finalRounds - 1 - i < needed)
      return false;
  }
  return wins >= needed;
}

RaceResult Race::run(size_t n, double deadline) {
  result_ = {};
  result_.best.assign(n, std::numeric_limits<double>::infinity());
  deadline_ = deadline;
  dropped_ = 0;
  late_ = false;
  std::vector<size_t> alive(n);
  std::iota(alive.begin(), alive.end(), size_t(0));
  auto faster = [&](size_t a, size_t b) {
    double ta = result_.best[a], tb = result_.best[b];
    return ta != tb ? ta < tb : a < b;
  };
  std::vector<double> times;
  for (int rounds = rules_.firstRounds; alive.size() > 2; rounds *= 2) {
    for (int i = 0; i < rounds; ++i)
      if (!round(alive, times))
        return result_;
    std::sort(alive.begin() + 1, alive.end(), faster); // the default always stays
    alive.resize(1 + alive.size() / 2);
  }
  bool won = alive.size() == 2 && winsFinal(alive[1]) && winsFinal(alive[1]);
  result_.decided = !late_;
  if (won && !late_)
    result_.winner = alive[1];
  return result_;
}

} // namespace dlc::compiler
