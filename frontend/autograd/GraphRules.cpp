// Instances of all rules and gradients for values of a graph.
#include "frontend/autograd/GraphRules.h"
#include "runtime/op/Functional.h"
#include "runtime/op/NumberType.h"

namespace dlc {
namespace {
thread_local GraphRuleScope *scope = nullptr;
}

GraphRuleScope::GraphRuleScope(Graph &graph, std::vector<Dim> &sizeNumbers, bool higherOrder)
    : graph(graph), sizeNumbers(sizeNumbers), higherOrder(higherOrder), previous_(scope) {
  scope = this;
}
GraphRuleScope::~GraphRuleScope() { scope = previous_; }

bool isDefined(const GradVal &v) { return v.id >= 0 || v.number; }
TensorMeta metaOf(const GradVal &v) {
  if (v.id >= 0)
    return scope->graph.values[v.id];
  TensorMeta m;
  if (v.number) {
    m.dtype = v.number->isFloat() ? DType::F64 : v.number->dtype();
    m.defined = m.wrapped = true;
  }
  return m;
}

template <> struct Builder<GradVal> {
  static void call(const OpInfo &op, Span<const Arg<GradVal>> args, SmallVec<GradVal, 3> &outs);
  /// A size as a float number.
  static Number number(const Dim &d) {
    Number hint(static_cast<double>(d.value()));
    if (d.isConst())
      return hint;
    scope->sizeNumbers.push_back(d);
    return scope->graph.addNumber(hint);
  }
  static std::optional<double> constant(const GradVal &v) {
    return v.number && !v.number->ref() ? std::optional<double>(v.number->toDouble()) : std::nullopt;
  }
  static bool higherOrder() { return scope->higherOrder; }
};

} // namespace dlc

#include "runtime/rules/Decompositions.h"
#include "runtime/rules/Grad.h"

namespace dlc::rules {
namespace {

#include "runtime/rules/VjpActivation.inc"
#include "runtime/rules/VjpContraction.inc"
#include "runtime/rules/VjpCreation.inc"
#include "runtime/rules/VjpElementwise.inc"
#include "runtime/rules/VjpIndex.inc"
#include "runtime/rules/VjpLogic.inc"
#include "runtime/rules/VjpNn.inc"
#include "runtime/rules/VjpOptim.inc"
#include "runtime/rules/VjpReduce.inc"
#include "runtime/rules/VjpView.inc"

void deliverTo(SmallVec<GradVal, 3> &outs, GradVal v) { outs.push_back(v); }
template <size_t N> void deliverTo(SmallVec<GradVal, 3> &outs, std::array<GradVal, N> r) {
  outs.append(r.begin(), r.end());
}
void deliverTo(SmallVec<GradVal, 3> &outs, std::vector<GradVal> r) { outs.append(r.begin(), r.end()); }

bool runRule(const OpInfo &op, Span<const Arg<GradVal>> args, SmallVec<GradVal, 3> &outs) {
  switch (static_cast<OpId>(op.id)) {
#define DLC_RULE(cls, fn)                                                                                              \
  case OpId::cls:                                                                                                      \
    deliverTo(outs, fn(cls##Args<GradVal>::unpack(args)));                                                             \
    return true;
#include "runtime/rules/RuleCases.inc"
#undef DLC_RULE
  default:
    return false;
  }
}

void runVjp(const OpInfo &op, Span<const Arg<GradVal>> args, Span<const GradVal> results, Span<const GradVal> grads,
            Span<const bool> wanted, Span<GradVal> out) {
  switch (static_cast<OpId>(op.id)) {
#define DLC_VJP(cls, fn)                                                                                               \
  case OpId::cls:                                                                                                      \
    return fn<GradVal>(args, results, grads, wanted, out);
#include "runtime/rules/VjpCases.inc"
#undef DLC_VJP
  default:
    fail(ErrorKind::Internal, str(op.name, " has no gradient"));
  }
}

} // namespace
} // namespace dlc::rules

namespace dlc {
namespace {

/// A number where the record wants a tensor: a 0-d tensor of the type that lifts nobody beside it.
GradVal numberTensor(const Number &n, Span<const Arg<GradVal>> among) {
  NumberType type(n.category());
  for (const Arg<GradVal> &a : among)
    for (const GradVal &v : a.values())
      if (v.id >= 0)
        type.beside(metaOf(v).dtype, metaOf(v).dim() > 0);
  Arg<GradVal> args[4] = {Arg<GradVal>::ofDims(Span<const Dim>()), Arg<GradVal>::number(n),
                          Arg<GradVal>::ofDType(type.get()), Arg<GradVal>()};
  return appendCall(opInfo(OpId::Full), args);
}

template <class V, class W> Arg<W> boxedAs(const Arg<V> &a) {
  Arg<W> g;
  g.tag = a.tag;
  g.dtype = a.dtype;
  g.size = a.size;
  g.i = a.i;
  g.num = a.num;
  g.dim = a.dim;
  return g;
}

} // namespace

void Builder<GradVal>::call(const OpInfo &op, Span<const Arg<GradVal>> args, SmallVec<GradVal, 3> &outs) {
  if (!op.has(kInIr)) {
    DLC_CHECK(rules::runRule(op, args, outs), op.name, " has neither a graph form nor a rule");
    return;
  }
  size_t count = 0;
  for (const Arg<GradVal> &a : args)
    count += a.values().size();
  std::vector<GVal> held;
  held.reserve(count);
  SmallVec<Arg<GVal>, 12> gargs;
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg<GradVal> &a = args[i];
    ParamKind kind = op.params[i].kind;
    Arg<GVal> g = boxedAs<GradVal, GVal>(a);
    DLC_CHECK(a.tag != ArgTag::Rng, op.name, ": a gradient rule can't draw random numbers");
    if (a.tag == ArgTag::Value && a.value->number && (kind == ParamKind::TN || kind == ParamKind::TNOpt)) {
      g.tag = ArgTag::Num;
      g.num = *a.value->number;
    } else if (a.tag == ArgTag::Value || a.tag == ArgTag::ValueList) {
      size_t at = held.size();
      for (const GradVal &v : a.values())
        held.push_back(GVal{v.number ? numberTensor(*v.number, args).id : v.id});
      g.value = held.data() + at;
      if (a.tag == ArgTag::Value && held[at].id < 0) // an absent optional
        g = Arg<GVal>();
    }
    gargs.push_back(g);
  }
  Graph &graph = scope->graph;
  GraphNode n;
  n.op = &op;
  n.args = OwnedArgs<GVal>(Span<const Arg<GVal>>(gargs.data(), gargs.size()));
  n.loc = scope->loc;
  SmallVec<TensorMeta, 3> metas;
  inferNode(graph, op, n.args.args(), metas);
  for (const TensorMeta &m : metas) {
    n.results.push_back(graph.addValue(m));
    outs.push_back(m.defined ? GradVal(GVal{n.results.back()}) : GradVal());
  }
  graph.nodes.push_back(std::move(n));
}

GradVal appendCall(const OpInfo &op, Span<const Arg<GradVal>> args) {
  SmallVec<GradVal, 3> outs;
  Builder<GradVal>::call(op, args, outs);
  return outs[0];
}

void appendGradient(const OpInfo &op, Span<const Arg<GVal>> args, Span<const int32_t> results,
                    Span<const GradVal> grads, Span<const bool> wanted, std::vector<GradVal> &out) {
  std::vector<GradVal> held;
  size_t count = 0;
  for (const Arg<GVal> &a : args)
    count += std::max<size_t>(1, a.values().size());
  held.reserve(count);
  SmallVec<Arg<GradVal>, 12> boxed;
  for (size_t i = 0; i < args.size(); ++i) {
    Arg<GradVal> g = boxedAs<GVal, GradVal>(args[i]);
    size_t at = held.size();
    if (args[i].tag == ArgTag::Num && isTensorKind(op.params[i].kind)) {
      held.push_back(GradVal(args[i].num));
      g = Arg<GradVal>::of(held[at]);
    } else if (args[i].tag == ArgTag::Value || args[i].tag == ArgTag::ValueList) {
      for (const GVal &v : args[i].values())
        held.push_back(GradVal(v));
      g.value = held.data() + at;
    } else if (args[i].tag == ArgTag::Rng) {
      g.rng = nullptr;
    }
    boxed.push_back(g);
  }
  std::vector<GradVal> outs;
  for (int32_t r : results)
    outs.push_back(GradVal(GVal{r}));
  out.assign(wanted.size(), GradVal());
  rules::runVjp(op, Span<const Arg<GradVal>>(boxed.data(), boxed.size()), outs, grads, wanted, out);
}

} // namespace dlc
