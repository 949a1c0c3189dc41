// The command `ucudnn`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "support/settings.hpp"
#include "support/text.hpp"
#include "tool/command_line.hpp"
#include "tool/failure.hpp"

namespace {

/// One line on stderr, whatever the message; none for an empty one.
int report(std::string message, int status) {
  constexpr std::string_view kName = "ucudnn: ";
  std::replace(message.begin(), message.end(), '\n', ' ');
  if (!message.empty())
    fmt::print(stderr,
               "{}{}\n",
               kName,
               ucudnn::excerpt(message, ucudnn::kMostMessageBytes - kName.size() - 1));
  return status;
}

/// Results that could not be written are a failure, whichever command wrote them.
void flushResults() {
  std::cout.flush();
  if (!std::cout) throw ucudnn::tool::BadInput("stdout cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const int status = ucudnn::tool::parseCommandLine(arguments)();
    flushResults();
    return status;
  } catch (const ucudnn::tool::BadInput& error) {
    return report(error.what(), 2);
  } catch (const ucudnn::BadSetting& error) {
    return report(error.what(), 2);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
