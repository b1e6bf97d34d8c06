// Where compile time goes: timers around phases, summed over the process, printed for DLC_LOGS=compile_time.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace dlc {

/// Time between construction and destruction counts as `phase` (a literal), without what timers inside of it count.
/// Does nothing unless DLC_LOGS has compile_time.
class PhaseTimer {
public:
  explicit PhaseTimer(const char *phase);
  ~PhaseTimer() { stop(); }
  PhaseTimer(const PhaseTimer &) = delete;
  /// Ends the phase before the scope does.
  void stop();

private:
  using Clock = std::chrono::steady_clock;
  const char *phase_ = nullptr; // null: not counting
  PhaseTimer *outer_ = nullptr;
  Clock::time_point start_;
  Clock::duration inside_{};
};

/// Adds to a number that the table ends with (`what`: a literal).
void countPhase(const char *what, int64_t n = 1);

/// The table so far: phase, times entered, milliseconds, share; the dearest first, then the counted numbers. Printed at
/// the end of the process as well.
std::string phaseTable();

} // namespace dlc
