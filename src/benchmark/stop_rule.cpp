#include "benchmark/stop_rule.hpp"

#include <algorithm>
#include <cmath>

namespace ucudnn {
namespace {

double medianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

void StopRule::add(double sample, double spentMs) {
  samples_.push_back(sample);
  spentMs_ += spentMs;
}

bool StopRule::done() const {
  if (samples_.empty()) return false;
  if (samples_.size() >= limits_.maximumSamples || spentMs_ >= limits_.budgetMs) return true;
  return samples_.size() >= limits_.minimumSamples && relativeSpread() <= limits_.relativeSpread;
}

double StopRule::median() const {
  return medianOf(samples_);
}

double StopRule::relativeSpread() const {
  const double center = median();
  if (center <= 0) return 0;
  std::vector<double> deviations;
  deviations.reserve(samples_.size());
  for (const double sample : samples_) deviations.push_back(std::abs(sample - center));
  return medianOf(deviations) / center;
}

}  // namespace ucudnn
