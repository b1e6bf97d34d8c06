// Products of matrices as kernels: which of them, and their operands that are packed once because they follow from
// state.
#pragma once
#include "compiler/fusion/Fuse.h"

namespace dlc::compiler {

/// Marks the products of the function that are to run in the library (kLibraryAttr).
void chooseLibraryProducts(mlir::func::FuncOp func, Layouts &layouts, const FusionOptions &options);

/// Packs weights of one function.
class WeightPacker {
public:
  WeightPacker(mlir::func::FuncOp func, Layouts &layouts, const FusionOptions &options)
      : func_(func), layouts_(layouts), options_(options) {}
  /// The packed right operand of the group's contraction, if that is state; one that others of its users share.
  PackedOperand packedFor(const Graph &graph, const FusedGroup &group);

private:
  mlir::Value beforeWidening(mlir::Value v);
  mlir::Value pack(const Layout &layout, mlir::Type element, int64_t columns);
  mlir::func::FuncOp func_;
  Layouts &layouts_;
  const FusionOptions &options_;
  struct Known {
    Layout layout;
    int64_t columns;
    mlir::Value packed;
  };
  std::vector<Known> known_;
};

/// Whether a product with a result of these sizes is large enough to pay for packing its operands in each call.
bool isLargeProduct(const Dims &sizes);

/// Columns of the panels in which an operand of `n` columns is packed: whole vectors, so many that the tile's registers
/// are well used and few columns are padding. Does not depend on the rows, so that all users can share one copy.
int64_t panelColumns(int64_t n, int64_t elementBytes, unsigned vectorBits);

} // namespace dlc::compiler
