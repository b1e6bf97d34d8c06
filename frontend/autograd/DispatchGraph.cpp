// A graph through the dispatcher: under the tape, and recorded where something records.
#include "frontend/autograd/GradPlan.h"
#include "runtime/op/Functional.h"

namespace dlc {
namespace {

class Run {
public:
  Run(const Graph &g, Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols)
      : g_(g), numbers_(numbers), symbols_(symbols), values_(g.values.size()), lastUse_(g.values.size()) {
    for (size_t i = 0; i < inputs.size(); ++i)
      values_[g.inputs[i]] = inputs[i];
    for (size_t n = 0; n < g.nodes.size(); ++n)
      for (const GVal &v : g.nodes[n].args.values())
        if (v.id >= 0)
          lastUse_[v.id] = n;
    for (const GraphOutput &o : g.outputs)
      lastUse_[o.value] = g.nodes.size();
  }

  std::vector<Tensor> run() {
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      step(i);
    std::vector<Tensor> outs;
    for (const GraphOutput &o : g_.outputs)
      outs.push_back(values_[o.value]);
    return outs;
  }

private:
  Number number(const Number &n) const { return n.ref() ? numbers_[numberIndex(n)] : n; }

  void step(size_t index) {
    const GraphNode &n = g_.nodes[index];
    DLC_CHECK(!n.op->has(kMutates), n.op->name, " in a gradient");
    Span<const Arg<GVal>> in = n.args.args();
    std::vector<Tensor> tensors;
    std::vector<Dim> dims;
    size_t count = in.size(), dimCount = 0;
    for (const Arg<GVal> &a : in) {
      count += a.values().size();
      dimCount += a.tag == ArgTag::DimList ? a.size : 0;
    }
    tensors.reserve(count);
    dims.reserve(dimCount);
    Generator rng;
    SmallVec<Arg<Tensor>, 12> args;
    for (size_t i = 0; i < in.size(); ++i)
      args.push_back(box(in[i], n.op->params[i].kind, tensors, dims, rng));
    if (n.op == &opInfo(OpId::AsStrided) || n.op == &opInfo(OpId::AsStridedScatter))
      tensors[0] = flat(tensors[0]);
    SmallVec<Tensor, 3> outs;
    dispatch(*n.op, Span<const Arg<Tensor>>(args.data(), args.size()), outs);
    for (size_t i = 0; i < outs.size(); ++i)
      values_[n.results[i]] = outs[i];
    for (const GVal &v : n.args.values())
      if (v.id >= 0 && lastUse_[v.id] == index)
        values_[v.id] = Tensor();
  }

  /// In the graph as_strided indexes the row-major flattening of its operand.
  static Tensor flat(const Tensor &t) {
    Tensor c = ops::contiguous(t);
    return c.offset() ? ops::clone(c) : c;
  }

  Arg<Tensor> box(const Arg<GVal> &a, ParamKind kind, std::vector<Tensor> &tensors, std::vector<Dim> &dims,
                  Generator &rng) const {
    Arg<Tensor> out;
    out.tag = a.tag;
    out.dtype = a.dtype;
    out.size = a.size;
    out.i = a.i;
    out.num = number(a.num);
    out.dim = Dim(evaluate(a.dim, symbols_));
    if (a.tag == ArgTag::Num && isTensorKind(kind)) {
      tensors.push_back(Tensor(out.num));
      return Arg<Tensor>::of(tensors.back());
    }
    if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
      out.value = tensors.data() + tensors.size();
      for (const GVal &v : a.values())
        tensors.push_back(v.id < 0 ? Tensor() : values_[v.id]);
    } else if (a.tag == ArgTag::DimList) {
      out.dims = dims.data() + dims.size();
      for (const Dim &d : a.dimList())
        dims.push_back(Dim(evaluate(d, symbols_)));
    } else if (a.tag == ArgTag::Rng) {
      rng.manualSeed(static_cast<uint64_t>(number(a.num).rawBits()));
      rng.setOffset(static_cast<uint64_t>(numbers_[a.dim.value()].rawBits()));
      out.rng = &rng;
    }
    return out;
  }

  const Graph &g_;
  Span<const Number> numbers_;
  Ints symbols_;
  std::vector<Tensor> values_;
  std::vector<size_t> lastUse_;
};

} // namespace

std::vector<Tensor> dispatchGraph(const Graph &g, Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols) {
  return Run(g, inputs, numbers, symbols).run();
}

} // namespace dlc
