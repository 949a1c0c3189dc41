#include "planner/measuring_budget.hpp"

#include <algorithm>

namespace ucudnn {
namespace {

// A rule of thumb, corrected by what is seen. A policy powerOfTwo and its variants have some 100
// kernels. Each is asked for, built and timed for at least 0.3 ms, most at a smaller size than the
// whole. On an H100 a convolution of AlexNet's and of ResNet-18's takes 400 ms.
constexpr double kFixedCostMs = 350;
constexpr double kCallsMeasured = 40;
// How far one measurement moves the correction.
constexpr double kLearningRate = 0.25;

double ruleOfThumbMs(double timeMs) {
  return kFixedCostMs + kCallsMeasured * timeMs;
}

}  // namespace

void MeasuringBudget::learn(double timeMs, double costMs) {
  const std::lock_guard lock(mutex_);
  const double ratio = std::clamp(costMs / ruleOfThumbMs(timeMs), 0.1, 10.0);
  costRatio_ += kLearningRate * (ratio - costRatio_);
}

void MeasuringBudget::learnTime(double estimatedMs, double timeMs) {
  const std::lock_guard lock(mutex_);
  const double ratio = std::clamp(timeMs / estimatedMs, 0.25, 4.0);
  timeRatio_ += kLearningRate * (ratio - timeRatio_);
}

void MeasuringBudget::learnGain(Hope hope, double gain) {
  const std::lock_guard lock(mutex_);
  double& hoped = hopes_.at(static_cast<std::size_t>(hope));
  hoped = std::max(std::min(kLeastGain, hoped), hoped + kLearningRate * (gain - hoped));
  if (hope == Hope::kInParts)
    lossInParts_ =
        std::max(kLeastLossInParts, lossInParts_ + kLearningRate * (gain - lossInParts_));
}

double MeasuringBudget::expectedCostMs(double timeMs) const {
  const std::lock_guard lock(mutex_);
  return expected(timeMs);
}

/// REQUIRES: the lock is held.
double MeasuringBudget::expected(double timeMs) const {
  return costRatio_ * ruleOfThumbMs(timeMs);
}

bool MeasuringBudget::has(double costMs, double share) const {
  const std::lock_guard lock(mutex_);
  // A larger share than that of the rest is used as it comes.
  const bool rests = share * (1 + kRest) <= 1 && convolutionMs_ < restUntilMs_;
  return !rests && spentMs_ + costMs <= share * convolutionMs_;
}

}  // namespace ucudnn
