// Gradients and rules of the ops in dialects/ops/Reduce.td, for eager tensors.
#include "runtime/rules/Boxed.h"
#include "runtime/rules/Decompositions.h"
#include "runtime/rules/Grad.h"

namespace dlc::rules {
#include "runtime/rules/VjpReduce.inc"
} // namespace dlc::rules

namespace dlc {
using namespace rules;
using namespace ops;
#include "runtime/rules/BoxesReduce.inc"
} // namespace dlc
