// Pieces too small to compile, run again: arguments are laid out once, and each run calls the eager kernels directly.
#include "frontend/compile/PieceCode.h"
#include "runtime/core/StorageWatch.h"
#include "runtime/op/Ops.h"
#include <unordered_map>

namespace dlc {
namespace {

/// A number that is a constant or a symbol of the code.
struct IntSlot {
  int64_t value = 0;
  int32_t symbol = -1;
  int64_t at(Ints symbols) const { return symbol < 0 ? value : symbols[static_cast<size_t>(symbol)]; }
  friend bool operator==(const IntSlot &a, const IntSlot &b) {
    return a.symbol == b.symbol && (a.symbol >= 0 || a.value == b.value);
  }
};
using IntSlots = std::vector<IntSlot>;

Sizes valuesOf(const IntSlots &slots, Ints symbols) {
  Sizes s;
  s.reserve(slots.size());
  for (const IntSlot &i : slots)
    s.push_back(i.at(symbols));
  return s;
}

/// Gives each distinct expression a symbol of the code.
class Symbols {
public:
  Dim of(const Dim &d) {
    if (d.isConst())
      return d;
    auto [it, isNew] = ids_.try_emplace(d.expr(), static_cast<uint32_t>(exprs.size()));
    if (isNew)
      exprs.push_back(d);
    return Dim::symbol(it->second, d.value());
  }
  IntSlot slot(const Dim &d) {
    if (d.isConst())
      return {d.value(), -1};
    return {0, static_cast<int32_t>(of(d).expr()->terms[0].factors[0]->symbol)};
  }
  IntSlots slots(const Dims &dims) {
    IntSlots out;
    for (const Dim &d : dims)
      out.push_back(slot(d));
    return out;
  }
  std::vector<Dim> exprs;

private:
  std::unordered_map<const DimExpr *, uint32_t> ids_;
};

/// Where a tensor argument comes from.
struct TensorSlot {
  int32_t value = -1;  ///< of the graph
  int64_t number = -1; ///< a number operand in the place of a tensor
  Tensor constant;     ///< a number that is part of the program
};

struct Result {
  int32_t value;
  DType dtype;
  IntSlots sizes, strides;
  IntSlot offset; ///< of views, from their operand's
};

struct Call {
  const OpInfo *op;
  OwnedArgs<GVal> shape;           ///< tags, attributes and where the tensors are
  std::vector<TensorSlot> tensors; ///< in order of the arguments
  IntSlots dims;                   ///< likewise
  std::vector<Result> results;
  bool isView = false;
};

struct Output {
  int32_t value, writeBack;
  bool direct; ///< the value's own memory is the output
  IntSlots strides;
};

bool isPlain(const GraphNode &n) {
  const OpInfo &op = *n.op;
  if (op.has(kMutates) || op.has(kRandom) || &op == &opInfo(OpId::AsStrided) || &op == &opInfo(OpId::AsStridedScatter))
    return false;
  return op.kind == OpKind::View || op.kernel;
}

class SmallCode final : public trace::PieceCode {
public:
  SmallCode(const Graph &g, const std::vector<trace::NumberSource> &numbers, Symbols &symbols)
      : numValues_(g.values.size()), inputs_(g.inputs), numNodes_(g.nodes.size()) {
    for (const GraphNode &n : g.nodes)
      plain_ &= isPlain(n);
    for (const TensorMeta &m : g.values)
      work_ += static_cast<size_t>(m.numel().value());
    if (!plain_) {
      lifted_ = lift(g, symbols);
      return;
    }
    std::vector<bool> fresh(numValues_);
    for (const GraphNode &n : g.nodes) {
      calls_.push_back(prepare(g, n, numbers, symbols));
      for (int32_t v : n.results)
        fresh[v] = !calls_.back().isView;
    }
    for (const GraphOutput &o : g.outputs) {
      Output out{o.value, o.writeBack, false, symbols.slots(o.strides)};
      out.direct = o.writeBack < 0 && fresh[o.value] && out.strides == symbols.slots(g.values[o.value].strides);
      if (out.direct)
        fresh[o.value] = false; // once
      outputs_.push_back(std::move(out));
    }
  }

  bool accepts(Ints) const override { return true; }
  size_t numNodes() const override { return numNodes_; }
  bool isShort() const override { return work_ < 20000; }

  void run(Span<const Tensor> inputs, Span<const Number> numbers, Ints symbols, std::vector<Tensor> &outs) override {
    countSmallPiece();
    if (!plain_)
      return interpret(lifted_, inputs, numbers, symbols, outs);
    SmallVec<Tensor, 8> values(numValues_);
    for (size_t i = 0; i < inputs.size(); ++i)
      values[static_cast<size_t>(inputs_[i])] = inputs[i];
    for (const Call &c : calls_)
      call(c, values, numbers, symbols);
    outs.clear();
    outs.reserve(outputs_.size());
    for (const Output &o : outputs_) {
      const Tensor &v = values[static_cast<size_t>(o.value)];
      outs.push_back(o.direct ? v : copyOf(v, o, symbols));
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (int32_t to = outputs_[i].writeBack; to >= 0) {
        copyInto(inputs[static_cast<size_t>(to)], outs[i]);
        outs[i] = inputs[static_cast<size_t>(to)];
      }
  }

private:
  static Graph lift(const Graph &g, Symbols &symbols) {
    Graph out = g;
    for (GraphNode &n : out.nodes)
      forEachDim(n.args, [&](Dim &d) { d = symbols.of(d); });
    for (GraphOutput &o : out.outputs)
      for (Dim &d : o.strides)
        d = symbols.of(d);
    return out;
  }

  static Call prepare(const Graph &g, const GraphNode &n, const std::vector<trace::NumberSource> &numbers,
                      Symbols &symbols) {
    Call c;
    c.op = n.op;
    c.shape = n.args;
    c.isView = n.op->kind == OpKind::View;
    Span<const Arg<GVal>> args = n.args.args();
    for (size_t i = 0; i < args.size(); ++i) {
      const Arg<GVal> &a = args[i];
      if (a.tag == ArgTag::Num && isTensorKind(n.op->params[i].kind)) {
        TensorSlot s;
        int64_t at = numberIndex(a.num);
        if (at >= 0 && numbers[static_cast<size_t>(at)].kind != trace::NumberSource::Kind::Constant)
          s.number = at;
        else
          s.constant = Tensor(a.num.hint());
        c.tensors.push_back(std::move(s));
      }
      for (const GVal &v : a.values()) {
        TensorSlot s;
        s.value = v.id;
        c.tensors.push_back(std::move(s));
      }
      if (a.tag == ArgTag::Dim)
        c.dims.push_back(symbols.slot(a.dim));
      else if (a.tag == ArgTag::DimList)
        for (const Dim &d : a.dimList())
          c.dims.push_back(symbols.slot(d));
    }
    for (int32_t v : n.results) {
      const TensorMeta &m = g.values[v];
      c.results.push_back({v, m.dtype, symbols.slots(m.sizes), symbols.slots(m.strides), {}});
    }
    if (c.isView)
      c.results[0].offset = symbols.slot(viewOffset(g, n));
    return c;
  }

  /// What the view's meta adds to the offset of its operand, which in the graph is 0.
  static Dim viewOffset(const Graph &g, const GraphNode &n) {
    FactSink known; // recorded when the node was
    SmallVec<Arg<TensorMeta>, 12> args;
    for (const Arg<GVal> &a : n.args.args()) {
      Arg<TensorMeta> m;
      m.tag = a.tag;
      m.dtype = a.dtype;
      m.size = a.size;
      m.i = a.i;
      m.num = a.num;
      m.dim = a.dim;
      if (a.tag == ArgTag::Value)
        m.value = &g.values[static_cast<size_t>(a.value->id)];
      args.push_back(m);
    }
    MetaResult r;
    n.op->meta(Span<const Arg<TensorMeta>>(args.data(), args.size()), r);
    return r.outs[0].offset;
  }

  static void call(const Call &c, SmallVec<Tensor, 8> &values, Span<const Number> numbers, Ints symbols) {
    if (c.isView) {
      const Tensor &of = values[static_cast<size_t>(c.tensors[0].value)];
      const Result &r = c.results[0];
      values[static_cast<size_t>(r.value)] =
          Tensor::viewOf(of.storageRef(), valuesOf(r.sizes, symbols), valuesOf(r.strides, symbols),
                         of.impl()->offset + r.offset.at(symbols), r.dtype);
      return;
    }
    SmallVec<Arg<Tensor>, 8> args;
    SmallVec<Tensor, 6> tensors;
    SmallVec<Dim, 8> dims;
    args.reserve(c.shape.args().size());
    tensors.reserve(c.tensors.size());
    dims.reserve(c.dims.size());
    for (const TensorSlot &s : c.tensors)
      tensors.push_back(s.value >= 0    ? values[static_cast<size_t>(s.value)]
                        : s.number >= 0 ? Tensor(numbers[static_cast<size_t>(s.number)])
                                        : s.constant);
    for (const IntSlot &d : c.dims)
      dims.push_back(Dim(d.at(symbols)));
    box(c, tensors.data(), dims.data(), numbers, args);
    SmallVec<Tensor, 3> outs;
    for (const Result &r : c.results)
      outs.push_back(Tensor::emptyStrided(valuesOf(r.sizes, symbols), valuesOf(r.strides, symbols), r.dtype));
    c.op->kernel(Span<const Arg<Tensor>>(args.data(), args.size()), Span<Tensor>(outs.data(), outs.size()));
    for (size_t i = 0; i < outs.size(); ++i)
      values[static_cast<size_t>(c.results[i].value)] = std::move(outs[i]);
  }

  static void box(const Call &c, const Tensor *tensor, const Dim *dim, Span<const Number> numbers,
                  SmallVec<Arg<Tensor>, 8> &args) {
    Span<const Arg<GVal>> shape = c.shape.args();
    for (size_t i = 0; i < shape.size(); ++i) {
      const Arg<GVal> &a = shape[i];
      Arg<Tensor> out;
      out.tag = a.tag;
      out.dtype = a.dtype;
      out.size = a.size;
      out.i = a.i; // the widest member
      if (a.tag == ArgTag::Num && isTensorKind(c.op->params[i].kind)) {
        out = Arg<Tensor>::of(*tensor++);
      } else if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
        out.value = tensor;
        tensor += a.values().size();
      } else if (a.tag == ArgTag::Num) {
        int64_t at = numberIndex(a.num);
        out.num = at >= 0 ? numbers[static_cast<size_t>(at)] : a.num;
      } else if (a.tag == ArgTag::Dim) {
        out.dim = *dim++;
      } else if (a.tag == ArgTag::DimList) {
        out.dims = dim;
        dim += a.size;
      }
      args.push_back(out);
    }
  }

  static Tensor copyOf(const Tensor &v, const Output &o, Ints symbols) {
    Tensor t = Tensor::emptyStrided(v.sizes(), valuesOf(o.strides, symbols), v.dtype());
    copyInto(t, v);
    return t;
  }
  static void copyInto(const Tensor &to, const Tensor &from) {
    Tensor target[1] = {to};
    Arg<Tensor> args[3] = {Arg<Tensor>::of(to), Arg<Tensor>::of(from), Arg<Tensor>::ofBool(false)};
    opInfo(OpId::Copy).kernel(args, target);
    StorageWatch::wrote(to.storage());
  }

  size_t numValues_;
  std::vector<int32_t> inputs_;
  std::vector<Call> calls_;
  std::vector<Output> outputs_;
  Graph lifted_; // for the interpreter, when some op wants more than its kernel
  bool plain_ = true;
  size_t numNodes_, work_ = 0;
};

} // namespace

void recordSmallPiece(trace::Piece &piece) {
  trace::PieceRecord &r = *piece.record;
  Symbols symbols;
  const Graph &g = piece.symbolic.values.empty() ? piece.graph : piece.symbolic;
  r.code = std::make_shared<SmallCode>(g, r.numbers, symbols);
  r.symbols = std::move(symbols.exprs);
}

} // namespace dlc
