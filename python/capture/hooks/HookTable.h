// The hooks as Python callables, by the names of a twin's hidden parameters.
#pragma once
#include "python/binding/Binding.h"

namespace dlc::py {

/// A dict of all hooks (borrowed).
PyObject *hookDict();

} // namespace dlc::py
