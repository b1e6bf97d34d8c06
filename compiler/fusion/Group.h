// A set of ops that become one kernel: finds the loop domain that all its values share, or says why there is none.
#pragma once
#include "compiler/fusion/Axes.h"
#include "compiler/fusion/Nodes.h"
#include "llvm/ADT/DenseSet.h"

namespace dlc::compiler {

/// The nodes of a block, with what fusion asks about them all the time. Views are transparent: an edge goes from the op
/// that computes a value to the op that reads it, whatever views lie between.
class Graph {
public:
  Graph(mlir::Block &block, Layouts &layouts);
  size_t size() const { return nodes_.size(); }
  Node &node(size_t i) { return nodes_[i]; }
  const Node &node(size_t i) const { return nodes_[i]; }
  size_t indexOf(mlir::Operation *op) const { return index_.lookup(op); }
  /// The node that computes `v` once views are looked through; -1 for arguments.
  int64_t producer(mlir::Value v) const;
  /// Users of the node's results, through views; each once, ascending.
  llvm::ArrayRef<uint32_t> users(size_t i) const { return users_[i]; }
  llvm::ArrayRef<uint32_t> operands(size_t i) const { return operands_[i]; }
  Layouts &layouts() const { return layouts_; }
  const Symbols &symbols() const { return layouts_.symbols(); }
  /// Bytes of a value by the hints.
  int64_t bytes(mlir::Value v) const;

private:
  Layouts &layouts_;
  std::vector<Node> nodes_;
  llvm::DenseMap<mlir::Operation *, size_t> index_;
  std::vector<llvm::SmallVector<uint32_t, 4>> users_, operands_;
};

/// The common loop domain of a group. Values have one axis a dim; an axis is a sequence of leaves.
struct GroupShape {
  AxisTable axes;
  llvm::DenseMap<mlir::Value, AxisList> valueAxes;        ///< of values computed (or viewed) inside
  llvm::DenseMap<mlir::Operation *, AxisList> reduceAxes; ///< of a reduction's combined dims
  AxisList parallel, reduced;                             ///< leaves in loop order
  std::vector<uint32_t> outputs;                          ///< members whose value is needed outside

  /// The leaves that a member's value varies over.
  AxisList leavesOf(mlir::Value v) const { return axes.leaves(valueAxes.lookup(v)); }
  bool isReduced(AxisId leaf) const;
};

/// Whether a view maps points of its result to points of its operand one to one or by broadcasting, so that a kernel
/// can follow it without memory.
bool keepsPoints(const OpInfo &view);

/// Members ascending. On refusal returns none and the rule in `why`.
std::optional<GroupShape> shapeOf(const Graph &graph, llvm::ArrayRef<uint32_t> members, std::string &why);

/// Whether `v` is computed inside (through views that keep its points): then it needs no memory.
bool isInside(const Graph &graph, const GroupShape &shape, mlir::Value v);

} // namespace dlc::compiler
