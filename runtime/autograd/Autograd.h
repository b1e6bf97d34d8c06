// Reverse-mode differentiation: a tape of nodes made at the dispatcher, and the engine that walks it.
#pragma once
#include "runtime/op/Dispatcher.h"
#include <functional>
#include <string>
#include <vector>

namespace dlc {

class GradNode;

/// Where a gradient goes: input `index` of the gradient function `node` (null: no gradient is wanted).
struct GradEdge {
  Ref<GradNode> node;
  uint32_t index = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

/// What makes one node differ from another of its kind, in a fixed order: for making copies of it.
struct NodeParts {
  struct Saved {
    Tensor tensor; ///< undefined; without storage: only its layout counts
    uint32_t version = 0;
    bool leaf = false; ///< the tensor itself is kept, not an alias
  };
  std::vector<Saved> tensors;
  std::vector<Number> numbers; ///< arguments that have a ref()
  std::vector<Dim> dims;       ///< arguments that are expressions
};
/// The same of a copy.
struct NodeValues {
  Span<const Tensor> tensors;
  Span<const uint32_t> versions;
  Span<const GradEdge> edges;
  Span<const Number> numbers;
  Ints dims;
};

/// One gradient function. Its inputs are the cotangents of an op's results, its outputs those of the op's tensor
/// inputs.
class GradNode : public RefCounted {
public:
  GradNode();
  virtual ~GradNode();
  virtual std::string name() const = 0;
  /// `grads` has one entry per input, possibly undefined; returns one per edge.
  virtual std::vector<Tensor> apply(std::vector<Tensor> grads, bool keep) = 0;
  /// Drops what was saved; a later apply raises.
  virtual void release() {}
  /// Lists what copyWith() wants to have; false if nodes of this kind can't be copied.
  virtual bool parts(NodeParts &out) const { return false; }
  /// A node like this one over other values; without numbers and dims it keeps those that it has.
  virtual Ref<GradNode> copyWith(const NodeValues &values) const { return {}; }

  std::vector<GradEdge> edges;
  uint32_t numInputs = 1;
  /// Made while a recorder was installed: the backward of a compiled forward is compiled too.
  bool recorded = false;
  /// The renewed history of a view after its base was written in place; its one edge is the base's.
  bool renewsView = false;
  /// Creation order: a consumer always has a larger number than its producers. Leaves have theirs offset to the bottom.
  int64_t sequence;
  /// Hooks on the tensor that is input `first` of this node; may return a replacement (undefined: keep).
  std::vector<std::pair<uint32_t, std::function<Tensor(const Tensor &)>>> hooks;
  /// Tensors whose .grad is to be kept though they are no leaves.
  std::vector<std::pair<uint32_t, class GradMeta *>> retained;
};

/// What autograd keeps with a tensor.
class GradMeta : public AutogradMeta {
public:
  ~GradMeta() override;
  Ref<GradNode> node; ///< null for a leaf
  uint32_t index = 0;
  Ref<GradNode> accumulator; ///< of a leaf, made on demand
  Tensor grad;
  /// A differentiable view: the tensor whose history in-place writes through this view must rewrite.
  Tensor base;
  uint32_t viewVersion = 0; ///< the storage version that `node` belongs to (views only)
  bool retainsGrad = false;
  /// Puts a new history in place of the old one.
  void setHistory(Ref<GradNode> newNode, uint32_t newIndex);
};

/// The tensor's gradient record; made if absent.
GradMeta &gradMetaOf(const Tensor &t);
GradMeta *gradMetaOrNull(const Tensor &t);
bool requiresGrad(const Tensor &t);
/// Whether the op that this thread dispatches is being put on the tape.
bool isTaping();
bool isLeaf(const Tensor &t);
/// The gradient function of a non-leaf, null for leaves. Views of a storage changed in place get theirs renewed here.
Ref<GradNode> gradFunction(const Tensor &t);
/// Throws RuntimeError for integer tensors, or turning it off on a non-leaf.
void setRequiresGrad(const Tensor &t, bool on);
/// A view of the same storage outside of the graph.
Tensor detach(const Tensor &t);
/// Takes `t` itself out of the graph (in place).
void detachInPlace(const Tensor &t);

/// Registers a hook on the gradient of `t`; returns a key for removeHook.
int64_t addHook(const Tensor &t, std::function<Tensor(const Tensor &)> hook);
void retainGrad(const Tensor &t);
/// Whether backward calls somebody (hooks), or keeps a gradient (retain_grad), when it reaches this tensor.
bool hasGradHooks(const Tensor &t);

/// Accumulates into the .grad of leaves. `grads[i]` may be undefined for a one-element root.
void backward(Span<const Tensor> roots, Span<const Tensor> grads, bool retainGraph, bool createGraph);
/// Gradients of the roots with respect to `inputs`, not accumulated anywhere. An unreached input gives an undefined
/// tensor if allowUnused, else RuntimeError.
std::vector<Tensor> grad(Span<const Tensor> roots, Span<const Tensor> inputs, Span<const Tensor> grads,
                         bool retainGraph, bool createGraph, bool allowUnused);

/// Sees what the tape does with the calls of its thread while an interceptor records them.
class GradObserver {
public:
  virtual ~GradObserver() = default;
  /// A node was made for a call that is about to be dispatched. `copiesSelf`: it keeps a copy of what is overwritten.
  virtual void before(const OpInfo &op, Span<const Arg<Tensor>> args, const GradNode &node, CallForm form,
                      bool copiesSelf) = 0;
  /// The results have their histories.
  virtual void after(const OpInfo &op, Span<const Tensor> outs, const GradNode &node, CallForm form) = 0;
  /// A hook or a kept gradient was asked for on a tensor that is no leaf.
  virtual void hooked(const Tensor &t) = 0;
};
/// Of this thread; null: nobody.
GradObserver *gradObserver();
void setGradObserver(GradObserver *observer);
/// Told what the engine does to leaves and what it calls; set by capture. Any may be null.
struct GradEvents {
  /// `grad` was put into leaf's .grad as the tensor itself, or added in place to what was there.
  void (*stored)(const Tensor &leaf, const Tensor &grad, bool addedInPlace) = nullptr;
  /// Something ran that only Python knows (a hook), or that changes state outside of tensors.
  void (*opaque)(const char *what) = nullptr;
};
inline GradEvents gradEvents;

/// Nodes of the tape in this process that were made while a recorder was installed.
int64_t recordedNodesAlive();

/// How the backward of recorded nodes is run when no recorder is installed: `region` must call `body(context)` once.
void setBackwardRegion(void (*region)(void (*body)(void *), void *context));

/// The sequence number that the next node will get.
int64_t gradSequence();

/// Connects the tape to the dispatcher. Called once at start.
void installAutograd();

/// Turns gradient recording on or off for a scope.
class GradModeScope {
public:
  explicit GradModeScope(bool on) : previous_(gradEnabled()) { setGradEnabled(on); }
  ~GradModeScope() { setGradEnabled(previous_); }

private:
  bool previous_;
};

/// The edge that a gradient of `t` flows along (an accumulator for leaves); null if `t` needs none.
GradEdge gradEdgeOf(const Tensor &t);
/// Records the gradient of an in-place op on a view: rewrites the history of the view's base.
void rebaseHistory(const Tensor &self, Ref<GradNode> node);

} // namespace dlc
