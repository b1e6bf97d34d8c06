// The slow and obvious executor of graphs: what everything else is compared with, and what runs when compiling fails.
#include "runtime/core/StorageWatch.h"
#include "runtime/graph/Graph.h"
#include "runtime/op/Dispatcher.h"
#include "runtime/op/Functional.h"

namespace dlc {
namespace {

/// Without a new version: versions count what the program writes.
void copyInto(const Tensor &to, const Tensor &from) {
  Tensor target[1] = {to};
  Arg<Tensor> args[3] = {Arg<Tensor>::of(to), Arg<Tensor>::of(from), Arg<Tensor>::ofBool(false)};
  opInfo(OpId::Copy).kernel(args, target);
  StorageWatch::wrote(to.storage());
}

class Frame {
public:
  Frame(const Graph &g, Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols)
      : g_(g), numbers_(numbers), symbols_(symbols), values_(g.values.size()), lastUse_(g.values.size(), -1) {
    for (size_t i = 0; i < inputs.size(); ++i)
      values_[g.inputs[i]] = inputs[i];
    for (size_t n = 0; n < g.nodes.size(); ++n)
      for (const GVal &v : g.nodes[n].args.values())
        if (v.id >= 0)
          lastUse_[v.id] = static_cast<int64_t>(n);
    for (const GraphOutput &o : g.outputs)
      lastUse_[o.value] = INT64_MAX;
  }

  void run(size_t index) {
    const GraphNode &n = g_.nodes[index];
    OwnedArgs<Tensor> boxed = box(n);
    SmallVec<Tensor, 3> outs;
    if (n.op->kind == OpKind::View && isStrided(n))
      outs.push_back(stridedView(boxed.args()));
    else
      runEager(*n.op, boxed.args(), outs, CallForm::Functional);
    size_t at = 0;
    for (; at < outs.size(); ++at)
      values_[n.results[at]] = outs[at];
    for (size_t i = 0; at < n.results.size(); ++i)
      if (isMutatedKind(n.op->params[i].kind))
        for (const Tensor &t : boxed.args()[i].values())
          values_[n.results[at++]] = t;
    for (const GVal &v : n.args.values())
      if (v.id >= 0 && lastUse_[v.id] == static_cast<int64_t>(index))
        values_[v.id] = Tensor();
  }

  /// The value in memory of its own with these strides: itself if nothing else shares its memory, else a copy.
  Tensor result(int32_t id, const Sizes &strides) const {
    const Tensor &v = values_[id];
    if (v.storage().refCount() == 1 && v.impl()->refCount() == 1 && v.offset() == 0 && v.strides() == strides &&
        v.isNonOverlapping() && static_cast<size_t>(v.numel()) * itemSize(v.dtype()) == v.storage().bytes())
      return v;
    Tensor fresh = Tensor::emptyStrided(v.sizes(), strides, v.dtype());
    copyInto(fresh, v);
    return fresh;
  }

private:
  static bool isStrided(const GraphNode &n) { return n.op == &opInfo(OpId::AsStrided); }
  static bool indexesFlat(const GraphNode &n) { return isStrided(n) || n.op == &opInfo(OpId::AsStridedScatter); }

  Number number(const Number &n) const { return n.ref() ? numbers_[numberIndex(n)] : n; }

  /// The node's arguments with this run's tensors, numbers and sizes. Mutated operands are private copies.
  OwnedArgs<Tensor> box(const GraphNode &n) {
    SmallVec<Arg<Tensor>, 12> args;
    std::vector<Tensor> tensors;
    std::vector<Dim> dims;
    size_t total = 0, totalDims = 0;
    for (const Arg<GVal> &a : n.args.args()) {
      total += std::max<size_t>(1, a.values().size());
      totalDims += a.tag == ArgTag::DimList ? a.size : 0;
    }
    tensors.reserve(total);
    dims.reserve(totalDims);
    Span<const Arg<GVal>> in = n.args.args();
    for (size_t i = 0; i < in.size(); ++i) {
      const Arg<GVal> &a = in[i];
      ParamKind kind = n.op->params[i].kind;
      Arg<Tensor> out;
      out.tag = a.tag;
      out.dtype = a.dtype;
      out.size = a.size;
      out.i = a.i;
      out.num = number(a.num);
      out.dim = Dim(evaluate(a.dim, symbols_));
      if (a.tag == ArgTag::Num && isTensorKind(kind)) {
        tensors.push_back(Tensor(out.num));
        out = Arg<Tensor>::of(tensors.back());
      } else if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
        out.value = tensors.data() + tensors.size();
        for (const GVal &v : a.values())
          tensors.push_back(v.id < 0 ? Tensor() : isMutatedKind(kind) ? ops::clone(values_[v.id]) : values_[v.id]);
      } else if (a.tag == ArgTag::DimList) {
        out.dims = dims.data() + dims.size();
        for (const Dim &d : a.dimList())
          dims.push_back(Dim(evaluate(d, symbols_)));
      } else if (a.tag == ArgTag::Rng) {
        rng_.manualSeed(static_cast<uint64_t>(number(a.num).rawBits()));
        rng_.setOffset(static_cast<uint64_t>(numbers_[a.dim.value()].rawBits()));
        out.rng = &rng_;
      }
      args.push_back(out);
    }
    if (indexesFlat(n))
      tensors[0] = ops::contiguous(tensors[0]);
    return OwnedArgs<Tensor>(Span<const Arg<Tensor>>(args.data(), args.size()));
  }

  /// as_strided of the row-major flattening of its operand.
  static Tensor stridedView(Span<const Arg<Tensor>> args) {
    const Tensor &base = *args[0].value;
    Sizes sizes, strides;
    for (const Dim &d : args[1].dimList())
      sizes.push_back(d.value());
    for (const Dim &d : args[2].dimList())
      strides.push_back(d.value());
    int64_t offset = args[3].isNone() ? 0 : args[3].dim.value();
    return Tensor::viewOf(base.storageRef(), sizes, strides, base.offset() + offset, base.dtype());
  }

  const Graph &g_;
  Span<const Number> numbers_;
  Ints symbols_;
  std::vector<Tensor> values_;
  std::vector<int64_t> lastUse_;
  Generator rng_;
};

/// The message with " (file:line)" at the end of its first line: the statement that recorded the op, which is not
/// where Python stands now.
std::string located(std::string message, const std::string &place) {
  if (!place.empty())
    message.insert(std::min(message.find('\n'), message.size()), " (" + place.substr(place.rfind('/') + 1) + ")");
  return message;
}

} // namespace

void interpret(const Graph &g, Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols,
               std::vector<Tensor> &outs) {
  InterceptorScope eager(nullptr);
  bool before = gradEnabled();
  setGradEnabled(false);
  try {
    Frame frame(g, inputs, numbers, symbols);
    for (size_t i = 0; i < g.nodes.size(); ++i)
      try {
        frame.run(i);
      } catch (const Error &e) {
        throw Error(e.kind(), located(e.what(), locText(g.nodes[i].loc)));
      }
    std::vector<Tensor> results;
    for (const GraphOutput &o : g.outputs) {
      Sizes strides;
      for (const Dim &d : o.strides)
        strides.push_back(evaluate(d, symbols));
      results.push_back(frame.result(o.value, strides));
    }
    for (size_t i = 0; i < g.outputs.size(); ++i)
      if (g.outputs[i].writeBack >= 0) {
        Tensor target = inputs[g.outputs[i].writeBack];
        copyInto(target, results[i]);
        results[i] = target;
      }
    outs = std::move(results);
  } catch (...) {
    setGradEnabled(before);
    throw;
  }
  setGradEnabled(before);
}

} // namespace dlc
