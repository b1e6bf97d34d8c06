// What a file of kernels needs: the typed arguments of every op and the declarations of every kernel.
#pragma once
#include "kernels/common/Copy.h"
#include "runtime/core/Error.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/op/OpInfo.h"

namespace dlc {
#include "runtime/op/OpArgs.inc"
namespace kernels {
#include "runtime/op/KernelDecls.inc"
} // namespace kernels
} // namespace dlc
