// What fusion may do with an op: is its result computed point by point, how does a point of the result (and of the
// reduced dims) map to points of the operands, and what does it cost.
#pragma once
#include "compiler/graph/Layouts.h"

namespace dlc::compiler {

enum class NodeKind : uint8_t {
  Opaque,  ///< runs as a step of its own
  View,    ///< no work: another layout of its operand
  Point,   ///< one scalar expression a point
  Reduce,  ///< a scalar expression combined over dims of the operand
  Contract ///< sums of products of two operands: uses[0] by the rows of the result, uses[1] by its columns
};

/// How a dim of an operand follows from the point: a dim of the result, a reduced dim, or neither.
struct DimUse {
  enum Kind : uint8_t { Result, Reduced, Fixed, Gathered } kind;
  unsigned index = 0; ///< of the result dim, or position among the reduced dims
};

struct OperandUse {
  mlir::Value value;
  llvm::SmallVector<DimUse> dims;
  bool needsBuffer = false; ///< read at points other than this one: its value must be in memory
};

struct Node {
  mlir::Operation *op = nullptr;
  const OpInfo *info = nullptr;
  NodeKind kind = NodeKind::Opaque;
  llvm::SmallVector<OperandUse, 3> uses; ///< tensor operands
  llvm::SmallVector<int64_t> reduced;    ///< dims of uses[0] that are combined
  bool combines() const { return kind == NodeKind::Reduce || kind == NodeKind::Contract; }
  int64_t cost = 1;     ///< of one point, in units of an add
  bool mayFail = false; ///< may set the error slot
  mlir::Value result() const { return op->getResult(0); }
};

/// The unit attribute of products that are to run in the library.
constexpr llvm::StringLiteral kLibraryAttr = "dlc.library";

/// Describes an op.
Node describe(mlir::Operation *op, Layouts &layouts);

/// How a reduction joins values, and what happens to its result.
struct ReduceForm {
  enum Combine : uint8_t { Add, Mul, Max, Min, And, Or, ArgMax, ArgMin } combine;
  bool dividesByCount = false;
};
/// The form of a reduce op; none if fusion does not know it.
std::optional<ReduceForm> reduceForm(const OpInfo &info);

/// Whether the op gets elements of a buffer at computed rows, and along which dim.
std::optional<int64_t> gatherDim(mlir::Operation *op, const OpInfo &info, int64_t rank);

} // namespace dlc::compiler
