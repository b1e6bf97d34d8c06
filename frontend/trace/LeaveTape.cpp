// The end of a recorded call whose results have gradient histories: a plan of the whole graph takes the place of the
// tape, before the piece runs, so that what only the tape holds is neither computed for it nor kept.
#include "frontend/autograd/GradPlan.h"
#include "frontend/trace/Recorder.h"

namespace dlc::trace {

/// The tensors that get a plan's history; none if the tape stays.
std::vector<Tensor> Recorder::leaveTape() {
  std::vector<Tensor> roots = gradLogger_->leave();
  if (roots.empty()) {
    tapeEnd_ = TapeEnd::None;
    return roots;
  }
  for (auto &s : states()) // what is known of the outputs already
    if (s->storage && s->input && s->dirty) {
      GraphOutput o;
      o.value = s->base;
      o.strides = s->strideDims();
      o.writeBack = s->writeTo;
      graph_.outputs.push_back(std::move(o));
    }
  piece_.gradients = gradLogger_->take();
  for (int32_t v : piece_.gradients.roots) {
    GraphOutput o;
    o.value = v;
    o.strides = contiguousStrides(graph_.values[v].sizes);
    graph_.outputs.push_back(std::move(o));
  }
  std::swap(piece_.graph, graph_);
  piece_.sharedInput.assign(piece_.graph.inputs.size(), false);
  bool planned = canPlan && canPlan(piece_);
  std::swap(piece_.graph, graph_);
  graph_.outputs.clear();
  tapeEnd_ = planned ? TapeEnd::Planned : TapeEnd::Kept;
  if (!planned) {
    if (observer_)
      observer_->notReplayable(piece_.gradients.unsupported.empty() ? "its results have gradient histories"
                                                                    : piece_.gradients.unsupported);
    piece_.gradients = GradLog();
    return {};
  }
  GradLogger::dropTape(roots);
  return roots;
}

/// After the run: `outs` are the outputs of the plan's forward, of which the first are in the program's storages.
void Recorder::attachPlan(Span<const Tensor> roots, std::vector<Tensor> &outs, PieceRecord &record) {
  DLC_CHECK(piece_.plan, "a piece with gradients ran without a plan");
  std::vector<Tensor> inputs = piece_.inputs;
  for (const auto &[value, tensor] : piece_.gradients.sources)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (piece_.graph.inputs[i] == value)
        inputs[i] = tensor;
  InterceptorScope outside(nullptr); // the backward of the plan is compiled by itself
  GradRun run{inputs, piece_.numbers, piece_.symbols, outs, {}, {}, false};
  std::vector<GradRun::NumberForm> forms;
  if (observer_) {
    run.copyable = true;
    for (size_t i = 0; i < record.numbers.size(); ++i) {
      const NumberSource &n = record.numbers[i];
      GradRun::NumberForm form{n.value.hint(), n.size};
      if (n.kind == NumberSource::Kind::Session)
        form.number = Number::symbolic(n.value.hint(), n.ref);
      else if (n.kind != NumberSource::Kind::Size)
        form.size = 0;
      bool random = n.kind == NumberSource::Kind::Seed || n.kind == NumberSource::Kind::Offset;
      run.copyable &= !random || !piece_.plan->readsNumber(i); // no copy can know where the generator stood
      forms.push_back(form);
    }
    run.numberForms = Span<const GradRun::NumberForm>(forms.data(), forms.size());
    run.symbolForms = Span<const Dim>(record.symbols.data(), record.symbols.size());
  }
  attachGradient(piece_.plan, run, roots);
  if (observer_) {
    for (size_t k = piece_.plan->numOutputs(); k < outs.size(); ++k)
      record.outputs.push_back({outs[k].storageRef(), -1, 0});
    record.gradient = piece_.plan;
    record.roots = roots.vec();
  }
  piece_.plan = nullptr;
  piece_.gradients = GradLog();
}

} // namespace dlc::trace
