// The scalar primitives that kernel.prim may call: the names of runtime/scalar.
#include "dialects/kernel/KernelDialect.h"

#include "llvm/ADT/StringSet.h"

bool dlc::ir::kernel::isKnownPrim(llvm::StringRef name) {
  static const llvm::StringSet<> kNames = {
      "exp",   "exp2",  "expm1", "log",     "log2",      "log10",     "log1p",     "sin",        "cos",
      "tan",   "asin",  "acos",  "atan",    "sinh",      "cosh",      "asinh",     "acosh",      "atanh",
      "tanh",  "erf",   "erfc",  "sqrt",    "rsqrt",     "pow",       "atan2",     "fmod",       "remainder",
      "abs",   "neg",   "floor", "ceil",    "round",     "trunc",     "sign",      "reciprocal", "sigmoid",
      "fma",   "fmin",  "fmax",  "minimum", "maximum",   "floor_div", "trunc_div", "copysign",   "nextafter",
      "isnan", "isinf", "isfinite"};
  return kNames.contains(name);
}
