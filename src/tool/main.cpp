// The command `ucudnn`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "support/settings.hpp"
#include "tool/command_line.hpp"
#include "tool/failure.hpp"

namespace {

/// One line on stderr, whatever the message; none for an empty one.
int report(std::string message, int status) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  if (!message.empty()) fmt::print(stderr, "ucudnn: {}\n", message);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return ucudnn::tool::parseCommandLine(arguments)();
  } catch (const ucudnn::tool::BadInput& error) {
    return report(error.what(), 2);
  } catch (const ucudnn::BadSetting& error) {
    return report(error.what(), 2);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
