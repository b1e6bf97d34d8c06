// The minimum cut between the forward's inputs and the backward's uses.
//
// Elementwise chains give the same bits each time (no fast math), so they may run again; reductions and products depend
// on the schedule and are saved. Memory that the user can write (inputs, outputs) is read again only if the tape would
// have saved it too: then a write raises eager's error, and any other write is legal and must not show.
#include "frontend/autograd/Partition.h"
#include "frontend/autograd/MinCut.h"
#include "runtime/op/Functional.h"

namespace dlc {
namespace {

/// Longer chains are cut: a value in them is saved.
constexpr int kMaxChain = 32;

bool isDense(const TensorMeta &m) {
  SmallVec<size_t> order;
  for (size_t i = 0; i < m.sizes.size(); ++i)
    order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return m.strides[a].value() > m.strides[b].value(); });
  Dim expected = 1;
  for (size_t k = order.size(); k-- > 0;) {
    size_t i = order[k];
    if (m.sizes[i].value() != 1 && !m.strides[i].same(expected))
      return false;
    expected *= m.sizes[i];
  }
  return true;
}

class Partitioner {
public:
  Partitioner(const Joint &joint, const trace::GradLog &log, const PartitionContext &context)
      : joint_(joint), g_(joint.graph), log_(log), context_(context), maker_(g_.values.size(), -1),
        root_(g_.values.size()), tapeSaves_(g_.values.size()), needed_(g_.values.size()), free_(g_.values.size()),
        depth_(g_.values.size()), inMemory_(g_.values.size()) {}

  Partition run() {
    aliases();
    findNeeded();
    findSavedByTape();
    findFree();
    cut();
    return std::move(p_);
  }

private:
  const GraphNode *maker(int32_t v) const { return maker_[v] < 0 ? nullptr : &g_.nodes[maker_[v]]; }
  bool ofForward(int32_t v) const { return v >= 0 && (maker_[v] < 0 ? isInput(v) : isForwardNode(maker_[v])); }
  bool isForwardNode(int32_t n) const { return static_cast<size_t>(n) < joint_.forwardNodes; }
  bool isInput(int32_t v) const { return std::find(g_.inputs.begin(), g_.inputs.end(), v) != g_.inputs.end(); }

  /// root_[v]: the value whose storage v views.
  void aliases() {
    for (size_t v = 0; v < root_.size(); ++v)
      root_[v] = static_cast<int32_t>(v);
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      for (int32_t r : g_.nodes[n].results) {
        maker_[r] = static_cast<int32_t>(n);
        if (g_.nodes[n].op->kind == OpKind::View)
          root_[r] = root_[g_.nodes[n].args.values()[0].id];
      }
  }

  void findNeeded() {
    std::vector<bool> live(g_.values.size());
    for (int32_t v : joint_.gradients)
      if (v >= 0)
        live[v] = true;
    for (size_t n = g_.nodes.size(); n-- > joint_.forwardNodes;) {
      bool any = false;
      for (int32_t r : g_.nodes[n].results)
        any |= live[r];
      if (any)
        for (const GVal &v : g_.nodes[n].args.values())
          if (v.id >= 0)
            live[v.id] = true;
    }
    for (size_t v = 0; v < live.size(); ++v)
      needed_[v] = live[v] && ofForward(static_cast<int32_t>(v));
    // What an op that does not fuse reads or makes is written to memory anyway.
    for (size_t n = 0; n < joint_.forwardNodes; ++n)
      if (!mayRecompute(*g_.nodes[n].op)) {
        for (int32_t r : g_.nodes[n].results)
          inMemory_[r] = true;
        for (const GVal &v : g_.nodes[n].args.values())
          if (v.id >= 0)
            inMemory_[root_[v.id]] = true;
      }
  }

  /// Which storages eager's tape would hold on to, and which of those the user can reach.
  void findSavedByTape() {
    for (const trace::GradCall &call : log_.calls) {
      const GraphNode *n = call.results.empty() ? nullptr : maker(call.results[0]);
      if (!n)
        continue;
      Span<const Arg<GVal>> args = call.args.args().size() ? call.args.args() : n->args.args();
      for (size_t i = 0; i < args.size(); ++i)
        if ((call.op->vjp.savedParams >> std::min<size_t>(i, 63) & 1) && !(call.copiesSelf && i == 0))
          for (const GVal &v : args[i].values())
            if (v.id >= 0)
              tapeSaved(*call.op, v.id);
      for (size_t i = 0; i < call.results.size(); ++i)
        if (call.op->vjp.savedResults >> std::min<size_t>(i, 63) & 1)
          tapeSaved(*call.op, call.results[i]);
    }
  }
  void tapeSaved(const OpInfo &op, int32_t v) {
    tapeSaves_[root_[v]] = true;
    for (size_t i = 0; i < g_.inputs.size(); ++i)
      if (root_[g_.inputs[i]] == root_[v])
        p_.checks.push_back({true, static_cast<int32_t>(i), &op, g_.values[v]});
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      if (g_.outputs[i].writeBack < 0 && root_[g_.outputs[i].value] == root_[v])
        p_.checks.push_back({false, static_cast<int32_t>(i), &op, g_.values[v]});
  }

  /// Memory that is there anyway and that nobody changes unseen.
  void findFree() {
    bool sharedWritten = false;
    std::vector<bool> written(g_.inputs.size());
    for (const GraphOutput &o : g_.outputs)
      if (o.writeBack >= 0) {
        written[o.writeBack] = true;
        sharedWritten |= shared(o.writeBack);
      }
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      int32_t v = g_.inputs[i];
      if (!tapeSaves_[root_[v]] || written[i] || (shared(i) && sharedWritten))
        continue;
      free_[v] = true;
      p_.inputs.push_back(static_cast<int32_t>(i));
    }
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      const GraphOutput &o = g_.outputs[i];
      if (o.writeBack >= 0 || !tapeSaves_[root_[o.value]] || free_[o.value] || isInput(o.value) ||
          !sameStrides(o.strides, g_.values[o.value].strides))
        continue;
      free_[o.value] = true;
      p_.outputs.push_back(static_cast<int32_t>(i));
    }
  }
  bool shared(size_t i) const { return i < context_.sharedInput.size() && context_.sharedInput[i]; }
  static bool sameStrides(const Dims &a, const Dims &b) {
    for (size_t i = 0; i < a.size(); ++i)
      if (!a[i].same(b[i]))
        return false;
    return a.size() == b.size();
  }

  int64_t capacity(int32_t v) const {
    if (free_[v])
      return 0;
    const GraphNode *n = maker(v);
    if (n && n->op->kind == OpKind::View) // computed again from its base
      return MinCut::kInfinite;
    int64_t bytes = std::max<int64_t>(1, bytesOf(g_.values[v]));
    return inMemory_[root_[v]] && n ? bytes : 2 * bytes;
  }

  /// Whether `v` can't be had from its operands, or is to be a start by the chain limit.
  bool isSource(int32_t v) {
    const GraphNode *n = maker(v);
    if (!n || !mayRecompute(*n->op))
      return true;
    int deepest = 0;
    for (const GVal &a : n->args.values())
      if (a.id >= 0)
        deepest = std::max(deepest, depth_[a.id]);
    depth_[v] = n->op->kind == OpKind::View ? deepest : deepest + 1;
    if (depth_[v] < kMaxChain)
      return false;
    depth_[v] = 0;
    return true;
  }

  void cut() {
    size_t n = g_.values.size(), source = 2 * n, sink = 2 * n + 1;
    MinCut flow(2 * n + 2);
    auto in = [](int32_t v) { return 2 * static_cast<size_t>(v); };
    auto out = [](int32_t v) { return 2 * static_cast<size_t>(v) + 1; };
    auto value = [&](int32_t v) {
      flow.edge(in(v), out(v), capacity(v));
      if (isSource(v))
        flow.edge(source, in(v), MinCut::kInfinite);
      if (needed_[v])
        flow.edge(out(v), sink, MinCut::kInfinite);
    };
    for (int32_t v : g_.inputs)
      value(v);
    for (size_t k = 0; k < joint_.forwardNodes; ++k)
      for (int32_t r : g_.nodes[k].results) {
        value(r);
        if (mayRecompute(*g_.nodes[k].op))
          for (const GVal &a : g_.nodes[k].args.values())
            if (a.id >= 0)
              flow.edge(out(a.id), in(r), MinCut::kInfinite);
      }
    flow.solve(source, sink);
    for (size_t v = 0; v < n; ++v)
      if (int32_t id = static_cast<int32_t>(v);
          ofForward(id) && !free_[v] && flow.beforeCut(in(id)) && !flow.beforeCut(out(id))) {
        p_.saved.push_back(id);
        p_.savedBytes += bytesOf(g_.values[v]);
      }
  }

  const Joint &joint_;
  const Graph &g_;
  const trace::GradLog &log_;
  const PartitionContext &context_;
  std::vector<int32_t> maker_; // node of a value
  std::vector<int32_t> root_;
  std::vector<bool> tapeSaves_, needed_, free_;
  std::vector<int> depth_;
  std::vector<bool> inMemory_;
  Partition p_;
};

/// Builds the backward: nodes of the joint graph that the gradients need, each operand before its first use.
class BackwardBuilder {
public:
  BackwardBuilder(const Joint &joint, const Partition &p)
      : joint_(joint), g_(joint.graph), p_(p), maker_(g_.values.size(), -1), map_(g_.values.size(), -1),
        done_(g_.nodes.size()) {
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      for (int32_t r : g_.nodes[n].results)
        maker_[r] = static_cast<int32_t>(n);
  }

  Graph run() {
    for (int32_t i : p_.inputs)
      input(g_.inputs[i]);
    for (int32_t i : p_.outputs)
      input(g_.outputs[i].value);
    for (int32_t v : p_.saved) {
      input(v);
      out_.values[map_[v]].strides = savedStrides(g_.values[v]);
    }
    for (int32_t v : joint_.cotangents)
      input(v);
    out_.numbers = g_.numbers;
    out_.symbols = g_.symbols;
    std::vector<bool> live(g_.values.size());
    for (int32_t v : joint_.gradients)
      if (v >= 0)
        live[v] = true;
    std::vector<size_t> order;
    for (size_t n = g_.nodes.size(); n-- > joint_.forwardNodes;)
      if (std::any_of(g_.nodes[n].results.begin(), g_.nodes[n].results.end(), [&](int32_t r) { return live[r]; })) {
        order.push_back(n);
        for (const GVal &v : g_.nodes[n].args.values())
          if (v.id >= 0)
            live[v.id] = true;
      }
    for (size_t k = order.size(); k-- > 0;)
      emit(order[k]);
    for (int32_t v : joint_.gradients)
      if (v >= 0) {
        need(v);
        GraphOutput o;
        o.value = map_[v];
        o.strides = savedStrides(out_.values[map_[v]]);
        out_.outputs.push_back(std::move(o));
      }
    return std::move(out_);
  }

private:
  void input(int32_t v) {
    map_[v] = out_.addValue(g_.values[v]);
    out_.inputs.push_back(map_[v]);
  }

  /// Makes `v` available, with what it is computed from.
  void need(int32_t v) {
    std::vector<int32_t> stack{v};
    while (!stack.empty()) {
      int32_t top = stack.back();
      if (map_[top] >= 0) {
        stack.pop_back();
        continue;
      }
      DLC_REQUIRE(maker_[top] >= 0, NotImplemented, "backward: an input ", describe(g_.values[top]),
                  " of a compiled function is needed for this gradient, but was not kept"
                  "\ncall the function uncompiled (dlc.compiler.disable) where this gradient is taken");
      const GraphNode &n = g_.nodes[maker_[top]];
      bool ready = true;
      for (const GVal &a : n.args.values())
        if (a.id >= 0 && map_[a.id] < 0) {
          stack.push_back(a.id);
          ready = false;
        }
      if (ready) {
        append(maker_[top]);
        stack.pop_back();
      }
    }
  }

  void emit(size_t n) {
    for (const GVal &a : g_.nodes[n].args.values())
      if (a.id >= 0)
        need(a.id);
    append(n);
  }

  void append(size_t index) {
    if (done_[index])
      return;
    done_[index] = true;
    GraphNode n = g_.nodes[index];
    for (GVal &v : n.args.values())
      if (v.id >= 0)
        v.id = map_[v.id];
    SmallVec<TensorMeta, 3> metas; // anew: a saved operand may lie differently
    inferNode(out_, *n.op, n.args.args(), metas);
    for (size_t i = 0; i < n.results.size(); ++i) {
      int32_t copy = out_.addValue(metas[i]), &r = n.results[i];
      if (map_[r] < 0) // a saved value keeps the saved one
        map_[r] = copy;
      r = copy;
    }
    out_.nodes.push_back(std::move(n));
  }

  const Joint &joint_;
  const Graph &g_;
  const Partition &p_;
  std::vector<int32_t> maker_, map_;
  std::vector<bool> done_;
  Graph out_;
};

} // namespace

bool mayRecompute(const OpInfo &op) {
  if (op.has(kMutates) || op.has(kDataDependent))
    return false;
  return op.kind == OpKind::Elementwise || op.kind == OpKind::View || op.kind == OpKind::Creation ||
         op.kind == OpKind::Random;
}

int64_t bytesOf(const TensorMeta &m) {
  int64_t n = static_cast<int64_t>(itemSize(m.dtype));
  for (const Dim &d : m.sizes)
    n *= d.value();
  return n;
}

Dims savedStrides(const TensorMeta &m) { return isDense(m) ? m.strides : contiguousStrides(m.sizes); }

Partition partition(const Joint &joint, const trace::GradLog &log, const PartitionContext &context) {
  return Partitioner(joint, log, context).run();
}
Graph backwardGraph(const Joint &joint, const Partition &p) { return BackwardBuilder(joint, p).run(); }

} // namespace dlc
