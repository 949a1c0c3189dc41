// Times a plan in use beside the client's own kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "cuda/owners.hpp"

namespace ucudnn {

/// Runs a client's calls in turns by the plan and by the client's own kernel, each between two
/// events. Waits for nothing. The earlier measurement may have been taken beside a neighbour, or on
/// a hot device. Not thread-safe.
class SpeedCheck {
 public:
  /// Calls by each. They take 32 events, which cost the host some 30 us in all.
  static constexpr int kCalls = 8;
  /// A plan has its first check at this call, and each further one after kTimesLater times as many
  /// calls. So checks run at most kCalls of 256 calls by the slower of both.
  static constexpr std::uint32_t kFirst = 256;
  static constexpr std::uint32_t kTimesLater = 8;

  enum class Next {
    kPlan,  ///< the next call runs the plan, and is timed
    kOwn,   ///< the next call runs the client's own kernel, and is timed
    kWait,  ///< all have been enqueued; the device has yet to run some
    kOver,
  };
  Next next() noexcept;

  /// For the call that `next` has named. Returns false if it can't be timed; the check is over
  /// then.
  bool begin(cudaStream_t stream) noexcept { return record(stream); }
  bool end(cudaStream_t stream) noexcept { return record(stream); }

  /// Whether the own kernel took less time, by more than timings differ. REQUIRES: kOver.
  bool ownIsFaster() const noexcept { return !failed_ && planMs_ > ownMs_ * kGain; }

 private:
  // The sums of eight alternating calls differ by less if both run the same kernel.
  static constexpr double kGain = 1.02;

  bool record(cudaStream_t stream) noexcept;
  void addUp() noexcept;

  std::vector<Event> events_;  ///< two for each call
  bool failed_ = false, isOver_ = false;
  double planMs_ = 0, ownMs_ = 0;
};

}  // namespace ucudnn
