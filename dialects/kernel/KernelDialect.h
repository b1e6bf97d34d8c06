// The `kernel` dialect's C++ classes. KernelOps.td describes the dialect; KernelBuilder.h makes it easy to build.
#ifndef DLC_DIALECTS_KERNEL_KERNELDIALECT_H
#define DLC_DIALECTS_KERNEL_KERNELDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/kernel/KernelDialect.h.inc"
#include "dialects/kernel/KernelEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/kernel/KernelTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/kernel/KernelAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/kernel/KernelOps.h.inc"

namespace dlc::ir::kernel {

/// Returns whether `name` is a scalar primitive that kernel.prim may call.
bool isKnownPrim(llvm::StringRef name);

/// Returns the strides of a kernel argument; ShapedType::kDynamic where one is an input of the kernel.
llvm::SmallVector<int64_t> getStrides(mlir::MemRefType type);

/// Returns whether `op` is a stage (map, reduce or contract).
bool isStage(mlir::Operation *op);

/// Returns the `over` dims of a stage.
mlir::ArrayAttr getOver(mlir::Operation *stage);

} // namespace dlc::ir::kernel

#endif
