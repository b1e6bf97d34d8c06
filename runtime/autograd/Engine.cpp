// Walks the tape from the roots: nodes in decreasing order of creation, so all consumers of a node come before it.
#include "runtime/autograd/Autograd.h"
#include "runtime/op/Functional.h"
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace dlc {
namespace {

struct Later {
  bool operator()(const Ref<GradNode> &a, const Ref<GradNode> &b) const { return a->sequence < b->sequence; }
};

void (*backwardRegion)(void (*)(void *), void *) = nullptr;

/// Runs `body`, inside a recording region if the roots came out of one that has ended.
template <class F> void inRegion(Span<const Tensor> roots, F body) {
  bool recorded = false;
  for (const Tensor &t : roots)
    if (Ref<GradNode> node = gradFunction(t))
      recorded |= node->recorded;
  if (!recorded || !backwardRegion || currentInterceptor())
    return body();
  backwardRegion([](void *f) { (*static_cast<F *>(f))(); }, &body);
}

class Engine {
public:
  Engine(bool keep, bool createGraph) : keep_(keep), mode_(createGraph) {}

  void seed(const Tensor &root, const Tensor &grad) {
    GradEdge e = gradEdgeOf(root);
    DLC_REQUIRE(e, Runtime, "backward: a root ", describe(root),
                " does not require grad and has no grad_fn\ncompute it from a tensor that requires grad");
    Tensor g = grad;
    if (!g.defined()) {
      DLC_REQUIRE(root.numel() == 1, Runtime, "backward: a root of sizes ", listStr(root.sizes()),
                  " is no scalar, and no gradient was given\npass gradient=, or reduce it with sum() first");
      g = ops::ones_like(root);
    }
    DLC_REQUIRE(g.meta().sizes == root.meta().sizes, Runtime, "backward: the gradient has sizes ", listStr(g.sizes()),
                " but its root has ", listStr(root.sizes()), "\npass a gradient of the root's shape");
    add(e, g);
  }

  /// Only these edges are wanted; their gradients are kept instead of accumulated.
  void capture(Span<const GradEdge> wanted) {
    for (const GradEdge &e : wanted)
      captured_[key(e)];
    restrict_ = true;
  }
  Tensor captured(const GradEdge &e) const { return captured_.at(key(e)); }

  void run() {
    while (!ready_.empty()) {
      Ref<GradNode> node = ready_.top();
      ready_.pop();
      auto it = pending_.find(node.get());
      std::vector<Tensor> grads = std::move(it->second);
      pending_.erase(it);
      step(*node, std::move(grads));
    }
  }

private:
  using Key = std::pair<GradNode *, uint32_t>;
  struct KeyHash {
    size_t operator()(const Key &k) const { return std::hash<void *>()(k.first) * 31 + k.second; }
  };
  static Key key(const GradEdge &e) { return {e.node.get(), e.index}; }

  void add(const GradEdge &e, const Tensor &g) {
    auto [it, fresh] = pending_.try_emplace(e.node.get());
    if (fresh) {
      it->second.resize(std::max(e.node->numInputs, e.index + 1));
      ready_.push(e.node);
    }
    Tensor &slot = it->second[e.index];
    slot = slot.defined() ? ops::add(slot, g) : g;
  }

  void step(GradNode &node, std::vector<Tensor> grads) {
    if (gradEvents.opaque && (!node.hooks.empty() || !node.retained.empty()))
      gradEvents.opaque(node.hooks.empty() ? "retain_grad()" : "a hook on a gradient");
    for (auto &[index, hook] : node.hooks)
      if (grads[index].defined())
        if (Tensor replaced = hook(grads[index]); replaced.defined())
          grads[index] = replaced;
    for (auto &[index, meta] : node.retained)
      if (meta && grads[index].defined())
        meta->grad = grads[index];
    bool wanted = false;
    for (size_t i = 0; i < grads.size(); ++i)
      if (auto it = captured_.find({&node, static_cast<uint32_t>(i)}); it != captured_.end()) {
        it->second = grads[i];
        wanted = true;
      }
    if (restrict_ && (node.edges.empty() || (wanted && !reaches(node))))
      return;
    if (restrict_ && !reaches(node))
      return;
    std::vector<Tensor> out = node.apply(std::move(grads), keep_);
    for (size_t i = 0; i < node.edges.size() && i < out.size(); ++i)
      if (node.edges[i] && out[i].defined())
        add(node.edges[i], out[i]);
  }

  /// Whether some captured node lies below `node`.
  bool reaches(GradNode &root) {
    std::vector<std::pair<GradNode *, size_t>> stack{{&root, 0}};
    if (auto it = reaches_.find(&root); it != reaches_.end())
      return it->second;
    while (!stack.empty()) {
      auto &[node, at] = stack.back();
      if (at == 0)
        reaches_[node] = false;
      bool descended = false;
      while (at < node->edges.size() && !reaches_[node]) {
        GradEdge &e = node->edges[at];
        if (!e) {
          ++at;
          continue;
        }
        if (captured_.count(key(e))) {
          reaches_[node] = true;
          break;
        }
        auto it = reaches_.find(e.node.get());
        if (it == reaches_.end()) {
          stack.push_back({e.node.get(), 0});
          descended = true;
          break;
        }
        reaches_[node] = it->second;
        ++at;
      }
      if (!descended)
        stack.pop_back();
    }
    return reaches_[&root];
  }

  bool keep_;
  GradModeScope mode_;
  bool restrict_ = false;
  std::priority_queue<Ref<GradNode>, std::vector<Ref<GradNode>>, Later> ready_;
  std::unordered_map<GradNode *, std::vector<Tensor>> pending_;
  std::unordered_map<Key, Tensor, KeyHash> captured_;
  std::unordered_map<GradNode *, bool> reaches_;
};

} // namespace

void backward(Span<const Tensor> roots, Span<const Tensor> grads, bool retainGraph, bool createGraph) {
  inRegion(roots, [&] {
    Engine engine(retainGraph || createGraph, createGraph);
    for (size_t i = 0; i < roots.size(); ++i)
      engine.seed(roots[i], i < grads.size() ? grads[i] : Tensor());
    engine.run();
  });
}

void setBackwardRegion(void (*region)(void (*)(void *), void *)) { backwardRegion = region; }

std::vector<Tensor> grad(Span<const Tensor> roots, Span<const Tensor> inputs, Span<const Tensor> grads,
                         bool retainGraph, bool createGraph, bool allowUnused) {
  std::vector<GradEdge> wanted;
  for (const Tensor &t : inputs) {
    wanted.push_back(gradEdgeOf(t));
    DLC_REQUIRE(wanted.back(), Runtime, "grad: an input ", describe(t),
                " does not require grad\ncall requires_grad_() on it before computing the outputs");
  }
  std::vector<Tensor> out;
  inRegion(roots, [&] {
    Engine engine(retainGraph || createGraph, createGraph);
    engine.capture(wanted);
    for (size_t i = 0; i < roots.size(); ++i)
      engine.seed(roots[i], i < grads.size() ? grads[i] : Tensor());
    engine.run();
    for (const GradEdge &e : wanted)
      out.push_back(engine.captured(e));
  });
  for (size_t i = 0; i < inputs.size(); ++i) {
    DLC_REQUIRE(out[i].defined() || allowUnused, Runtime, "grad: input ", i, " ", describe(inputs[i]),
                " was not used to compute the outputs\npass allow_unused=True to get None for it");
  }
  return out;
}

} // namespace dlc
