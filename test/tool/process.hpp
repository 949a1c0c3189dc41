// Runs the tool as its users do.
#pragma once

#include <string>

namespace ucudnn::test {

struct Outcome {
  int status = -1;  ///< the exit status; -1 when a signal ended it
  std::string output, error;
};

/// Runs `ucudnn ARGUMENTS` through the shell; `environment` goes before: "NAME=value NAME=value".
/// With `outputFile`, stdout goes there, and no `output` is read.
Outcome runTool(const std::string& arguments,
                const std::string& environment = "",
                const std::string& outputFile = "");

std::string readFile(const std::string& path);

}  // namespace ucudnn::test
