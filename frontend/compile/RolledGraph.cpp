// Runs a rolled piece: part after part, step after step, with views made on the way and values dropped after their last
// use.
#include "frontend/compile/RolledGraph.h"
#include "runtime/autograd/Autograd.h"
#include "runtime/op/Functional.h"

namespace dlc {
namespace {

/// The values of one run.
class RolledRun {
public:
  RolledRun(const RolledGraph &g, Span<const Tensor> inputs, Span<const Number> numbers,
            const RolledStepRunner &runStep, const RolledLoopRunner &runLoop)
      : g_(g), inputs_(inputs), numbers_(numbers), runStep_(runStep), runLoop_(runLoop), env_(g.numValues),
        buffers_(g.buffers.size()), live_(g.buffers.size()) {
    for (size_t i = 0; i < inputs.size(); ++i)
      env_[g.inputs[i]] = inputs[i];
  }

  void run(std::vector<Tensor> &outs) {
    std::vector<Tensor> results(g_.outputs.size());
    for (size_t p = 0; p < g_.parts.size(); ++p) {
      if (g_.lastWrites && p + 1 == g_.parts.size())
        keepBorrowed(results);
      runPart(p);
    }
    for (size_t i = 0; i < results.size(); ++i)
      if (!results[i] && !written(i))
        results[i] = result(i);
    for (size_t i = 0; i < results.size(); ++i)
      if (int32_t to = g_.outputs[i].writeBack; to >= 0) {
        Tensor target = inputs_[to];
        if (!written(i))
          ops::copy_(target, results[i]);
        results[i] = target;
      }
    outs = std::move(results);
  }

private:
  /// The last part has written this output to its input itself.
  bool written(size_t output) const {
    const GraphOutput &o = g_.outputs[output];
    return g_.lastWrites && o.writeBack >= 0 && env_[o.value].defined() && env_[o.value].is(inputs_[o.writeBack]);
  }

  /// Inputs and views of them that are results: the last part may write to what they show.
  void keepBorrowed(std::vector<Tensor> &results) {
    for (size_t i = 0; i < results.size(); ++i) {
      int32_t v = g_.outputs[i].value;
      bool input = std::find(g_.inputs.begin(), g_.inputs.end(), v) != g_.inputs.end();
      if (input || !isMade(v))
        results[i] = result(i);
    }
  }

  /// By a part or as a scatter: memory of its own.
  bool isMade(int32_t v) const { return g_.viewOf[v] < 0 || g_.views[g_.viewOf[v]].source >= 0; }

  const Tensor &value(int32_t v) {
    Tensor &t = env_[v];
    if (!t) {
      int32_t k = g_.viewOf[v], slot = g_.slotOf[v].root;
      if (slot >= 0 && buffers_[slot - g_.numValues]) {
        t = slotTensor(slot, g_.slotOf[v].offset);
        return t;
      }
      DLC_CHECK(k >= 0 && g_.views[k].source < 0, "rolled graph: value ", v,
                " is read before it was made or after its last use");
      const RolledView &view = g_.views[k];
      const Tensor &base = value(view.base);
      t = Tensor::viewOf(base.storageRef(), view.sizes, view.strides, base.offset() + view.offset, base.dtype());
    }
    return t;
  }

  void scatter(const RolledView &v) {
    Tensor base = value(v.base);
    // In place when nobody else knows of the old value.
    auto from = g_.dead.begin() + g_.deadAt[2 * time_ + 1], to = g_.dead.begin() + g_.deadAt[2 * time_ + 2];
    bool last = std::find(from, to, v.base) != to;
    if (!last || base.impl()->refCount() != 2 || base.storage().refCount() != 1 || !base.isContiguous()) {
      Tensor copy = Tensor::empty(base.sizes(), base.dtype());
      ops::copy_(copy, base);
      base = copy;
    }
    Tensor window = Tensor::viewOf(base.storageRef(), v.sizes, v.strides, base.offset() + v.offset, base.dtype());
    ops::copy_(window, value(v.source));
    env_[v.value] = base;
  }

  void drop(size_t slot) {
    for (uint32_t k = g_.deadAt[slot]; k < g_.deadAt[slot + 1]; ++k) {
      env_[g_.dead[k]] = Tensor();
      if (int32_t root = g_.slotOf[g_.dead[k]].root; root >= 0 && --live_[root - g_.numValues] == 0)
        buffers_[root - g_.numValues] = nullptr;
    }
  }

  /// Of a buffer that exists.
  Tensor slotTensor(int32_t root, int64_t offset) const {
    const RolledBuffer &b = g_.buffers[root - g_.numValues];
    return Tensor::viewOf(buffers_[root - g_.numValues], b.sizes, b.strides, offset, b.dtype);
  }

  /// The root has memory: loops that ran step by step have no buffers.
  bool isThere(const RolledPlace &p) const {
    return static_cast<size_t>(p.root) < g_.numValues || buffers_[p.root - g_.numValues];
  }
  /// Made by the part itself, in an earlier step.
  static bool readsOwn(const RolledPart &part, const RolledPlace &p) {
    for (size_t k = 0; k < part.numOutputs(); ++k)
      if (part.places[part.numInputs() + k].root == p.root)
        return true;
    return false;
  }

  PlanPlace find(const RolledPlace &p) const {
    if (static_cast<size_t>(p.root) >= g_.numValues)
      return {buffers_[p.root - g_.numValues].get(), p.offset};
    const Tensor &t = env_[p.root];
    DLC_CHECK(t.defined(), "rolled graph: value ", p.root, " is not there when its loop starts");
    return {&t.storage(), t.offset() + p.offset};
  }

  /// All steps of a part without a look in between.
  bool runInRow(size_t p) {
    const RolledPart &part = g_.parts[p];
    size_t numIn = part.numInputs(), numOut = part.numOutputs(), numNumbers = part.numNumbers();
    if (part.places.empty() || !runLoop_)
      return false;
    for (size_t i = 0; i < part.places.size(); ++i)
      if (i % (numIn + numOut) < numIn && !readsOwn(part, part.places[i]) && !isThere(part.places[i]))
        return false;
    const RolledPlace *outs = part.places.data() + numIn;
    in_.clear();
    stepOuts_.clear();
    for (size_t k = 0; k < numOut; ++k) {
      size_t b = outs[k].root - g_.numValues;
      buffers_[b] = Storage::allocate(g_.buffers[b].slots * g_.buffers[b].elements * itemSize(g_.buffers[b].dtype));
      live_[b] = g_.buffers[b].values;
      stepOuts_.push_back(slotTensor(outs[k].root, outs[k].offset));
    }
    for (size_t k = 0; k < numIn; ++k)
      in_.push_back(value(part.in[k]));
    places_.clear();
    for (const RolledPlace &place : part.places)
      places_.push_back(find(place));
    stepNumbers_.clear();
    for (size_t k = 0; k < numNumbers; ++k)
      stepNumbers_.push_back(numbers_[part.numbers[k]]);
    bool done = runLoop_(p, {part.steps, in_, stepOuts_, places_}, stepNumbers_);
    in_.clear();
    stepOuts_.clear();
    if (!done)
      for (size_t k = 0; k < numOut; ++k)
        buffers_[outs[k].root - g_.numValues] = nullptr;
    for (size_t s = 0; done && s < part.steps; ++s, ++time_) {
      drop(2 * time_);
      drop(2 * time_ + 1);
    }
    return done;
  }

  /// A list whose values lie at equal distances is one view: it is the result where it is row-major, else copied once.
  bool joinList(const RolledPart &part) {
    if (part.places.empty() || !isThere(part.places[0]))
      return false;
    const Graph &graph = part.piece.graph;
    int64_t n = static_cast<int64_t>(part.in.size()), apart = part.places[1].offset - part.places[0].offset;
    Tensor first = value(part.in[0]);
    int64_t dim = graph.nodes[0].args.args()[1].i;
    dim += dim < 0 ? first.dim() : 0;
    Sizes sizes = first.sizes(), from{n}, fromStrides{apart};
    from.append(sizes.begin(), sizes.end());
    fromStrides.append(first.strides().begin(), first.strides().end());
    sizes[dim] *= n;
    Sizes strides = contiguousStrides(sizes);
    bool buffer = static_cast<size_t>(part.places[0].root) >= g_.numValues;
    if (buffer && dim == 0 && apart == first.numel() && first.isContiguous()) {
      stepOuts_.assign(1, Tensor::viewOf(first.storageRef(), sizes, strides, first.offset(), first.dtype()));
      return true;
    }
    Tensor out = Tensor::empty(sizes, first.dtype());
    Sizes toStrides{first.size(dim) * strides[dim]};
    toStrides.append(strides.begin(), strides.end());
    ops::copy_(Tensor::viewOf(out.storageRef(), from, toStrides, 0, out.dtype()),
               Tensor::viewOf(first.storageRef(), from, fromStrides, first.offset(), first.dtype()));
    stepOuts_.assign(1, out);
    return true;
  }

  void runPart(size_t p) {
    if (g_.parts[p].steps > 1 && runInRow(p))
      return;
    const RolledPart &part = g_.parts[p];
    size_t numIn = part.numInputs(), numOut = part.numOutputs(), numNumbers = part.numNumbers();
    in_.resize(numIn);
    stepNumbers_.resize(numNumbers);
    for (size_t s = 0; s < part.steps; ++s, ++time_) {
      bool joined = part.kind == RolledPart::Kind::Eager && joinList(part);
      for (size_t k = 0; k < numIn && !joined; ++k) {
        in_[k] = value(part.in[s * numIn + k]);
        if (part.dense[k] && !in_[k].isContiguous())
          in_[k] = ops::contiguous(in_[k]);
      }
      for (size_t k = 0; k < numNumbers; ++k)
        stepNumbers_[k] = numbers_[part.numbers[s * numNumbers + k]];
      if (part.kind == RolledPart::Kind::Eager && !joined)
        runEagerNode(part.piece.graph.nodes[0]);
      else if (part.kind == RolledPart::Kind::Piece && numOut)
        runStep_(p, s, in_, stepNumbers_, stepOuts_);
      for (size_t k = 0; k < numOut; ++k)
        env_[part.out[s * numOut + k]] = std::move(stepOuts_[k]);
      std::fill(in_.begin(), in_.end(), Tensor());
      drop(2 * time_);
      for (size_t k = 0; k < part.numScattered; ++k)
        scatter(g_.views[g_.viewOf[part.scattered[s * part.numScattered + k]]]);
      drop(2 * time_ + 1);
    }
  }

  void runEagerNode(const GraphNode &n) {
    SmallVec<Arg<Tensor>, 12> args;
    size_t at = 0;
    for (const Arg<GVal> &a : n.args.args()) {
      Arg<Tensor> out;
      out.tag = a.tag;
      out.dtype = a.dtype;
      out.size = a.size;
      out.i = a.i;
      out.num = a.num;
      out.dim = a.dim;
      if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
        out.value = in_.data() + at;
        at += a.values().size();
      }
      args.push_back(out);
    }
    SmallVec<Tensor, 3> results;
    runEager(*n.op, Span<const Arg<Tensor>>(args.data(), args.size()), results, CallForm::Functional);
    stepOuts_.assign(results.begin(), results.end());
  }

  /// Output i as a tensor of its own with the layout it must have.
  Tensor result(size_t i) {
    const GraphOutput &o = g_.outputs[i];
    const Tensor &t = value(o.value);
    Sizes strides;
    for (const Dim &d : o.strides)
      strides.push_back(d.value());
    bool own = isMade(o.value) && t.impl()->refCount() == 1 && t.storage().refCount() == 1 &&
               t.storage().bytes() == static_cast<size_t>(t.numel()) * itemSize(t.dtype());
    if (own && t.strides() == strides)
      return t; // a second output of this value sees that it is shared, and is copied
    Tensor fresh = Tensor::emptyStrided(t.sizes(), strides, t.dtype());
    ops::copy_(fresh, t);
    return fresh;
  }

  const RolledGraph &g_;
  Span<const Tensor> inputs_;
  Span<const Number> numbers_;
  const RolledStepRunner &runStep_;
  const RolledLoopRunner &runLoop_;
  std::vector<Tensor> env_, in_, stepOuts_;
  std::vector<Number> stepNumbers_;
  std::vector<PlanPlace> places_;
  std::vector<Ref<Storage>> buffers_; // null before its loop runs, and when all values in it are dead
  std::vector<size_t> live_;          // values in each
  size_t time_ = 0;
};

} // namespace

size_t RolledGraph::numLoops() const {
  return std::count_if(parts.begin(), parts.end(), [](const RolledPart &p) { return p.steps > 1; });
}

void RolledGraph::run(Span<const Tensor> inputs, Span<const Number> numbers, const RolledStepRunner &runStep,
                      std::vector<Tensor> &outs, const RolledLoopRunner &runLoop) const {
  InterceptorScope eager(nullptr);
  GradModeScope off(false);
  RolledRun(*this, inputs, numbers, runStep, runLoop).run(outs);
}

std::string RolledGraph::describe() const {
  constexpr size_t kMost = 12;
  std::ostringstream os;
  for (size_t i = 0; i < parts.size(); ++i) {
    const RolledPart &p = parts[i];
    os << (i ? ", " : "");
    if (i == kMost) {
      os << "and " << parts.size() - i << " more parts";
      break;
    }
    if (p.steps > 1)
      os << p.steps << " steps of ";
    os << p.piece.graph.nodes.size() << " ops";
  }
  return os.str();
}

} // namespace dlc
