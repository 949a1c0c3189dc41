// When measuring a problem pays that no query asked to measure. Plain arithmetic over times.
#pragma once

#include <cstdint>
#include <mutex>

namespace ucudnn {

/// What a program has spent in convolutions and on measuring them, and whether to spend more.
///
///  1. Over a program's life measuring takes at most a share of the time in convolutions.
///  2. Only what repeats is worth it: a problem that was called kRepetitions times will be again.
///  3. A program whose problems have settled (kRepetitions calls for each since the last new one)
///     may spend kSettledMs at once: that is what a fixed network costs, and it pays for days.
///
/// Thread-safe.
class Investment {
 public:
  static constexpr int kRepetitions = 3;
  /// Programs that compare candidates call each a few times, and only one of them ever after.
  /// PyTorch's `benchmark` has up to three that don't use tensor cores, and calls each five times.
  static constexpr int kRepetitionsOfCandidates = 50;
  /// On an H200 AlexNet's 15 convolutions take 5.2 s, ResNet-18's 60 take 8.2 to 9.6 s:
  /// misc/RESULTS.md, "Each convolution with its own limit".
  static constexpr double kSettledMs = 10000;

  /// A call of a problem that has been called `before` times, and takes about `timeMs`.
  void addCall(std::uint64_t before, double timeMs);
  /// Calls that were not looked at one by one.
  void addTime(double timeMs) {
    const std::lock_guard lock(mutex_);
    convolutionMs_ += timeMs;
  }
  /// A measurement has cost `costMs` where `expectedCostMs(timeMs)` was thought of.
  void addCost(double timeMs, double costMs);

  /// Whether to measure now a problem that was called `calls` times and takes about `timeMs`.
  bool pays(std::uint64_t calls,
            double timeMs,
            double share,
            std::uint64_t repetitions = kRepetitions) const;

  /// What measuring a problem costs that takes `timeMs` a call: learned from those measured.
  double expectedCostMs(double timeMs) const;

 private:
  double expected(double timeMs) const;
  bool isSettled() const { return callsSinceNew_ >= kRepetitions * problems_; }

  mutable std::mutex mutex_;
  double convolutionMs_ = 0;
  double spentMs_ = 0;
  double costRatio_ = 1;  ///< of what measuring cost to what the rule of thumb says
  std::uint64_t problems_ = 0;
  std::uint64_t callsSinceNew_ = 0;
};

}  // namespace ucudnn
