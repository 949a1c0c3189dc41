// The command line.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ucudnn::tool {

/// What the command line asks for: to be called once; returns the exit status.
using Command = std::function<int()>;

/// Throws BadInput, one line that names the option; BadSetting where a UCUDNN_* variable is bad.
/// For
/// --help and --version the command prints them.
Command parseCommandLine(std::vector<std::string> arguments);

}  // namespace ucudnn::tool
