// The generated kernels of elementwise ops whose number is DLC_SHARD modulo 4.
#pragma once
#include "kernels/Kernels.h"
#include "kernels/elementwise/Elementwise.h"
#include "runtime/scalar/Primitives.h"

namespace dlc::kernels {
namespace {
#include "runtime/op/ScalarOps.inc"
} // namespace
#include "kernels/elementwise/ElementwiseKernels.inc"
} // namespace dlc::kernels
