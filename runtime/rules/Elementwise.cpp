// Gradients and rules of the ops in dialects/ops/Elementwise.td, for eager tensors.
#include "runtime/rules/Boxed.h"
#include "runtime/rules/Decompositions.h"
#include "runtime/rules/Grad.h"

namespace dlc::rules {
#include "runtime/rules/VjpElementwise.inc"
} // namespace dlc::rules

namespace dlc {
using namespace rules;
using namespace ops;
#include "runtime/rules/BoxesElementwise.inc"
} // namespace dlc
