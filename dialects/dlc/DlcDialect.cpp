// Registration of all families, and the dialect's own ops.
#include "dialects/dlc/DlcDialect.h"

using namespace mlir;

#include "dialects/dlc/DlcDialect.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/dlc/DlcOps.cpp.inc"

namespace dlc::ir {

#define DLC_FAMILY(name) void register##name##Ops(DlcDialect &dialect);
#include "dialects/dlc/Families.inc"
#undef DLC_FAMILY

void DlcDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/dlc/DlcOps.cpp.inc"
      >();
#define DLC_FAMILY(name) register##name##Ops(*this);
#include "dialects/dlc/Families.inc"
#undef DLC_FAMILY
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom(*this, getKernelAttr()))
    return emitOpError() << "kernel @" << getKernel() << " is not defined in the module";
  return success();
}

} // namespace dlc::ir
