// Boxed ops, under the names of this namespace.
#pragma once
#include "compiler/graph/Sizes.h"
#include "dialects/dlc/BoxedOp.h"
