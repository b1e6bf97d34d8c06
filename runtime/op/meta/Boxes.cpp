// The boxed meta functions that the op table points to.
#include "runtime/op/meta/MetaUtil.h"

namespace dlc {
using namespace ops;
#include "runtime/op/MetaBoxes.inc"
} // namespace dlc
