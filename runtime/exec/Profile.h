// Where the time of compiled code goes: while a profile is taken, plans time their steps one by one and add them here.
// Equal steps (name, shapes, work) of all plans and calls are one row.
#pragma once
#include "runtime/exec/LaunchPlan.h"

namespace dlc {

struct ProfileRow {
  std::string kind; ///< kernel, library, op or memory
  std::string name;
  std::vector<std::string> ops;
  std::string shapes; ///< of the buffers read and written
  int64_t calls = 0;
  double seconds = 0; ///< of all calls
  int64_t bytes = 0;  ///< read and written by one call, each operand once
  int64_t flops = 0;  ///< of one call; 0 if not known
};

/// True between startProfile and takeProfile.
bool isProfiling();
/// Starts anew; what was collected is dropped.
void startProfile();
/// Ends the profile. Rows, the most expensive first.
std::vector<ProfileRow> takeProfile();
/// The step times of one run of a plan.
void addToProfile(const LaunchPlan &plan, Ints symbols, const std::vector<double> &seconds);

/// "kernel", "library", "op" or "memory".
const char *nameOf(StepClass c);

} // namespace dlc
