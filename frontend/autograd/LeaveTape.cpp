// The end of a recorded call whose results have gradient histories: a plan of the whole graph takes the place of the
// tape, before the piece runs, so that what only the tape holds is neither computed for it nor kept.
#include "frontend/autograd/GradPlan.h"
#include "runtime/core/Symbolic.h"
#include "frontend/trace/Recorder.h"

namespace dlc::trace {

/// The tensors that get a plan's history; none if the tape stays.
std::vector<Tensor> Recorder::leaveTape() {
  HintScope own; // what leaves is described by the recording, whose sizes are expressions
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
  // What a session repeats can't know where a generator will stand: masks are saved, by the tape.
  bool random = observer_ && std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                         [](const GraphNode &n) { return n.op->has(kRandom); });
  piece_.gradients = gradLogger_->take();
  for (int32_t v : piece_.gradients.roots) {
    GraphOutput o;
    o.value = v;
    o.strides = contiguousStrides(graph_.values[v].sizes);
    graph_.outputs.push_back(std::move(o));
  }
  std::swap(piece_.graph, graph_);
  piece_.sharedInput.assign(piece_.graph.inputs.size(), false);
  bool planned = !random && canPlan && canPlan(piece_);
  std::swap(piece_.graph, graph_);
  graph_.outputs.clear();
  tapeEnd_ = planned ? TapeEnd::Planned : TapeEnd::Kept;
  if (!planned) {
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
  for (size_t i = 0; observer_ && i < inputs.size(); ++i)
    if (!record.wholeStorage[i])
      inputs[i] = record.inputs[i];
  for (const auto &[value, tensor] : piece_.gradients.sources)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (piece_.graph.inputs[i] == value)
        inputs[i] = tensor;
  InterceptorScope outside(nullptr); // the backward of the plan is compiled by itself
  GradRun run{inputs, piece_.numbers, piece_.symbols, outs, {}, {}, false};
  std::vector<GradRun::NumberForm> forms;
  if (symbolic_) { // what a session repeats has other sizes
    const Partition &p = piece_.plan->decisions();
    auto describe = [&](size_t k, int32_t value) {
      TensorMeta m = piece_.symbolic.values[value];
      m.strides = savedStrides(m);
      m.offset = 0;
      attach(outs[k], m);
    };
    for (size_t k = 0; k < piece_.symbolic.outputs.size(); ++k)
      if (piece_.symbolic.outputs[k].writeBack < 0)
        describe(k, piece_.symbolic.outputs[k].value);
    for (size_t k = 0; k < p.saved.size(); ++k)
      describe(piece_.plan->numOutputs() + k, p.saved[k]);
  }
  if (observer_) {
    for (const NumberSource &n : record.numbers) {
      Number number = n.value.hint();
      if (n.kind == NumberSource::Kind::Session)
        number = Number::symbolic(number, n.ref);
      forms.push_back({number, n.kind == NumberSource::Kind::Size ? n.size : Dim(0)});
    }
    run.copyable = true;
    run.numberForms = Span<const GradRun::NumberForm>(forms.data(), forms.size());
    run.symbolForms = Span<const Dim>(record.symbols.data(), record.symbols.size());
  }
  attachGradient(piece_.plan, run, roots);
  if (observer_)
    for (size_t k = piece_.plan->numOutputs(); k < outs.size(); ++k)
      record.outputs.push_back({outs[k].storageRef(), -1, 0});
  piece_.plan = nullptr;
  piece_.gradients = GradLog();
}

} // namespace dlc::trace
