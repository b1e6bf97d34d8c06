// Recorded graphs as modules of the `dlc` dialect: the one frontend folder that sees MLIR.
#pragma once
#include "frontend/compile/Backend.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace dlc {

/// Translates `graph` into a module with one function @main: its tensor inputs, then the number operands (i1, i64,
/// f64), then the symbols (`index`, argument attribute `dlc.symbol`). Inputs and results that are not row-major carry
/// `dlc.strides`, results that go to an input's memory `dlc.write_back`, inputs whose memory another input views too
/// `dlc.shared`, inputs that belong to the program `dlc.state`. Throws InternalError if the module does not verify.
mlir::OwningOpRef<mlir::ModuleOp> importGraph(mlir::MLIRContext *context, const Graph &graph,
                                              const BackendOptions &options);

} // namespace dlc
