// What the backward of a recorded graph reads of its forward: saved where recomputing is dear or not exact, recomputed
// where it is cheap.
#pragma once
#include "frontend/autograd/Joint.h"

namespace dlc {

/// Whom the tensors of graph inputs and outputs belong to.
struct PartitionContext {
  std::vector<bool> sharedInput; ///< inputs whose storage another input views too
};

/// A tensor that both the tape and the user hold: eager raises when it was changed before the backward.
struct SavedCheck {
  bool ofInput = false; ///< an input of the graph, else an output
  int32_t index = 0;    ///< which one
  const OpInfo *op = nullptr;
  TensorMeta meta; ///< of the value that the tape saved, for the message
};

struct Partition {
  std::vector<int32_t> inputs;    ///< graph inputs that the backward may read (indices)
  std::vector<int32_t> outputs;   ///< graph outputs that it may read (indices)
  std::vector<int32_t> saved;     ///< values that become outputs of the forward
  std::vector<SavedCheck> checks; ///< in the order of the tape
  int64_t savedBytes = 0;         ///< by the sizes at hand
};

/// Decides for the joint graph with all gradients.
Partition partition(const Joint &joint, const trace::GradLog &log, const PartitionContext &context);

/// The backward alone. Its inputs are those of the partition in order (inputs, outputs, saved), then the joint's
/// cotangents; what else it needs of the forward is recomputed. Outputs: the gradients that are there. Throws
/// NotImplemented if it needs an input that was not kept.
Graph backwardGraph(const Joint &joint, const Partition &partition);

/// Whether a value of this op may be computed again: the same bits, and cheap.
bool mayRecompute(const OpInfo &op);

/// The layout that a saved value gets: its own if that is dense, else row-major.
Dims savedStrides(const TensorMeta &m);

/// Bytes of a value by the sizes at hand.
int64_t bytesOf(const TensorMeta &m);

} // namespace dlc
