// One group as a kernel.func, and what a launch of it passes.
#pragma once
#include "compiler/fusion/Fuse.h"
#include "dialects/kernel/KernelBuilder.h"

namespace dlc::compiler {

struct EmittedKernel {
  ir::kernel::FuncOp func;
  llvm::SmallVector<mlir::Value> inputs;  ///< roots of the input buffers, in argument order
  llvm::SmallVector<uint32_t> outputs;    ///< members, in the order of the output buffers, which follow the inputs
  Dims offsets;                           ///< of every buffer from its root's first element, in elements
  Dims ints;                              ///< in argument order; 0 where a number goes
  llvm::SmallVector<mlir::Value> numbers; ///< number operands
  llvm::SmallVector<int64_t> numberAt;    ///< their positions in `ints`
  llvm::SmallVector<int64_t> inplace;     ///< pairs (input, output) that may share memory
  int64_t cost = 0;                       ///< of one point, in units of an add
  bool mayFail = false;
};

/// Emits the kernel where `builder` stands.
EmittedKernel emitKernel(const Graph &graph, const FusedGroup &group, mlir::OpBuilder &builder, llvm::StringRef name);

} // namespace dlc::compiler
