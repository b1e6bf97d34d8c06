// Reverse accumulation over a graph: the tape's calls in reverse order of recording, as the engine walks them.
#include "frontend/autograd/Joint.h"
#include "frontend/autograd/GraphRules.h"
#include "runtime/op/Functional.h"

namespace dlc {
namespace {

/// Calls f(value or null) for each flattened tensor operand, as gradient rules count them.
template <class F> void forEachOperand(const OpInfo &op, Span<const Arg<GVal>> args, F &&f) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].tag == ArgTag::Num && isTensorKind(op.params[i].kind))
      f(nullptr);
    for (const GVal &v : args[i].values())
      f(&v);
  }
}

/// The call that a node is (the last part of), or -1.
int32_t callOf(const std::vector<int32_t> &callOfValue, const GraphNode &n) {
  for (int32_t r : n.results)
    if (callOfValue[r] >= 0)
      return callOfValue[r];
  return -1;
}

std::vector<int32_t> callsByValue(const Graph &g, const trace::GradLog &log) {
  std::vector<int32_t> call(g.values.size(), -1);
  for (size_t c = 0; c < log.calls.size(); ++c)
    for (int32_t r : log.calls[c].results)
      call[r] = static_cast<int32_t>(c);
  return call;
}

class Differentiator {
public:
  Differentiator(Joint &joint, const trace::GradLog &log, const JointRequest &request)
      : joint_(joint), log_(log), grads_(joint.graph.values.size()),
        active_(activeValues(joint.graph, log, request.targets)), call_(callsByValue(joint.graph, log)),
        scope_(joint.graph, joint.sizeNumbers, request.higherOrder) {}

  void run(const JointRequest &request) {
    for (int32_t r : request.roots) {
      int32_t c = cotangentOf(r);
      joint_.cotangents.push_back(c);
      if (joint_.name.empty())
        joint_.name = nameOf(r);
      add(r, GradVal(GVal{c}));
    }
    // A call is taken at the last node that makes one of its results: its consumers all come later.
    std::vector<bool> done(log_.calls.size());
    for (size_t i = joint_.forwardNodes; i-- > 0;) {
      const GraphNode node = joint_.graph.nodes[i]; // a copy: rules append
      int32_t c = callOf(call_, node);
      if (c < 0) {
        pull(*node.op, node.args.args(), node.results, {}, node.loc);
      } else if (!done[c]) {
        done[c] = true;
        const trace::GradCall &call = log_.calls[c];
        bool own = call.args.args().size() != 0;
        pull(*call.op, own ? call.args.args() : node.args.args(), call.results, call.wanted, node.loc);
      }
    }
    for (int32_t t : request.targets)
      joint_.gradients.push_back(materialize(grads_[t], t));
  }

private:
  std::string nameOf(int32_t value) const {
    for (size_t i = joint_.forwardNodes; i-- > 0;)
      for (int32_t r : joint_.graph.nodes[i].results)
        if (r == value)
          return gradNodeName(call_[r] >= 0 ? *log_.calls[call_[r]].op : *joint_.graph.nodes[i].op);
    return "";
  }

  void pull(const OpInfo &op, Span<const Arg<GVal>> args, Span<const int32_t> results, const std::vector<bool> &wanted,
            uint32_t loc) {
    std::vector<GradVal> grads;
    bool any = false;
    for (int32_t r : results) {
      grads.push_back(grads_[r]);
      any |= isDefined(grads_[r]);
    }
    if (!any)
      return;
    SmallVec<bool, 8> needs;
    std::vector<int32_t> to;
    bool some = false;
    forEachOperand(op, args, [&](const GVal *v) {
      bool need = v && v->id >= 0 && active_[v->id] && (wanted.empty() || wanted[to.size()]);
      to.push_back(need ? v->id : -1);
      needs.push_back(need);
      some |= need;
    });
    if (!some)
      return;
    DLC_REQUIRE(op.has(kDifferentiable), NotImplemented, op.name, " has no gradient");
    scope_.loc = loc;
    std::vector<GradVal> out;
    appendGradient(op, args, results, grads, Span<const bool>(needs.data(), needs.size()), out);
    grads_.resize(joint_.graph.values.size());
    for (size_t i = 0; i < to.size(); ++i)
      if (to[i] >= 0 && isDefined(out[i]))
        add(to[i], out[i]);
  }

  void add(int32_t value, const GradVal &g) {
    GradVal &slot = grads_[value];
    if (!isDefined(slot)) {
      slot = g;
      return;
    }
    Number one(1);
    Arg<GradVal> args[3] = {Arg<GradVal>::of(slot), Arg<GradVal>::of(g), Arg<GradVal>::number(one)};
    GradVal sum = appendCall(opInfo(OpId::Add), args);
    grads_.resize(joint_.graph.values.size());
    grads_[value] = sum;
  }

  int32_t cotangentOf(int32_t root) {
    const TensorMeta &m = joint_.graph.values[root];
    int32_t c = joint_.graph.addValue(TensorMeta::contiguous(m.dtype, m.sizes));
    grads_.resize(joint_.graph.values.size());
    return c;
  }
  int32_t materialize(const GradVal &g, int32_t target) {
    if (!isDefined(g))
      return -1;
    DLC_CHECK(g.id >= 0, "the gradient of value ", target, " is a number");
    return g.id;
  }

  Joint &joint_;
  const trace::GradLog &log_;
  std::vector<GradVal> grads_;
  std::vector<bool> active_;
  std::vector<int32_t> call_; // per forward value: the call it is a result of
  GraphRuleScope scope_;
};

} // namespace

std::vector<bool> activeValues(const Graph &g, const trace::GradLog &log, Span<const int32_t> targets) {
  std::vector<bool> active(g.values.size());
  for (int32_t v : targets)
    active[v] = true;
  std::vector<int32_t> calls = callsByValue(g, log);
  for (const GraphNode &n : g.nodes) {
    int32_t c = callOf(calls, n);
    bool own = c >= 0 && log.calls[c].args.args().size() != 0;
    bool any = false;
    size_t k = 0;
    forEachOperand(c >= 0 ? *log.calls[c].op : *n.op, own ? log.calls[c].args.args() : n.args.args(),
                   [&](const GVal *v) {
                     any |= v && v->id >= 0 && active[v->id] && (c < 0 || log.calls[c].wanted[k]);
                     ++k;
                   });
    if (!any || !(c >= 0 || n.op->has(kDifferentiable)))
      continue;
    size_t count = n.results.size() - countMutated(*n.op, n.args.args());
    for (size_t i = 0; i < count; ++i)
      if (isFloat(g.values[n.results[i]].dtype))
        active[n.results[i]] = true;
  }
  return active;
}

Joint differentiate(const Graph &forward, const trace::GradLog &log, const JointRequest &request) {
  Joint joint;
  joint.graph = forward;
  joint.forwardNodes = forward.nodes.size();
  Differentiator(joint, log, request).run(request);
  return joint;
}

trace::GradLog wholeLog(const Graph &graph, Span<const int32_t> inputs) {
  trace::GradLog log;
  log.inputs = inputs.vec();
  for (const GraphNode &n : graph.nodes) {
    if (!n.op->has(kDifferentiable))
      continue;
    trace::GradCall call;
    call.op = n.op;
    call.results = n.results;
    Span<const Arg<GVal>> args = n.args.args();
    for (size_t i = 0; i < args.size(); ++i) {
      size_t count = args[i].tag == ArgTag::Num && isTensorKind(n.op->params[i].kind) ? 1 : args[i].values().size();
      call.wanted.resize(call.wanted.size() + count, true);
    }
    log.calls.push_back(std::move(call));
  }
  return log;
}

std::string gradNodeName(const OpInfo &op) {
  std::string n;
  bool up = true;
  for (const char *c = op.name; *c; ++c) {
    if (*c == '_') {
      up = true;
      continue;
    }
    n += up ? static_cast<char>(std::toupper(*c)) : *c;
    up = false;
  }
  return n + "Backward0";
}

} // namespace dlc
