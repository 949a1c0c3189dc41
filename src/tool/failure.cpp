#include "tool/failure.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>

#include "support/settings.hpp"
#include "support/text.hpp"

namespace ucudnn::tool {
namespace {

/// One line on stderr, whatever the message; none for an empty one.
int report(std::string message, int status) {
  constexpr std::string_view kName = "ucudnn: ";
  std::replace(message.begin(), message.end(), '\n', ' ');
  if (!message.empty())
    fmt::print(stderr, "{}{}\n", kName, excerpt(message, kMostMessageBytes - kName.size() - 1));
  return status;
}

/// Results that could not be written are a failure, whichever command wrote them.
void flushResults() {
  std::cout.flush();
  if (!std::cout && !isReaderGone()) throw BadInput("stdout cannot be written");
}

}  // namespace

void ignoreBrokenPipes() noexcept {
  std::signal(SIGPIPE, SIG_IGN);
}

bool isReaderGone() noexcept {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

int exitStatusOf(const std::function<int()>& command) {
  try {
    const int status = command();
    flushResults();
    return status;
  } catch (const BadInput& error) {
    return report(error.what(), 2);
  } catch (const BadSetting& error) {
    return report(error.what(), 2);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

}  // namespace ucudnn::tool
