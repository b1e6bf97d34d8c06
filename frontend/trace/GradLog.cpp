// Logging the tape's calls beside the graph. Every edge is compared with where the graph's value comes from: a history
// that the graph does not show (another leaf, a user's function, a write under no_grad) makes the log unsupported.
#include "frontend/trace/GradLog.h"
#include "frontend/trace/Recorder.h"

namespace dlc::trace {

void Recorder::logGradients(bool on) {
  if (on == static_cast<bool>(gradLogger_))
    return;
  gradLogger_ = on ? std::make_unique<GradLogger>(*this) : nullptr;
  setGradObserver(gradLogger_.get());
}

void GradLogger::unsupported(const std::string &why) {
  if (!log_.unsupported.empty())
    return;
  std::string loc = locText(markLoc());
  log_.unsupported = str(why, loc.empty() ? "" : " at ", loc);
}

void GradLogger::overwritten() { unsupported("an in-place op changes a tensor that a gradient needs"); }
void GradLogger::hooked(const Tensor &) { unsupported("a hook or retain_grad() on a tensor made inside"); }

bool GradLogger::agrees(const Tensor &t) {
  GradEdge e = gradEdgeOf(t);
  if (!e)
    return true;
  if (t.storage().foreign()) {
    unsupported("a gradient of memory that others share");
    return false;
  }
  int32_t value = recorder_.valueOf(t);
  Recorder::State &s = recorder_.track(t);
  bool isInput = false;
  for (int32_t i : s.inputsOf)
    isInput |= recorder_.graph_.inputs[i] == value;
  const GradNode *node = e.node.get();
  auto it = origins_.find({node->sequence, e.index});
  if (it == origins_.end() && node->renewsView && node->edges[0]) // history of a view renewed after a write to its base
    it = origins_.find({node->edges[0].node->sequence, node->edges[0].index});
  if (it != origins_.end()) {
    if (!isInput && it->second.state == &s && it->second.version == t.storage().version())
      return true;
  } else if (isInput) { // comes from outside of the piece
    auto [known, fresh] = inputEdges_.try_emplace(value, e.node->sequence, e.index);
    if (fresh) {
      log_.inputs.push_back(value);
      log_.sources.emplace_back(value, t);
    }
    if (known->second == std::make_pair(e.node->sequence, e.index))
      return true;
  }
  unsupported(str("the gradient of a tensor ", describe(t), " does not go where its value comes from"));
  return false;
}

void GradLogger::before(const OpInfo &op, Span<const Arg<Tensor>> args, const GradNode &node, CallForm form,
                        bool copiesSelf) {
  pending_ = GradCall();
  pendingEdges_.clear();
  pendingSaved_.clear();
  pending_.op = &op;
  pending_.copiesSelf = copiesSelf;
  std::vector<GVal> held;
  size_t count = 0;
  for (const Arg<Tensor> &a : args)
    count += a.values().size();
  held.reserve(count);
  SmallVec<Arg<GVal>, 12> gargs;
  for (size_t i = 0; i < args.size(); ++i) {
    Arg<GVal> g;
    g.tag = args[i].tag;
    g.dtype = args[i].dtype;
    g.size = args[i].size;
    g.i = args[i].i;
    g.num = args[i].num;
    g.dim = args[i].dim;
    size_t at = held.size();
    bool saved = op.vjp.savedParams >> std::min<size_t>(i, 63) & 1;
    for (const Tensor &t : args[i].values()) {
      pending_.wanted.push_back(static_cast<bool>(node.edges[held.size()]));
      if (t.defined() && !t.isWrapped()) {
        // Looked at when the op is recorded, so that a recording has the same inputs with and without a log. What the
        // op overwrites comes first there too.
        if (pending_.wanted.back() && form == CallForm::InPlace && i == 0)
          agrees(t);
        else if (pending_.wanted.back())
          pendingEdges_.push_back(t);
        if (saved && !(copiesSelf && i == 0))
          pendingSaved_.push_back(t);
        held.push_back(GVal{op.has(kInIr) ? -1 : recorder_.valueOf(t)});
      } else {
        if (t.defined() && !op.has(kInIr))
          unsupported(str(op.name, " of a number"));
        held.push_back(GVal{});
      }
    }
    if (args[i].tag == ArgTag::Value || args[i].tag == ArgTag::ValueList)
      g.value = held.data() + at;
    gargs.push_back(g);
  }
  if (!op.has(kInIr))
    pending_.args = OwnedArgs<GVal>(Span<const Arg<GVal>>(gargs.data(), gargs.size()));
  epoch_ = recorder_.epoch_;
  firstNode_ = recorder_.graph_.nodes.size();
}

void GradLogger::addOrigin(const GradEdge &e, const Tensor &t) {
  if (e)
    origins_[{e.node->sequence, e.index}] = {&recorder_.track(t), t.storage().version()};
}

void GradLogger::after(const OpInfo &op, Span<const Tensor> outs, const GradNode &node, CallForm form) {
  if (epoch_ != recorder_.epoch_) { // the op ended the piece and ran by itself
    results_.insert(results_.end(), outs.begin(), outs.end());
    return;
  }
  for (const Tensor &t : pendingEdges_)
    agrees(t);
  for (const Tensor &t : pendingSaved_) // before the results are: an in-place op may have written what it saves
    if (recorder_.track(t).saved |= true; form == CallForm::InPlace && t.storageRef() == outs[0].storageRef())
      overwritten();
  pendingEdges_.clear();
  pendingSaved_.clear();
  const std::vector<GraphNode> &nodes = recorder_.graph_.nodes;
  if (op.has(kInIr)) {
    // Reads of operands come before the op's node; casts and scatters of an in-place result after it.
    for (size_t i = nodes.size(); i-- > firstNode_ && pending_.results.empty();)
      if (nodes[i].op == &op)
        pending_.results = nodes[i].results;
  } else if (form == CallForm::Functional) {
    for (const Tensor &t : outs)
      pending_.results.push_back(recorder_.valueOf(t));
  } else {
    unsupported(str("the in-place form of ", op.name));
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!outs[i].defined())
      continue;
    if (results_.empty() || !results_.back().is(outs[i]))
      results_.push_back(outs[i]);
    if (op.vjp.savedResults >> std::min<size_t>(i, 63) & 1)
      recorder_.track(outs[i]).saved = true;
    GradEdge e = gradEdgeOf(outs[i]);
    addOrigin(e, outs[i]);
    if (e && e.node->renewsView) // written through a view: the history of the base is new too
      addOrigin(e.node->edges[0], outs[i]);
  }
  if (!pending_.results.empty())
    log_.calls.push_back(std::move(pending_));
}

void GradLogger::addRoot(const Tensor &t) {
  agrees(t);
  log_.roots.push_back(recorder_.valueOf(t));
}

std::vector<Tensor> GradLogger::survivors() {
  std::sort(results_.begin(), results_.end(), [](auto &a, auto &b) { return a.impl() < b.impl(); });
  results_.erase(std::unique(results_.begin(), results_.end(), [](auto &a, auto &b) { return a.is(b); }),
                 results_.end());
  // A view holds its base: what only views hold dies with the histories of those.
  for (bool changed = true; std::exchange(changed, false);)
    for (Tensor &t : results_)
      if (t.defined() && t.impl()->refCount() == 1) {
        t = Tensor();
        changed = true;
      }
  std::unordered_map<const TensorImpl *, uint32_t> heldByViews;
  for (const Tensor &t : results_)
    if (t.defined())
      if (GradMeta *m = gradMetaOrNull(t); m && m->base.defined())
        ++heldByViews[m->base.impl()];
  std::vector<Tensor> alive;
  for (const Tensor &t : results_)
    if (t.defined() && t.impl()->refCount() > 1 + heldByViews[t.impl()] && gradEdgeOf(t))
      alive.push_back(t);
  std::sort(alive.begin(), alive.end(), [](auto &a, auto &b) {
    GradEdge x = gradEdgeOf(a), y = gradEdgeOf(b);
    return std::make_pair(x.node->sequence, x.index) < std::make_pair(y.node->sequence, y.index);
  });
  results_.clear();
  return alive;
}

void GradLogger::cut() {
  if (cut_.empty() && !survivors().empty())
    cut_ = "a value is needed in the middle of what has gradients";
  log_.unsupported = cut_;
}

std::vector<Tensor> GradLogger::leave() {
  std::vector<Tensor> roots = survivors();
  if (!cut_.empty() && !roots.empty())
    unsupported(cut_);
  if (log_.unsupported.empty())
    for (const Tensor &t : roots)
      addRoot(t);
  return roots;
}

void GradLogger::dropTape(Span<const Tensor> roots) {
  for (const Tensor &t : roots) {
    GradMeta &m = gradMetaOf(t);
    m.setHistory({}, 0);
    m.base = Tensor();
    t.impl()->requiresGrad = false;
  }
}

GradLog GradLogger::take() {
  GradLog log = std::move(log_);
  log_ = {};
  origins_.clear();
  inputEdges_.clear();
  return log;
}

} // namespace dlc::trace
