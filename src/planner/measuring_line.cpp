#include "planner/measuring_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

namespace ucudnn {
namespace {

constexpr const char* kErase = "\r\x1b[K";

/// One write, because other threads and processes write to the terminal, too. A terminal that is
/// gone is no error.
void writeToTerminal(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

MeasuringLine::MeasuringLine(const Settings& settings, const Statistics& statistics)
    : isVisible_(settings.isUnmodified && settings.benchmarkShare == kMeasureAlways &&
                 ::isatty(STDERR_FILENO) != 0) {
  if (isVisible_)
    writeToTerminal(fmt::format("{}ucudnn: measuring; so far {} convolutions, {} kernels, {:.0f} s",
                                kErase,
                                statistics.plans.load(),
                                statistics.kernelsMeasured.load(),
                                static_cast<double>(statistics.planningMicroseconds.load()) / 1e6));
}

MeasuringLine::~MeasuringLine() {
  if (isVisible_) writeToTerminal(kErase);
}

}  // namespace ucudnn
