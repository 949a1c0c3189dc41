#include "tool/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace ucudnn::tool {
namespace {

constexpr std::size_t kBarWidth = 30;
constexpr std::size_t kUsualColumns = 80;  // where the terminal does not say

std::size_t terminalColumns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                         : kUsualColumns;
}

}  // namespace

std::string progressLine(std::size_t done,
                         std::size_t steps,
                         const std::string& label,
                         std::size_t columns) {
  const std::size_t filled = steps == 0 ? kBarWidth : done * kBarWidth / steps;
  return fmt::format("[{}{}] {}/{}  {}",
                     std::string(filled, '#'),
                     std::string(kBarWidth - filled, '.'),
                     done,
                     steps,
                     label)
      .substr(0, columns);
}

Progress::Progress(std::size_t steps) : visible_(isatty(STDERR_FILENO) != 0), steps_(steps) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void Progress::begin(const std::string& label) {
  // One column stays free: some terminals wrap at the last.
  if (visible_)
    std::fprintf(
        stderr, "\r\x1b[K%s", progressLine(done_, steps_, label, terminalColumns() - 1).c_str());
  ++done_;
}

}  // namespace ucudnn::tool
