// dlc-opt as a function, for the tool of that name and for the extension module.
#pragma once

namespace dlc::compiler {

/// Runs passes and phases on a module's text, as `dlc-opt --help` describes. Returns the exit status.
int optMain(int argc, char **argv);

} // namespace dlc::compiler
