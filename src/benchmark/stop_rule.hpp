// When to stop timing one kernel. Plain arithmetic over samples; knows no device.
#pragma once

#include <cstddef>
#include <vector>

namespace ucudnn {

/// Collects samples of one time and says when their median can be trusted.
class StopRule {
 public:
  struct Limits {
    std::size_t minimumSamples = 3;  ///< the fewest from which a median can drop an outlier
    std::size_t maximumSamples =
        7;  ///< more samples are not worth it: the median of a noisy kernel moves no further
    double relativeSpread = 0.01;  ///< median absolute deviation over median; plans differ by more
    double budgetMs = 20;          ///< device time for one kernel at one size
  };

  StopRule() : StopRule(Limits{}) {}
  explicit StopRule(Limits limits) : limits_(limits) {}

  /// Adds a sample; `spentMs` is the device time that taking it cost.
  void add(double sample, double spentMs);

  bool done() const;

  /// REQUIRES: at least one sample.
  double median() const;
  /// Median absolute deviation over the median; 0 with one sample. REQUIRES: at least one sample.
  double relativeSpread() const;
  int minimumSamples() const noexcept { return static_cast<int>(limits_.minimumSamples); }
  double budgetMs() const noexcept { return limits_.budgetMs; }
  std::size_t count() const noexcept { return samples_.size(); }

 private:
  Limits limits_;
  std::vector<double> samples_;
  double spentMs_ = 0;
};

}  // namespace ucudnn
