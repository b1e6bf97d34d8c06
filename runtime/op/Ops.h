// The ops by name: their ids and typed views of boxed arguments. Generated parts come from dialects/ops/*.td.
#pragma once
#include "runtime/op/OpInfo.h"

namespace dlc {

/// Index in opTable().
enum class OpId : uint16_t {
#define DLC_OP(cls, mnemonic) cls,
#include "runtime/op/OpIds.inc"
#undef DLC_OP
};

inline const OpInfo &opInfo(OpId id) { return opTable()[static_cast<size_t>(id)]; }

namespace detail {
template <class V> const V *presentOrNull(const Arg<V> &a) { return a.isNone() ? nullptr : a.value; }
} // namespace detail

/// One struct an op, `AddArgs<V>`: what meta functions (V = TensorMeta), kernels (Tensor) and rules (any V) read.
/// Absent optional operands are null pointers. Valid as long as the boxed arguments are.
namespace ops {
using detail::presentOrNull;
#include "runtime/op/OpArgs.inc"
} // namespace ops

} // namespace dlc
