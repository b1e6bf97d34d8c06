// dst += src, the step that scattering gradients are made of.
#pragma once
#include "runtime/core/Tensor.h"

namespace dlc::kernels {

/// dst += src elementwise (broadcast); the elements of dst are distinct.
void accumulateInto(const Tensor &dst, const Tensor &src);

} // namespace dlc::kernels
