// Which steps of a plan are worth a second thread: measured on the first runs of a shape, since it depends less on a
// step's own cost than on whose cache its operands lie in. Measured again after more and more runs, and the best times
// ever seen decide: a disturbed moment must not stick. Results do not depend on the choice.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dlc {

class StepTuner {
public:
  explicit StepTuner(size_t steps) : serial_(new std::atomic<bool>[steps]), times_(steps) {
    for (size_t i = 0; i < steps; ++i)
      serial_[i] = false;
  }

  /// What the runs so far say of step `i`.
  bool serial(size_t i) const { return serial_[i].load(std::memory_order_relaxed); }
  /// Whether this run needs no measurement; counts it. Racing threads may lose counts, which does no harm.
  bool done(int threads) {
    if (doneFor_.load(std::memory_order_relaxed) != threads)
      return false;
    int64_t left = untilNext_.load(std::memory_order_relaxed);
    if (left <= 0)
      return false;
    untilNext_.store(left - 1, std::memory_order_relaxed);
    return true;
  }
  /// True if the caller may measure; it must call finish() afterwards. Others run with what is known.
  bool begin(int threads) {
    if (busy_.exchange(true, std::memory_order_acquire))
      return false;
    if (threads != threads_)
      restart(threads);
    else if (run_ == kRuns)
      run_ = kWarmUp;
    return true;
  }

  /// How the current run treats step `i`.
  bool runSerial(size_t i) const { return mode() == kSerial || (mode() == kMixed && serial(i)); }
  bool timesSteps() const { return run_ >= kWarmUp && mode() != kMixed; }
  void stepTook(size_t i, double seconds) {
    float &best = mode() == kSerial ? times_[i].serial : times_[i].parallel;
    best = std::min(best, static_cast<float>(seconds));
  }

  /// Ends the run that begin() allowed. `seconds`: all of it; negative: it failed and does not count.
  void finish(double seconds) {
    if (seconds >= 0) {
      if (run_ >= kWarmUp + kStepRuns)
        totals_[mode()] = std::min(totals_[mode()], seconds);
      ++run_;
      if (run_ == kWarmUp + kStepRuns)
        for (size_t i = 0; i < times_.size(); ++i)
          serial_[i].store(times_[i].serial <= times_[i].parallel * 1.05f, std::memory_order_relaxed);
      else if (run_ == kRuns)
        decide();
    }
    busy_.store(false, std::memory_order_release);
  }

private:
  enum Mode { kParallel, kSerial, kMixed };
  static constexpr int kWarmUp = 2, kStepRuns = 8, kTotalRuns = 12, kRuns = kWarmUp + kStepRuns + kTotalRuns;
  /// Runs between the first two measurements; the pauses grow by the same factor.
  static constexpr int64_t kFirstPause = 250, kPauseGrowth = 8, kLongestPause = int64_t(1) << 40;
  struct Times {
    float serial = 1e30f, parallel = 1e30f;
  };

  Mode mode() const {
    if (run_ < kWarmUp)
      return kParallel;
    int k = run_ - kWarmUp;
    return k < kStepRuns ? static_cast<Mode>(k % 2) : static_cast<Mode>((k - kStepRuns) % 3);
  }
  /// Steps win alone, but share caches: the best of all parallel, all serial and each as it liked best.
  void decide() {
    int best = static_cast<int>(std::min_element(totals_, totals_ + 3) - totals_);
    for (size_t i = 0; best != kMixed && i < times_.size(); ++i)
      serial_[i].store(best == kSerial, std::memory_order_relaxed);
    untilNext_.store(pause_, std::memory_order_relaxed);
    pause_ = std::min(pause_ * kPauseGrowth, kLongestPause);
    doneFor_.store(threads_, std::memory_order_relaxed);
  }
  void restart(int threads) {
    threads_ = threads;
    run_ = 0;
    pause_ = kFirstPause;
    std::fill(times_.begin(), times_.end(), Times());
    std::fill(totals_, totals_ + 3, 1e30);
  }

  std::unique_ptr<std::atomic<bool>[]> serial_;
  std::atomic<int> doneFor_{0};
  std::atomic<int64_t> untilNext_{0};
  std::atomic<bool> busy_{false};
  // Of the run that is allowed to measure:
  std::vector<Times> times_;
  double totals_[3] = {1e30, 1e30, 1e30};
  int threads_ = 0, run_ = 0;
  int64_t pause_ = kFirstPause;
};

} // namespace dlc
