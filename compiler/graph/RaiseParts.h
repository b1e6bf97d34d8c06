// Building the one-pass attention among ops that see batches and heads as one dimension.
#pragma once
#include "compiler/graph/BoxedOp.h"
#include "dialects/dlc/DlcDialect.h"
#include "mlir/IR/Builders.h"

namespace dlc::compiler {

inline bool isOp(mlir::Operation *op, llvm::StringRef name) {
  const OpInfo *info = op ? infoOf(op) : nullptr;
  return info && llvm::StringRef(info->name) == name;
}

/// The operands of `attention`, but for those that are always the same.
struct RaisedAttention {
  mlir::Value query, key, value; ///< (batch, heads, positions, features)
  mlir::Value mask, scale, fill;
  bool divides = false;
};

/// Ops are created where `at` was called last.
class RaiseParts {
public:
  RaiseParts(mlir::func::FuncOp func, const Symbols &symbols) : func_(func), symbols_(symbols), b_(func.getContext()) {}
  void at(mlir::Operation *op) {
    b_.setInsertionPoint(op);
    loc_ = op->getLoc();
  }

  /// (batch * heads, rows, cols) as `sizes`, without the view that made the one of the other.
  mlir::Value unflatten(mlir::Value v, const Dims &sizes);
  /// The same of (batch * heads, cols, rows).
  mlir::Value unflattenSwapped(mlir::Value v, const Dims &sizes);
  /// Dims 1 and 2 swapped.
  mlir::Value swapHeads(mlir::Value v) { return transpose(v, 1, 2); }
  /// A mask of four dims; `flat`: the scores have no heads; `negated`: it says what is hidden.
  mlir::Value maskOf(mlir::Value mask, bool flat, bool negated);
  mlir::Value number(double x);
  /// An argument, or a constant made anew.
  mlir::Value again(mlir::Value number);

  mlir::Operation *attention(const RaisedAttention &call);
  mlir::Operation *attentionBackward(const RaisedAttention &call, mlir::Value grad, mlir::Operation *forward,
                                     mlir::Value gradScale, mlir::Value gradFill);

  /// Users of the flat result of `op` read `v`, of four dims, instead; `swapped`: with its last two dims swapped.
  void replaceFlat(mlir::Operation *op, mlir::Value v, bool swapped);

private:
  mlir::Value transpose(mlir::Value v, int64_t a, int64_t b);
  mlir::Value view(mlir::Value v, const Dims &sizes);
  mlir::NamedAttribute flag(llvm::StringRef name, bool on) { return b_.getNamedAttr(name, b_.getBoolAttr(on)); }

  mlir::func::FuncOp func_;
  const Symbols &symbols_;
  mlir::OpBuilder b_;
  mlir::Location loc_ = b_.getUnknownLoc();
};

} // namespace dlc::compiler
