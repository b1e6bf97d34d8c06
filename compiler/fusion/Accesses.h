// How a group's values lie in memory over its loop dims, and which loop dims can be walked as one.
#pragma once
#include "compiler/fusion/Fuse.h"

namespace dlc::compiler {

/// A buffer over the leaves of a group: its stride along each, 0 where it does not vary.
struct Access {
  mlir::Value root;
  Dim offset;
  llvm::SmallVector<std::pair<AxisId, Dim>> strides;
  std::optional<Dim> rowStride, rows; ///< of a gathered dim: its stride and size
  Dim strideOf(AxisId leaf) const;
};

/// The access of an operand from outside.
Access accessOf(const Graph &graph, const FusedGroup &group, const Node &n, const OperandUse &use);
/// The access of an output.
Access accessOfResult(const Graph &graph, const FusedGroup &group, const Node &n);

/// A loop of the kernel: one leaf, or adjacent ones that every buffer walks with one stride.
struct LoopDim {
  AxisList leaves; ///< outermost first
  Dim size;
  std::string name;
  bool reduced;
};
std::vector<LoopDim> loopDims(const Graph &graph, const FusedGroup &group);

/// Whether the op's scalar code asks for the index of its point.
bool usesIndex(const Node &n);

} // namespace dlc::compiler
