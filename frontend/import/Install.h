// MLIR-free entry of the compiler.
#pragma once

namespace dlc {

/// Makes the compiler the backend of compiled functions. Called once at start; cheap until something is compiled.
void installCompiler();

} // namespace dlc
