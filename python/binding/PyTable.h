// The shape of the generated table of Python signatures (PyTable.inc): what the one parser reads.
#pragma once
#include "runtime/op/OpInfo.h"

namespace dlc::py {

enum class PyDefault : uint8_t { Required, None, Bool, Int, Float, Str, Ints };

/// One parameter of a Python signature.
struct PyParam {
  const char *name;
  ParamKind kind;
  PyDefault def;
  int64_t i;           ///< default: Bool, Int
  double f;            ///< default: Float
  const char *s;       ///< default: Str
  uint8_t fixed;       ///< an int given for a list is repeated so often; 0: no int is accepted
  const char *choices; ///< "none|mean|sum", or null for any string
};

/// One record as one Python signature.
struct PyOverload {
  const char *op; ///< mnemonic
  const PyParam *params;
  uint8_t numParams;
  const uint8_t *slots; ///< params[k] is argument slots[k] of the op; null: k
  uint8_t kwonly;       ///< index of the first keyword-only parameter
  bool varargs;         ///< `x.view(2, 3)` as `x.view((2, 3))`
  const char *schema;
};

enum PySpelling : uint8_t { kFunction = 1, kMethod = 2, kInplace = 4, kOut = 8 };

/// One Python name with its overloads in the order in which they are tried.
struct PyFunction {
  const char *name;
  const char *module; ///< "", "nn.functional", ...
  uint8_t spellings;
  const char *operatorName; ///< "add" for __add__, __radd__, __iadd__; "" for none
  const PyOverload *overloads;
  uint8_t numOverloads;
  const char *doc;
};

} // namespace dlc::py
