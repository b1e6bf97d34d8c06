// Reads and writes .npy files (version 1, little-endian, row-major).
#pragma once
#include "runtime/core/Tensor.h"
#include <string>

namespace dlc {

/// Throws ValueError naming the file when it is none, or of an unknown dtype.
Tensor readNpy(const std::string &path);
/// `t` must be row-major.
void writeNpy(const std::string &path, const Tensor &t);

} // namespace dlc
