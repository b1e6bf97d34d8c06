// One description of a plan's tables serves both directions. Pointers do not travel: steps name their kernel by number
// and their call by position; calls are made again from the op's name and arguments.
#include "runtime/exec/PlanArchive.h"
#include "runtime/exec/OpCall.h"
#include "runtime/exec/PlanShape.h"

namespace dlc {

/// A member that one of these types gained does not travel yet: then nothing is written, until tables() has it and the
/// sizes here are the new ones.
static constexpr bool kComplete =
    sizeof(LaunchPlan) == 528 && sizeof(StepInfo) == 168 && sizeof(PlanInt) == 24 && sizeof(PlanStep) == 32;

namespace {

template <class A> void fields(A &a, StepInfo &i) {
  a.text(i.name);
  a.pod(i.stepClass);
  a.list(i.ops, [&](std::string &op) { a.text(op); });
  a.dim(i.readBytes);
  a.dim(i.writtenBytes);
  a.dim(i.flops);
  a.list(i.reads, [&](uint32_t &r) { a.pod(r); });
  a.list(i.writes, [&](uint32_t &r) { a.pod(r); });
  a.pod(i.mayFail);
}

template <class A> void fields(A &a, PlanBuffer &b) {
  a.pod(b.kind);
  a.pod(b.dtype);
  a.pod(b.isView);
  a.pod(b.root);
  a.pod(b.index);
  archive::fields(a, b.sizes);
  archive::fields(a, b.strides);
  a.dim(b.offset);
}

template <class A> void fields(A &a, PlanInt &i) {
  a.dim(i.dim);
  a.pod(i.number);
  a.pod(i.category);
}

/// Elements that one pod() each moves.
template <class A, class C> void plain(A &a, C &list) {
  a.list(list, [&](auto &v) { a.pod(v); });
}

} // namespace

template <class A> void PlanArchive::tables(A &a, LaunchPlan &p) {
  a.list(p.steps_, [&](PlanStep &s) {
    PlanStep step = s;
    step.fn = nullptr; // not of this process
    a.pod(step);
    if (A::kReads)
      s = step;
  });
  a.list(p.infos_, [&](StepInfo &i) { fields(a, i); });
  a.list(p.buffers_, [&](PlanBuffer &b) { fields(a, b); });
  plain(a, p.inputs_);
  plain(a, p.outputs_);
  plain(a, p.slots_);
  plain(a, p.tensorSlots_);
  plain(a, p.ioSlots_);
  plain(a, p.ioTensors_);
  a.list(p.ints_, [&](PlanInt &i) { fields(a, i); });
  plain(a, p.numberPatches_);
  a.list(p.ranges_, [&](LaunchPlan::Range &r) {
    a.dim(r.extent);
    a.dim(r.cost);
    a.pod(r.multiple);
  });
  a.list(p.temps_, [&](std::pair<uint32_t, ArenaInterval> &t) {
    a.pod(t.first);
    a.pod(t.second);
  });
  a.list(p.derivedBuffers_, [&](std::pair<uint32_t, uint32_t> &d) {
    a.pod(d.first);
    a.pod(d.second);
  });
}

const std::vector<DerivedSpec> &PlanArchive::specsOf(const LaunchPlan &plan) {
  static const std::vector<DerivedSpec> none;
  return plan.derived_ ? plan.derived_->specs() : none;
}

/// A derived value, but for the plan that makes it.
template <class A> static void fields(A &a, DerivedSpec &d) {
  a.text(d.key);
  plain(a, d.from);
  a.pod(d.needed);
}

bool PlanArchive::writeTables(archive::Writer &out, const LaunchPlan &plan, const std::vector<uint32_t> &kernels) {
  if (!kComplete || !plan.constants_.empty())
    return false; // values of tensors: the entry would have to know them
  for (const auto &call : plan.calls_)
    if (!dynamic_cast<const OpCall *>(call.get()))
      return false;
  tables(out, const_cast<LaunchPlan &>(plan)); // a Writer changes nothing
  for (uint32_t k : kernels)
    out.pod(k);
  out.pod(plan.calls_.size());
  for (const auto &call : plan.calls_)
    static_cast<const OpCall *>(call.get())->write(out);
  out.list(const_cast<std::vector<DerivedSpec> &>(specsOf(plan)), [&](DerivedSpec &d) { fields(out, d); });
  return true;
}

std::shared_ptr<LaunchPlan> PlanArchive::read(archive::Reader &in, Span<const CompiledKernel> kernels) {
  std::shared_ptr<LaunchPlan> plan(new LaunchPlan);
  tables(in, *plan);
  for (PlanStep &s : plan->steps_)
    if (s.kind == StepKind::Kernel) {
      uint32_t k = in.take<uint32_t>();
      DLC_CHECK(k < kernels.size(), "an archived plan names kernel ", k, " of ", kernels.size());
      s.fn = reinterpret_cast<const void *>(kernels[k]);
    }
  size_t numCalls = in.take<size_t>(), next = 0;
  for (size_t i = 0; i < numCalls; ++i)
    plan->calls_.push_back(OpCall::read(in));
  for (PlanStep &s : plan->steps_)
    if (s.kind == StepKind::Call) {
      DLC_CHECK(next < numCalls, "an archived plan has fewer calls than steps that call");
      s.fn = plan->calls_[next++].get();
    }
  std::vector<DerivedSpec> derived;
  in.list(derived, [&](DerivedSpec &d) { fields(in, d); });
  for (DerivedSpec &d : derived)
    d.maker = read(in, kernels);
  if (!derived.empty())
    plan->derived_ = DerivedValues::make(std::move(derived));
  return plan;
}

} // namespace dlc
