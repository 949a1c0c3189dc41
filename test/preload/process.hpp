// Programs that a test starts.
#pragma once

#include <string>
#include <vector>

namespace ucudnn::test {

struct Outcome {
  int status = -1;  ///< 128 and more: ended by a signal
  std::string output, error;
};

/// Lets the shell run a line.
Outcome shell(const std::string& line);

/// Sets LD_PRELOAD for a program of `shell`. A sanitizer's runtime must be a program's first
/// library.
std::string preloading(const std::string& libraries);

std::string readText(const std::string& path);
std::vector<std::string> linesOf(const std::string& path);

/// The results that a plain program has written.
std::vector<float> readResults(const std::string& path);

}  // namespace ucudnn::test
