// Values of maps that are kept in an output's memory between loops.
#include "compiler/lower/KernelEmitter.h"

using namespace mlir;
using namespace dlc::ir::kernel;

namespace dlc::compiler {

KernelEmitter::Access KernelEmitter::stashAccess(const Stash &stash, unsigned copy) {
  WriteOp out = stash.out;
  Access access;
  access.buffer = cast<BlockArgument>(out.getBuffer());
  access.map = out.getMap();
  access.copy = copy;
  for (StringAttr name : out.getValue().getType().getDims())
    access.dims.push_back(kernel_.getDimIndex(name.getValue()));
  return access;
}

Value KernelEmitter::loadStash(const Stash &stash, unsigned copy) {
  Type scalar = cast<ValType>(stash.stage.getType()).getElementType();
  return fromMemory(load(address(stashAccess(stash, copy)), copy, Value()), scalar);
}

void KernelEmitter::storeStash(const Stash &stash, unsigned copy, Value value) {
  WriteOp out = stash.out;
  if (out.getValue() == stash.stage)
    return; // the write itself stores it, in the same loop
  Type scalar = cast<ValType>(stash.stage.getType()).getElementType();
  store(address(stashAccess(stash, copy)), copy, toMemory(value, scalar));
}

} // namespace dlc::compiler
