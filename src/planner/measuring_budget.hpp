// When measuring a problem pays that no query asked to measure. Plain arithmetic over times.
#pragma once

#include <cstdint>
#include <mutex>

#include "support/fork.hpp"

namespace ucudnn {

/// What a program has spent in convolutions and on measuring them, and whether to spend more.
///
///  1. Over a program's life measuring takes at most a share of the time in convolutions. What was
///     asked for is not counted, nor what could not run otherwise.
///  2. Only what repeats is worth it: a problem that was called kRepetitions times will be again.
///  3. A program whose problems have settled (kRepetitions calls for each since the last new one)
///     may spend kSettledMs at once: that is what a fixed network costs, and it pays for days. Not
///     on one sample, which has little to gain: no call of a decoder or a server waits for that.
///  4. A call whose own kernel has too little workspace may run by a much slower one. Such a
///     problem is measured once its calls have taken as long as measuring it would: whatever comes,
///     the program then spends at most twice what it had to. Not where its own kernel runs on parts
///     of the batch, or another in bands, which is about as fast.
///
/// Thread-safe.
class MeasuringBudget {
 public:
  static constexpr int kRepetitions = 3;
  /// Programs that compare candidates call each a few times, and only one of them ever after.
  /// PyTorch's `benchmark` has up to three that don't use tensor cores, and calls each five times.
  static constexpr int kRepetitionsOfCandidates = 50;
  /// On an H200 AlexNet's 15 convolutions take 5.2 s, ResNet-18's 60 take 8.2 to 9.6 s:
  /// misc/RESULTS.md, "Each convolution with its own limit".
  static constexpr double kSettledMs = 10000;

  /// So many calls of a problem that has been called `before` times, of about `timeMs` each.
  void addCalls(std::uint64_t before, std::uint32_t count, double timeMs);
  /// Calls that were not looked at one by one.
  void addTime(double timeMs) {
    const std::lock_guard lock(mutex_);
    convolutionMs_ += timeMs;
  }
  /// A measurement has cost `costMs` where `expectedCostMs(timeMs)` was thought of.
  void learn(double timeMs, double costMs);
  /// Nobody asked for it.
  void spend(double costMs) {
    const std::lock_guard lock(mutex_);
    spentMs_ += costMs;
  }

  /// Whether to measure now a problem that was called `calls` times and takes about `timeMs`.
  /// `mayWait`: a call of a settled program may wait for it.
  bool pays(std::uint64_t calls,
            double timeMs,
            double share,
            std::uint64_t repetitions = kRepetitions,
            bool mayWait = true) const;

  /// Whether calls that lack workspace have taken as long as measuring their problem would.
  bool paysBack(std::uint64_t calls, double timeMs, double share) const;

  /// What measuring a problem costs that takes `timeMs` a call: learned from those measured.
  double expectedCostMs(double timeMs) const;

 private:
  double expected(double timeMs) const;
  bool isSettled() const { return callsSinceNew_ >= kRepetitions * problems_; }

  mutable ForkMutex mutex_;
  double convolutionMs_ = 0;
  double spentMs_ = 0;
  double costRatio_ = 1;  ///< of what measuring cost to what the rule of thumb says
  std::uint64_t problems_ = 0;
  std::uint64_t callsSinceNew_ = 0;
};

}  // namespace ucudnn
