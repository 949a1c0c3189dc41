// Decides when it pays to measure a problem unasked. Plain arithmetic over times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "support/fork.hpp"

namespace ucudnn {

/// The time that a program has spent in convolutions and on measuring them, and whether to spend
/// more.
///
///  1. Over a program's life measuring takes at most a share of the time in convolutions, and after
///     each slice it rests: whatever it has saved up, it takes at most a third of any stretch.
///     Measuring that was asked for is not counted, nor is any for a call that could not run
///     otherwise.
///  2. Only what repeats is worth it, and what can gain: a problem whose calls have taken so long
///     that the hoped part of their time pays for measuring it. Hopes begin at what programs gain
///     (Hope), and follow what was gained so far.
///     Few kernels are looked at first where some are likely to win, which costs little: those of
///     a problem of another image size; and for a problem that runs in parts for lack of workspace
///     these parts' kernels beside the first that cuDNN's heuristics name. Where the other problem
///     runs by the client's own kernel, little is hoped for, and so it is behind a look.
///  3. A call whose own kernel has too little workspace may run by a much slower one. Such a
///     problem is measured from its first calls on, for as long as they have taken: whatever comes,
///     the program then spends at most twice what it had to. Where its own kernel runs on parts of
///     the batch, or another in bands, it loses lossInParts: a look may take as much. Parts of the
///     batch that we copy for the kernel lose nothing that is known.
///  4. The problem whose gain pays soonest goes first (measuring_queue.hpp).
///
/// Thread-safe.
class MeasuringBudget {
 public:
  /// The problems of which a gain is hoped for.
  enum class Hope {
    /// Unmodified programs on an H100 gain 0 to 20 % of their convolutions' time by measured plans:
    /// misc/RESULTS.md at 7ba7ca8, "Programs that nobody here wrote".
    kWhole,
    kInParts,     ///< a kernel that runs in parts for lack of workspace has lost some time already
    kAfterALook,  ///< the kernels that a look has left for later
    /// Those parts are of the batch, and we copy them for their kernel. Little is hoped for:
    /// ResNet-18 within 64 MiB has 15 such problems, and on an H200 looks at them took 0.16 s and
    /// saved 0.3 % of a step, which pays after 2,000 steps
    /// (misc/results/unasked_copies_h200.json at 743f4563).
    kOnCopies
  };

  /// AlexNet and ResNet-18 lost so much by it on an H100, within 64 MiB.
  static constexpr double kLeastLossInParts = 0.08;
  /// For a problem whose neighbour runs by the client's own kernel. No hope that was above it falls
  /// below it, so that a long program measures all.
  static constexpr double kLeastGain = 0.02;

  /// Adds estimated time in convolutions, times the correction that was learned.
  void addTime(double timeMs) {
    const std::lock_guard lock(mutex_);
    convolutionMs_ += timeRatio_ * timeMs;
  }
  /// A call that was estimated to take `estimatedMs` takes `timeMs`.
  void learnTime(double estimatedMs, double timeMs);
  /// A measurement has cost `costMs`; `expectedCostMs(timeMs)` was expected.
  void learn(double timeMs, double costMs);
  /// A measurement has saved this part of its problem's time, or nothing: 0.
  void learnGain(Hope hope, double gain);
  /// Counts measuring that nobody asked for.
  void spend(double costMs) {
    const std::lock_guard lock(mutex_);
    spentMs_ += costMs;
    restUntilMs_ = convolutionMs_ + kRest * costMs;
  }

  /// The part of a problem's time that measuring it is hoped to save.
  double hopedGain(Hope hope) const {
    const std::lock_guard lock(mutex_);
    return hopes_.at(static_cast<std::size_t>(hope));
  }

  /// The part of a problem's time that it loses by running in parts: what looks have gained.
  double lossInParts() const {
    const std::lock_guard lock(mutex_);
    return lossInParts_;
  }

  /// How many times over the hoped `gain` of a problem's calls, which have taken `callsMs`, each
  /// `timeMs`, pays for measuring it. It is worth it from 1 on.
  double payback(double callsMs, double timeMs, double gain) const {
    return gain * callsMs / expectedCostMs(timeMs);
  }
  /// The same for a look at few kernels.
  static double paybackOfALook(double callsMs, double timeMs, double gain) {
    return gain * callsMs / (kLookMs + kCallsOfALook * timeMs);
  }
  /// Whether the share has `costMs` left, and the last slice was long ago.
  bool has(double costMs, double share) const;

  /// The time of a call that is estimated to take `estimatedMs`.
  double expectedMs(double estimatedMs) const {
    const std::lock_guard lock(mutex_);
    return timeRatio_ * estimatedMs;
  }
  /// Expected cost of measuring a problem that takes `timeMs` a call, learned from those measured.
  double expectedCostMs(double timeMs) const;

 private:
  // Some ten engines are built and timed, for 1 to 3 ms each.
  static constexpr double kLookMs = 20;
  static constexpr double kCallsOfALook = 10;
  // Measuring that has saved up would take whole steps of a program.
  static constexpr double kRest = 2;

  double expected(double timeMs) const;

  mutable ForkMutex mutex_;
  double convolutionMs_ = 0;
  double spentMs_ = 0;
  double restUntilMs_ = 0;                                ///< in convolutionMs_
  std::array<double, 4> hopes_ = {0.1, 0.3, 0.05, 0.01};  ///< by Hope
  double lossInParts_ = kLeastLossInParts;
  double timeRatio_ = 1;  ///< of what calls take to what is estimated
  double costRatio_ = 1;  ///< of what measuring cost to what the rule of thumb says
};

}  // namespace ucudnn
