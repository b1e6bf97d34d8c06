// Shared by the row kernels.
#pragma once
#include "kernels/common/Copy.h"
#include "kernels/common/Types.h"
#include "kernels/nn/RowSums.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/scalar/Exp.h"
#include "runtime/scalar/Log.h"
#include <algorithm>
#include <vector>

namespace dlc::kernels {

/// Rows a task should take, so that it is worth a thread.
inline int64_t rowGrain(int64_t width, int64_t costPerElement = 4) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, width * costPerElement));
}

} // namespace dlc::kernels
