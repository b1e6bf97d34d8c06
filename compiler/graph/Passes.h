// Passes on functions of the dlc dialect, in the order in which phase `simplified` runs them.
#pragma once
#include <memory>

namespace mlir {
class Pass;
}

namespace dlc::compiler {

/// `dlc-decompose`: composites become the ops of their rule, until only ops without a rule are left.
std::unique_ptr<mlir::Pass> createDecomposePass();
/// `dlc-fold-conv`: convolutions of f32 with packed weights, and what follows them in the same op; pooling in the forms
/// that need less.
std::unique_ptr<mlir::Pass> createFoldConvPass();
/// `dlc-channels-last`: which values of a function with convolutions have channels-last memory.
std::unique_ptr<mlir::Pass> createChannelsLastPass();
/// `dlc-simplify`: identities that are exact for every value, NaN and -0 included; views of views; pairs of
/// as_strided and as_strided_scatter; unused ops.
std::unique_ptr<mlir::Pass> createSimplifyPass();
/// `dlc-raise-attention`: softmax between two products becomes attention in one pass.
std::unique_ptr<mlir::Pass> createRaiseAttentionPass();
/// `dlc-materialize`: copies where a view has no strides on its operand's layout, and where a result of the function is
/// an argument, a view or a result already.
std::unique_ptr<mlir::Pass> createMaterializePass();
/// `dlc-state-part`: what follows from state arguments alone becomes functions of its own (see StatePart.h).
std::unique_ptr<mlir::Pass> createStatePartPass();

void registerGraphPasses();

} // namespace dlc::compiler
