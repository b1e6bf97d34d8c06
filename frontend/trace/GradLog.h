// What the tape did while a piece was recorded: which calls of the graph are differentiable, and along which operands.
// The graph alone does not know (detach, no_grad, leaves made inside); the backward graph is built from both.
#pragma once
#include "runtime/autograd/Autograd.h"
#include "runtime/graph/Graph.h"
#include <map>
#include <unordered_map>

namespace dlc::trace {

/// One call that the tape made a node for.
struct GradCall {
  const OpInfo *op = nullptr;
  /// Of an op that the graph holds as its rule's ops; empty where a node of the graph has the arguments.
  OwnedArgs<GVal> args;
  SmallVec<int32_t, 3> results;
  std::vector<bool> wanted; ///< per flattened tensor operand: a gradient flows there
  bool copiesSelf = false;  ///< an in-place op whose rule reads what it overwrote: the tape kept a copy
};

struct GradLog {
  std::vector<GradCall> calls;
  std::vector<int32_t> inputs;                     ///< values of the graph inputs that have a gradient edge
  std::vector<int32_t> roots;                      ///< values of the tensors given to addRoot()
  std::vector<std::pair<int32_t, Tensor>> sources; ///< of `inputs`: the tensors as the program has them
  std::string unsupported; ///< why the graph can't stand for the tape ("" : it can), with file:line
};

class Recorder;

/// Fills a GradLog while its recorder records.
class GradLogger final : public GradObserver {
public:
  explicit GradLogger(Recorder &recorder) : recorder_(recorder) {}
  void before(const OpInfo &op, Span<const Arg<Tensor>> args, const GradNode &node, CallForm form,
              bool copiesSelf) override;
  void after(const OpInfo &op, Span<const Tensor> outs, const GradNode &node, CallForm form) override;
  void hooked(const Tensor &t) override;
  /// A storage that the tape saved is written.
  void overwritten();
  /// Whether the gradient history of `t` is what the graph computes it from; if not, the log says so.
  bool agrees(const Tensor &t);
  /// A tensor that leaves the piece with a gradient history.
  void addRoot(const Tensor &t);
  GradLog take();
  /// The piece ends before the call does: tensors that go on with a history can't be told from the tape's own later.
  void cut();
  /// The call ends: the tensors with a history made here that somebody else holds become roots. They are returned.
  std::vector<Tensor> leave();
  const GradLog &log() const { return log_; }
  /// Takes the histories of `roots` away, and with them the tape if nobody else holds it.
  static void dropTape(Span<const Tensor> roots);

private:
  struct Origin {
    const void *state; ///< the recorder's record of the storage
    uint32_t version;
  };
  void unsupported(const std::string &why);
  std::vector<Tensor> survivors();
  void addOrigin(const GradEdge &e, const Tensor &t);

  Recorder &recorder_;
  GradLog log_;
  std::map<std::pair<int64_t, uint32_t>, Origin> origins_; // by the sequence number of the node and its input
  std::unordered_map<int32_t, std::pair<int64_t, uint32_t>> inputEdges_;
  GradCall pending_;
  std::vector<Tensor> pendingEdges_, pendingSaved_; // operands of the pending call
  std::vector<Tensor> results_;                     // all that the tape gave a history
  std::string cut_;                                 // why the rest of the call has no plan
  size_t firstNode_ = 0;
  uint64_t epoch_ = 0;
};

} // namespace dlc::trace
