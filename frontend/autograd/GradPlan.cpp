// Planning the gradient of a graph: what is saved, and the backward programs by need.
#include "frontend/autograd/GradPlan.h"
#include "runtime/core/Knobs.h"

namespace dlc {

namespace {

/// Roots whose memory belongs to something else would need the history of that too.
void requirePlain(const Graph &g, const trace::GradLog &log, const std::vector<bool> &active) {
  std::vector<int32_t> root(g.values.size());
  for (size_t v = 0; v < root.size(); ++v)
    root[v] = static_cast<int32_t>(v);
  for (const GraphNode &n : g.nodes)
    if (n.op->kind == OpKind::View)
      for (int32_t r : n.results)
        root[r] = root[n.args.values()[0].id];
  std::vector<int32_t> seen;
  for (int32_t r : log.roots) {
    DLC_REQUIRE(std::find(g.inputs.begin(), g.inputs.end(), root[r]) == g.inputs.end(), NotImplemented,
                "a result with a gradient is a view of an argument");
    DLC_REQUIRE(std::find(seen.begin(), seen.end(), root[r]) == seen.end(), NotImplemented,
                "two results with gradients share their memory");
    seen.push_back(root[r]);
  }
  for (const GraphOutput &o : g.outputs)
    DLC_REQUIRE(o.writeBack < 0 || !active[o.value], NotImplemented,
                "an argument changed in place gets a gradient history");
}

} // namespace

std::shared_ptr<GradPlan> planGradient(const Graph &forward, const trace::GradLog &log,
                                       const PartitionContext &context) {
  DLC_REQUIRE(log.unsupported.empty(), NotImplemented, log.unsupported);
  auto plan = std::make_shared<GradPlan>();
  FactSink sink;
  plan->graph_ = forward;
  plan->log_ = log;
  plan->log_.sources.clear();
  plan->roots_ = log.roots;
  JointRequest request;
  request.roots = log.roots;
  for (size_t i = 0; i < forward.inputs.size(); ++i)
    if (std::find(log.inputs.begin(), log.inputs.end(), forward.inputs[i]) != log.inputs.end()) {
      plan->differentiable_.push_back(static_cast<int32_t>(i));
      request.targets.push_back(forward.inputs[i]);
    }
  Joint joint = differentiate(forward, log, request);
  plan->active_ = activeValues(forward, log, request.targets);
  requirePlain(forward, log, plan->active_);
  plan->name_ = joint.name;
  plan->partition_ = partition(joint, log, context);
  plan->forward_ = forward;
  plan->numOutputs_ = forward.outputs.size();
  for (int32_t v : plan->partition_.saved) {
    GraphOutput o;
    o.value = v;
    o.strides = savedStrides(forward.values[v]);
    plan->forward_.outputs.push_back(std::move(o));
  }
  plan->facts_ = sink.take();
  return plan;
}

std::string whyNoPlan(const Graph &forward, const trace::GradLog &log) {
  if (!log.unsupported.empty())
    return log.unsupported;
  try {
    FactSink sink;
    JointRequest request;
    request.roots = log.roots;
    for (int32_t v : forward.inputs)
      if (std::find(log.inputs.begin(), log.inputs.end(), v) != log.inputs.end())
        request.targets.push_back(v);
    requirePlain(forward, log, activeValues(forward, log, request.targets));
    (void)differentiate(forward, log, request);
    return "";
  } catch (const Error &e) {
    return e.what();
  }
}

Graph specialize(const Graph &g, Ints symbols) {
  Graph out = g;
  auto fix = [&](Dims &dims) {
    for (Dim &d : dims)
      d = Dim(evaluate(d, symbols));
  };
  for (TensorMeta &m : out.values) {
    fix(m.sizes);
    fix(m.strides);
    m.offset = Dim(evaluate(m.offset, symbols));
  }
  for (GraphNode &n : out.nodes)
    forEachDim(n.args, [&](Dim &d) { d = Dim(evaluate(d, symbols)); });
  for (GraphOutput &o : out.outputs)
    fix(o.strides);
  out.symbols.clear();
  return out;
}

void GradPlan::build(Variant &v, const Graph &forward) const {
  FactSink sink;
  JointRequest request;
  request.higherOrder = v.higherOrder;
  for (size_t i = 0; i < v.given.size(); ++i)
    if (v.given[i])
      request.roots.push_back(i < roots_.size() ? roots_[i] : keptValue(i - roots_.size()));
  for (size_t i = 0; i < v.wanted.size(); ++i)
    if (v.wanted[i])
      request.targets.push_back(forward.inputs[differentiable_[i]]);
  Joint joint = differentiate(forward, log_, request);
  v.graph = backwardGraph(joint, partition_);
  v.sizeNumbers = joint.sizeNumbers;
  int32_t output = 0;
  size_t target = 0;
  for (bool wanted : v.wanted)
    v.outputs.push_back(wanted && joint.gradients[target++] >= 0 ? output++ : -1);
  v.facts = sink.take();
}

void GradPlan::compile(Variant &v) const {
  v.tried = true;
  if (knobs().mode == "interpret" || knobs().mode == "eager" || !currentBackend())
    return;
  FactSink sink;
  try {
    v.compiled = currentBackend()(v.graph, {name_, {}, {}});
  } catch (const std::exception &e) {
    warnOnce(str("the backward of a compiled function (", v.graph.nodes.size(),
                 " ops) could not be compiled and runs in the interpreter: ", e.what()));
  }
  for (const Fact &f : sink.take())
    v.facts.push_back(f);
}

/// Under the lock. `general`: there is one that does not fix the sizes.
const GradPlan::Variant *GradPlan::find(const std::vector<bool> &given, const std::vector<bool> &wanted,
                                        bool higherOrder, Ints symbols, bool &general) const {
  general = false;
  for (const Variant &v : variants_) {
    if (v.given != given || v.wanted != wanted || v.higherOrder != higherOrder)
      continue;
    general |= v.symbols.empty();
    bool serves = v.symbols.empty()
                      ? std::all_of(v.facts.begin(), v.facts.end(), [&](const Fact &f) { return holds(f, symbols); })
                      : v.symbols == symbols.vec();
    if (serves)
      return &v;
  }
  return nullptr;
}

const GradPlan::Variant &GradPlan::variant(const std::vector<bool> &given, const std::vector<bool> &wanted,
                                           bool higherOrder, Ints symbols) {
  bool general;
  {
    std::lock_guard<ForkMutex> lock(mutex_);
    if (const Variant *v = find(given, wanted, higherOrder, symbols, general))
      return *v;
  }
  ForkGate gate; // before the lock: a fork closes gates first
  std::lock_guard<ForkMutex> lock(mutex_);
  // First for all sizes, then, if its facts do not hold for these, for these alone.
  for (;;) {
    if (const Variant *v = find(given, wanted, higherOrder, symbols, general))
      return *v;
    Variant v;
    v.given = given;
    v.wanted = wanted;
    v.higherOrder = higherOrder;
    if (general)
      v.symbols = symbols.vec();
    build(v, general ? specialize(graph_, symbols) : graph_);
    if (!higherOrder)
      compile(v);
    variants_.push_back(std::move(v));
  }
}

std::string GradPlan::describe() const {
  std::lock_guard<ForkMutex> lock(mutex_);
  std::ostringstream os;
  os << "gradient: " << partition_.saved.size() << " values saved (" << partition_.savedBytes << " bytes), "
     << partition_.inputs.size() << " inputs and " << partition_.outputs.size() << " outputs read again\n";
  for (const Variant &v : variants_)
    os << "  backward of " << v.graph.nodes.size() << " ops, " << (v.compiled ? "compiled" : "by eager kernels")
       << "\n";
  return os.str();
}

} // namespace dlc
