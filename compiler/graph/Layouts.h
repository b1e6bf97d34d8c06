// Which values are only other layouts of a buffer. A view's layout comes from the meta function of its record, which
// computes strides and offset as eager does.
#pragma once
#include "compiler/graph/BoxedOp.h"
#include "llvm/ADT/DenseMap.h"

namespace dlc::compiler {

/// A strided window on the memory of `root`.
struct Layout {
  mlir::Value root;
  Dims sizes, strides;
  Dim offset;
};

class Layouts {
public:
  explicit Layouts(const Symbols &symbols) : symbols_(symbols) {}
  /// The layout of a value. Views are followed to what they view; every other value is its own root, row-major unless
  /// setRoot or the op that defines it (see kChannelsLastAttr) says otherwise.
  const Layout &of(mlir::Value v);
  void setRoot(mlir::Value v, Dims strides);
  const Symbols &symbols() const { return symbols_; }
  /// The dim of `v` along which neighbours lie side by side in memory; none if there is none of more than one element.
  std::optional<size_t> fastestDim(mlir::Value v);
  /// Whether `op` is a view whose result has a layout, given that of its operand.
  bool isFreeView(mlir::Operation *op);
  /// After the op that defines `v` changed.
  void forget(mlir::Value v) { known_.erase(v); }

private:
  bool compose(mlir::Operation *op, const OpInfo &info, Layout &out);
  const Symbols &symbols_;
  llvm::DenseMap<mlir::Value, std::unique_ptr<Layout>> known_;
};

/// An op's results whose memory is channels-last: their numbers, an array of i64. The op writes them in that layout.
constexpr llvm::StringLiteral kChannelsLastAttr = "dlc.channels_last";
bool isChannelsLast(mlir::Value v);
/// Adds the result to the op's list.
void setChannelsLast(mlir::Value v);

/// Layouts of a function whose arguments and results may be strided (attribute dlc.strides).
void setFunctionLayouts(mlir::func::FuncOp func, Layouts &layouts);

bool isRowMajor(const Dims &sizes, const Dims &strides);

} // namespace dlc::compiler
