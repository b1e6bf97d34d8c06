// Sizes of IR values, under the names of this namespace.
#pragma once
#include "dialects/dlc/Sizes.h"

namespace dlc::compiler {
using namespace dlc::ir;
}
