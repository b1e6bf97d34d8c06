// Timers of a thread form a stack, so that each moment counts once; threads that compile at the same time add up.
#include "runtime/core/PhaseTimes.h"
#include "runtime/core/ForkSafe.h"
#include "runtime/core/Knobs.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

namespace dlc {

namespace {

struct Phase {
  int64_t count = 0;
  double ms = 0;
};

struct Table {
  ForkMutex mutex;
  std::map<std::string, Phase> phases;
  std::map<std::string, int64_t> counts;
};

void printTable() { logLine("compile_time", "by phase (all threads together)\n" + phaseTable()); }

Table &table() {
  static Table *t = [] {
    std::atexit(printTable);
    return new Table; // outlives every static destructor
  }();
  return *t;
}

thread_local PhaseTimer *innermost = nullptr;

bool enabled() { return !knobs().logs.empty() && logEnabled("compile_time"); }

} // namespace

PhaseTimer::PhaseTimer(const char *phase) {
  if (!enabled())
    return;
  phase_ = phase;
  outer_ = innermost;
  innermost = this;
  start_ = Clock::now();
}

void PhaseTimer::stop() {
  if (!phase_)
    return;
  Clock::duration whole = Clock::now() - start_;
  innermost = outer_;
  if (outer_)
    outer_->inside_ += whole;
  Table &t = table();
  std::lock_guard<ForkMutex> lock(t.mutex);
  Phase &p = t.phases[phase_];
  ++p.count;
  p.ms += std::chrono::duration<double, std::milli>(whole - inside_).count();
  phase_ = nullptr;
}

void countPhase(const char *what, int64_t n) {
  if (!enabled())
    return;
  Table &t = table();
  std::lock_guard<ForkMutex> lock(t.mutex);
  t.counts[what] += n;
}

std::string phaseTable() {
  Table &t = table();
  std::lock_guard<ForkMutex> lock(t.mutex);
  std::vector<std::pair<std::string, Phase>> rows(t.phases.begin(), t.phases.end());
  std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) { return a.second.ms > b.second.ms; });
  double total = 0;
  for (const auto &row : rows)
    total += row.second.ms;
  std::string out;
  char line[160];
  for (const auto &[name, phase] : rows) {
    std::snprintf(line, sizeof line, "  %-24s %7lld x %10.2f ms %5.1f %%\n", name.c_str(),
                  static_cast<long long>(phase.count), phase.ms, total > 0 ? 100 * phase.ms / total : 0.0);
    out += line;
  }
  std::snprintf(line, sizeof line, "  %-24s %9s %10.2f ms", "total", "", total);
  out += line;
  for (const auto &[name, n] : t.counts)
    out += (name == t.counts.begin()->first ? "\n  " : ", ") + std::to_string(n) + " " + name;
  return out;
}

} // namespace dlc
