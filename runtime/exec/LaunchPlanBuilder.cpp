// Building a plan: flatten steps into tables, find the lifetime of every temporary and the point where failures are
// looked at.
#include "runtime/exec/LaunchPlan.h"
#include "runtime/exec/PlanShape.h"

namespace dlc {

LaunchPlanBuilder::LaunchPlanBuilder() : plan_(new LaunchPlan) {}
LaunchPlanBuilder::~LaunchPlanBuilder() = default;

size_t LaunchPlanBuilder::numSteps() const { return plan_->steps_.size(); }
const PlanBuffer &LaunchPlanBuilder::buffer(uint32_t id) const { return plan_->buffers_[id]; }

uint32_t LaunchPlanBuilder::pushBuffer(PlanBuffer b) {
  uint32_t id = static_cast<uint32_t>(plan_->buffers_.size());
  if (!b.isView)
    b.root = id;
  plan_->buffers_.push_back(std::move(b));
  return id;
}

uint32_t LaunchPlanBuilder::addInput(DType dtype, Dims sizes, Dims strides) {
  uint32_t index = static_cast<uint32_t>(plan_->inputs_.size());
  uint32_t id = pushBuffer({BufferKind::Input, dtype, false, 0, index, std::move(sizes), std::move(strides), 0});
  plan_->inputs_.push_back(id);
  return id;
}

uint32_t LaunchPlanBuilder::addDerived(DType dtype, Dims sizes, DerivedSpec spec) {
  uint32_t value = static_cast<uint32_t>(derived_.size());
  Dims strides = contiguousStrides(sizes);
  uint32_t id = pushBuffer({BufferKind::Input, dtype, false, 0, value, std::move(sizes), std::move(strides), 0});
  if (spec.needed)
    plan_->derivedBuffers_.push_back({id, value});
  derived_.push_back(std::move(spec));
  return id;
}

uint32_t LaunchPlanBuilder::addTemp(DType dtype, Dims sizes) {
  Dims strides = contiguousStrides(sizes);
  return pushBuffer({BufferKind::Temp, dtype, false, 0, 0, std::move(sizes), std::move(strides), 0});
}

uint32_t LaunchPlanBuilder::addConstant(Tensor value) {
  Dims sizes, strides;
  for (int64_t s : value.sizes())
    sizes.push_back(s);
  for (int64_t s : value.strides())
    strides.push_back(s);
  uint32_t index = static_cast<uint32_t>(plan_->constants_.size());
  DType dtype = value.dtype();
  plan_->constants_.push_back(std::move(value));
  return pushBuffer({BufferKind::Constant, dtype, false, 0, index, std::move(sizes), std::move(strides), 0});
}

uint32_t LaunchPlanBuilder::addOutput(DType dtype, Dims sizes, Dims strides, int32_t donatedInput) {
  uint32_t index = static_cast<uint32_t>(plan_->outputs_.size());
  uint32_t id = pushBuffer({BufferKind::Output, dtype, false, 0, index, std::move(sizes), std::move(strides), 0});
  plan_->outputs_.push_back({id, donatedInput});
  return id;
}

uint32_t LaunchPlanBuilder::addView(uint32_t of, Dims sizes, Dims strides, Dim offset) {
  PlanBuffer b = plan_->buffers_[of];
  b.isView = true;
  b.sizes = std::move(sizes);
  b.strides = std::move(strides);
  b.offset += offset;
  return pushBuffer(std::move(b));
}

void LaunchPlanBuilder::pushStep(StepKind kind, const void *fn, uint32_t slot0, size_t numSlots,
                                 Span<const PlanInt> ints, StepInfo info) {
  LaunchPlan &p = *plan_;
  DLC_CHECK(numSlots < UINT16_MAX && ints.size() < 250, info.name, " has too many operands");
  PlanStep s = {fn,
                slot0,
                static_cast<uint32_t>(p.ints_.size()),
                static_cast<uint16_t>(numSlots),
                static_cast<uint16_t>(ints.size()),
                kind,
                info.mayFail,
                0,
                static_cast<uint32_t>(p.infos_.size()),
                0};
  for (const PlanInt &i : ints) {
    if (i.number >= 0)
      p.numberPatches_.push_back({static_cast<uint32_t>(p.ints_.size()), i.number, i.category});
    p.ints_.push_back(i);
  }
  p.steps_.push_back(s);
  p.infos_.push_back(std::move(info));
}

static bool isBoundPerCall(const PlanBuffer &b) { return b.kind == BufferKind::Input || b.kind == BufferKind::Output; }

void LaunchPlanBuilder::addKernel(CompiledKernel fn, Span<const uint32_t> buffers, Span<const PlanInt> ints, Dim extent,
                                  Dim cost, StepInfo info, int64_t multiple) {
  LaunchPlan &p = *plan_;
  uint32_t slot0 = static_cast<uint32_t>(p.slots_.size());
  for (uint32_t b : buffers) {
    if (isBoundPerCall(p.buffers_[b]))
      p.ioSlots_.push_back(static_cast<uint32_t>(p.slots_.size()));
    p.slots_.push_back(b);
  }
  p.slots_.push_back(kErrorSlot);
  info.stepClass = StepClass::Kernel;
  pushStep(StepKind::Kernel, reinterpret_cast<const void *>(fn), slot0, buffers.size() + 1, ints, std::move(info));
  p.steps_.back().extra = static_cast<uint32_t>(p.ranges_.size());
  p.ranges_.push_back({extent, cost, multiple});
  p.ints_.resize(p.ints_.size() + 2); // the parallel range
}

void LaunchPlanBuilder::addCall(std::unique_ptr<PlanCall> call, Span<const uint32_t> buffers, Span<const PlanInt> ints,
                                StepInfo info) {
  LaunchPlan &p = *plan_;
  uint32_t slot0 = static_cast<uint32_t>(p.tensorSlots_.size());
  for (uint32_t b : buffers) {
    if (isBoundPerCall(p.buffers_[b]))
      p.ioTensors_.push_back(static_cast<uint32_t>(p.tensorSlots_.size()));
    p.tensorSlots_.push_back(b);
  }
  pushStep(StepKind::Call, call.get(), slot0, buffers.size(), ints, std::move(info));
  p.calls_.push_back(std::move(call));
}

void LaunchPlanBuilder::addCopy(uint32_t to, uint32_t from, StepInfo info) {
  info.stepClass = StepClass::Memory;
  info.reads = {buffer(from).root};
  info.writes = {buffer(to).root};
  pushStep(StepKind::Copy, nullptr, to, 0, {}, std::move(info));
  plan_->steps_.back().extra = from;
}

void LaunchPlanBuilder::addFill(uint32_t to, const Number &value, StepInfo info) {
  info.stepClass = StepClass::Memory;
  info.writes = {buffer(to).root};
  PlanInt raw = PlanInt::of(Dim(value.rawBits()));
  pushStep(StepKind::Fill, nullptr, to, 0, Span<const PlanInt>(&raw, 1), std::move(info));
  plan_->steps_.back().isFloat = value.isFloat();
}

/// The check goes before the first step that writes to a donated input, or to the end.
void LaunchPlanBuilder::insertCheck() {
  LaunchPlan &p = *plan_;
  auto commits = [&](const PlanStep &s) {
    for (uint32_t root : p.infos_[s.info].writes)
      if (p.buffers_[root].kind == BufferKind::Output && p.outputs_[p.buffers_[root].index].donatedInput >= 0)
        return true;
    return false;
  };
  size_t firstCommit = p.steps_.size(), afterFail = 0;
  for (size_t i = p.steps_.size(); i-- > 0;)
    if (commits(p.steps_[i]))
      firstCommit = i;
  for (size_t i = 0; i < p.steps_.size(); ++i)
    if (p.steps_[i].mayFail)
      afterFail = i + 1;
  if (afterFail == 0)
    return;
  DLC_CHECK(afterFail <= firstCommit,
            "a step that may fail follows a write to an input: ", p.infos_[p.steps_[afterFail - 1].info].name);
  PlanStep check = {};
  check.kind = StepKind::Check;
  p.steps_.insert(p.steps_.begin() + static_cast<std::ptrdiff_t>(afterFail), check);
}

void LaunchPlanBuilder::computeLifetimes() {
  LaunchPlan &p = *plan_;
  std::vector<int64_t> slotOfTemp(p.buffers_.size(), -1);
  auto touch = [&](uint32_t root, int64_t step) {
    if (p.buffers_[root].kind != BufferKind::Temp)
      return;
    if (slotOfTemp[root] < 0) {
      slotOfTemp[root] = static_cast<int64_t>(p.temps_.size());
      p.temps_.push_back({root, {step, step, 0}});
    }
    p.temps_[slotOfTemp[root]].second.last = step;
  };
  for (size_t i = 0; i < p.steps_.size(); ++i) {
    const PlanStep &s = p.steps_[i];
    int64_t step = static_cast<int64_t>(i);
    if (s.kind == StepKind::Kernel) {
      for (uint32_t k = 0; k + 1 < s.numSlots; ++k)
        touch(p.buffers_[p.slots_[s.slot0 + k]].root, step);
    } else if (s.kind == StepKind::Call) {
      for (uint32_t k = 0; k < s.numSlots; ++k)
        touch(p.buffers_[p.tensorSlots_[s.slot0 + k]].root, step);
    } else if (s.kind != StepKind::Check) {
      touch(p.buffers_[s.slot0].root, step);
      if (s.kind == StepKind::Copy)
        touch(p.buffers_[s.extra].root, step);
    }
  }
}

std::shared_ptr<LaunchPlan> LaunchPlanBuilder::finish() {
  insertCheck();
  computeLifetimes();
  if (!derived_.empty())
    plan_->derived_ = DerivedValues::make(std::move(derived_));
  return std::move(plan_);
}

} // namespace dlc
