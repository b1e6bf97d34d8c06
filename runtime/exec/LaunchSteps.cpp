// A plan run for many steps in a row: bound once, then only the pointers that move are set between them.
#include "runtime/exec/LaunchPlan.h"
#include "runtime/core/Interrupt.h"
#include "runtime/exec/PlanShape.h"
#include "runtime/exec/Profile.h"

namespace dlc {

namespace {
/// Steps between two looks at whether the user wants to stop.
constexpr size_t kInterruptSteps = 1024;

/// The operands that lie elsewhere in some step.
SmallVec<uint8_t, 32> movingOperands(const PlanSteps &s, size_t width) {
  SmallVec<uint8_t, 32> moves(width, 0);
  for (size_t at = width; at < s.places.size(); ++at) {
    const PlanPlace &now = s.places[at], &before = s.places[at - width];
    moves[at % width] |= now.storage != before.storage || now.offset != before.offset;
  }
  return moves;
}
} // namespace

/// A pointer or tensor of the context that follows an operand.
struct LaunchPlan::Moving {
  uint32_t at, operand;
  int64_t offset; // from the operand's first element, in elements
  uint32_t item;  // bytes of one
};

bool LaunchPlan::canRunSteps(Span<const uint8_t> moves) const {
  for (const Output &o : outputs_)
    if (o.donatedInput >= 0)
      return false;
  if (derived_)
    for (const DerivedSpec &d : derived_->specs())
      for (int32_t source : d.from)
        if (source >= 0 && moves[source])
          return false;
  return true;
}

/// `slots`: of kernels' pointers or of calls' tensors; `buffers`: the buffer of each.
void LaunchPlan::findMoving(const Context &c, Span<const uint32_t> slots, Span<const uint32_t> buffers,
                            Span<const uint8_t> moves, std::vector<Moving> &out) const {
  for (uint32_t s : slots) {
    const PlanBuffer &b = buffers_[buffers[s]];
    bool input = b.kind == BufferKind::Input;
    if (input && !(b.index < inputs_.size() && inputs_[b.index] == b.root))
      continue; // derived
    uint32_t operand = input ? b.index : static_cast<uint32_t>(inputs_.size()) + b.index;
    if (moves[operand])
      out.push_back({s, operand, c.shape->layouts[buffers[s]].offset, static_cast<uint32_t>(itemSize(b.dtype))});
  }
}

bool LaunchPlan::runSteps(const PlanSteps &s, Span<const Number> numbers, Ints symbols) const {
  size_t width = inputs_.size() + outputs_.size();
  DLC_CHECK(s.steps > 0 && s.places.size() == s.steps * width && s.outputs.size() == outputs_.size(),
            "compiled graph: ", s.places.size(), " places for ", s.steps, " steps of ", width, " operands");
  SmallVec<uint8_t, 32> moves = movingOperands(s, width);
  Span<const uint8_t> moving(moves.data(), moves.size());
  if (!canRunSteps(moving))
    return false;
  std::unique_ptr<Context> c = acquire(symbols);
  struct Return {
    const LaunchPlan &plan;
    std::unique_ptr<Context> &context;
    ~Return() { plan.release(std::move(context)); }
  } giveBack{*this, c};
  bindInputs(*c, s.inputs);
  for (size_t k = 0; k < outputs_.size(); ++k)
    bindOutput(*c, k, s.outputs[k]);
  bindSlots(*c);
  bindNumbers(*c, numbers);
  std::vector<Moving> pointers, tensors;
  findMoving(*c, Span<const uint32_t>(ioSlots_), Span<const uint32_t>(slots_), moving, pointers);
  findMoving(*c, Span<const uint32_t>(ioTensors_), Span<const uint32_t>(tensorSlots_), moving, tensors);
  for (const Moving &m : tensors) // of our own: the caller's tensors stay where they are
    if (!buffers_[tensorSlots_[m.at]].isView) {
      const Tensor &t = c->tensors[m.at];
      c->tensors[m.at] = Tensor::viewOf(t.storageRef(), t.sizes(), t.strides(), t.offset(), t.dtype());
    }
  const bool timed = isProfiling();
  std::vector<double> times;
  for (size_t k = 0; k < s.steps; ++k) {
    const PlanPlace *places = s.places.data() + k * width;
    for (const Moving &m : pointers) {
      char *base = static_cast<char *>(places[m.operand].storage->rawData());
      c->pointers[m.at] = base ? base + (places[m.operand].offset + m.offset) * m.item : nullptr;
    }
    for (const Moving &m : tensors) {
      TensorImpl *t = c->tensors[m.at].impl();
      if (t->storage.get() != places[m.operand].storage)
        t->storage = Ref<Storage>(places[m.operand].storage);
      t->offset = places[m.operand].offset + m.offset;
    }
    timed ? executeTimed(*c, times) : execute(*c, static_cast<int64_t>(s.steps));
    if (k % kInterruptSteps == kInterruptSteps - 1)
      throwIfInterrupted();
    if (timed) {
      addToProfile(*this, symbols, times);
      times.clear();
    }
  }
  return true;
}

} // namespace dlc
