// Meta functions: sizes, strides, dtypes and errors of every op's results from its arguments, in plain code over Dim.
// The same function checks eager calls, re-types recorded graphs and infers types in the IR.
#pragma once
#include "runtime/op/Ops.h"

namespace dlc {
namespace ops {
#include "runtime/op/MetaDecls.inc"
} // namespace ops

/// The boxed form of each meta function, which the op table points to.
#include "runtime/op/MetaBoxedDecls.inc"
} // namespace dlc
