// Rules and gradients of eager tensors in the boxed form that the op table points to.
#pragma once
#include "runtime/op/OpInfo.h"

namespace dlc {
#include "runtime/rules/RuleDecls.inc"
} // namespace dlc
