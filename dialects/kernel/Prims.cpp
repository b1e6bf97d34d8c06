// The scalar primitives that kernel.prim may call: those of runtime/scalar.
#include "dialects/kernel/KernelDialect.h"

#include "runtime/scalar/Primitives.h"

bool dlc::ir::kernel::isKnownPrim(llvm::StringRef name) {
  return scalar::primitiveArity(std::string_view(name.data(), name.size())) >= 0;
}
