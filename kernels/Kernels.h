// What a file of kernels needs: the typed arguments of every op and the declarations of every kernel.
#pragma once
#include "kernels/common/Copy.h"
#include "runtime/core/Error.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/op/Ops.h"

namespace dlc::kernels {
using namespace dlc::ops;
#include "runtime/op/KernelDecls.inc"
} // namespace dlc::kernels
