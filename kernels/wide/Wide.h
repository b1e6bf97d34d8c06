// Loops compiled a second time for AVX-512, chosen at run time. They give the same bits as the others.
#pragma once
#include "kernels/elementwise/Loops.h"

namespace dlc::kernels {

/// f(input, second input, output, length) of one contiguous f32 row.
using RowFn = void (*)(const float *, const float *, float *, int64_t);

struct WideCode {
  const LoopFn *loops; ///< by LoopTable::wide
  RowFn softmax, logSoftmax, softmaxBackward, logSoftmaxBackward;
};

/// Null if this machine lacks AVX-512.
const WideCode *wideCode();

} // namespace dlc::kernels
