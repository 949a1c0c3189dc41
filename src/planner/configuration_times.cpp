#include "planner/configuration_times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "benchmark/timing_limits.hpp"

namespace ucudnn {

namespace {

// For estimates only: the rate of cuDNN's TF32 kernels on an H200 (misc/results/alexnet_*.json),
// half of its memory's bandwidth, and the time of a launch.
constexpr double kMultiplyAddsPerMs = 5e10;
constexpr double kBytesPerMs = 2e9;
constexpr double kLeastMs = 0.01;

}  // namespace

double estimatedMs(const Problem& problem) {
  const auto bytes = static_cast<double>(problem.xBytes() + problem.wBytes() + problem.yBytes());
  return kLeastMs + std::max(problem.multiplyAdds() / kMultiplyAddsPerMs, bytes / kBytesPerMs);
}

const Measurement& measurementOf(const MicroBatches& group, const Measurements& measurements) {
  return measurements.at(group.batch).kernels.at(static_cast<std::size_t>(group.kernel));
}

bool isDivided(const Configuration& configuration) noexcept {
  const auto& groups = configuration.microBatches;
  return groups.size() > 1 || (groups.size() == 1 && groups.front().count > 1);
}

bool paysToReplay(KernelTiming timing) noexcept {
  return (timing.deviceMs + kReplayMs) * kSplitGain <= timing.timeMs;
}

bool paysToReplay(const Configuration& configuration, const Measurements& measurements) {
  return isDivided(configuration) ||
         paysToReplay(measurementOf(configuration.microBatches.front(), measurements));
}

double enqueuedMs(const Configuration& configuration, const Measurements& measurements) {
  double sum = 0;
  for (const MicroBatches& group : configuration.microBatches)
    sum += group.count * (measurementOf(group, measurements).timeMs + kLaunchMs);
  return sum;
}

double partsMs(const Plan& plan, const Measurements& measurements) {
  double sum = 0;
  for (const Plan::Step& step : plan.steps) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [batch, size] : measurements) {
      const auto* const m = findKernel(size.kernels, step.kernel);
      if (m == nullptr || (step.deterministic && !m->deterministic)) continue;
      least = std::min(least, m->timeMs * std::max(1.0, static_cast<double>(step.batch) / batch));
    }
    if (!std::isfinite(least)) return 0;
    sum += step.count * (least + kLaunchMs);
  }
  return sum;
}

double predictedMs(const Configuration& configuration,
                   Pace pace,
                   bool mayReplay,
                   const Measurements& measurements) {
  const bool isReplayed = mayReplay && paysToReplay(configuration, measurements);
  if (!isReplayed || pace == Pace::kDevice) return configuration.timeMs;
  double sum = kReplayMs;
  for (const MicroBatches& group : configuration.microBatches)
    sum += group.count * measurementOf(group, measurements).deviceMs;
  return sum;
}

}  // namespace ucudnn
