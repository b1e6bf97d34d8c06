// Launch plans as bytes, for the persistent cache: tables of a plan, with kernels and ops by number and name.
#pragma once
#include "runtime/core/Archive.h"
#include "runtime/exec/LaunchPlan.h"

namespace dlc {

/// Reads and writes the tables of a plan; its friend.
class PlanArchive {
public:
  /// Appends `plan` to `out`. `numberOf` gives the number of a kernel in the reader's list. False if the plan has
  /// something that does not travel: then `out` is of no use.
  template <class F> static bool write(archive::Writer &out, const LaunchPlan &plan, F &&numberOf) {
    std::vector<uint32_t> kernels;
    for (const PlanStep &s : plan.steps_)
      if (s.kind == StepKind::Kernel)
        kernels.push_back(numberOf(reinterpret_cast<CompiledKernel>(const_cast<void *>(s.fn))));
    if (!writeTables(out, plan, kernels))
      return false;
    for (const DerivedSpec &s : specsOf(plan))
      if (!write(out, *s.maker, numberOf))
        return false;
    return true;
  }
  /// The plan that was written. `kernels[n]`: the function of number n; their code is to be retained by the caller.
  static std::shared_ptr<LaunchPlan> read(archive::Reader &in, Span<const CompiledKernel> kernels);

private:
  static bool writeTables(archive::Writer &out, const LaunchPlan &plan, const std::vector<uint32_t> &kernels);
  static const std::vector<DerivedSpec> &specsOf(const LaunchPlan &plan);
  template <class A> static void tables(A &a, LaunchPlan &plan);
};

} // namespace dlc
