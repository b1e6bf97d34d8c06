// Which build of dlc this is.
#pragma once
#include <string>

namespace dlc {

/// The linker's identification of the file that this code is in: equal ones have equal code. Empty if it has none.
const std::string &buildId();

} // namespace dlc
