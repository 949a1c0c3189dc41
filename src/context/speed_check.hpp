// A plan in use, timed beside the client's own kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "cuda/owners.hpp"

namespace ucudnn {

/// Calls of a client run in turns by the plan and by the client's own kernel, between two events
/// each. Nothing is waited for. What was measured once may have been measured beside a neighbour,
/// or on a hot device. Not thread-safe.
class SpeedCheck {
 public:
  /// So many calls by each: 32 events, which cost the host some 30 us in all.
  static constexpr int kCalls = 8;
  /// A plan has its first check at this call; each further one after as many calls times
  /// kTimesLater. So checks take at most kCalls of 256 calls by the slower of both.
  static constexpr std::uint32_t kFirst = 256;
  static constexpr std::uint32_t kTimesLater = 8;

  enum class Next {
    kPlan,  ///< the next call runs the plan, and is timed
    kOwn,   ///< the client's own kernel, likewise
    kWait,  ///< all have been enqueued; the device has yet to run some
    kOver,
  };
  Next next() noexcept;

  /// Around the call that `next` has named. False: it can't be timed, and the check is over.
  bool begin(cudaStream_t stream) noexcept { return record(stream); }
  bool end(cudaStream_t stream) noexcept { return record(stream); }

  /// Whether the own kernel took less time, by more than timings differ. REQUIRES: kOver.
  bool ownIsFaster() const noexcept { return !failed_ && planMs_ > ownMs_ * kGain; }

 private:
  // Two sums of eight calls that alternate differ by less, if they are of the same kernel.
  static constexpr double kGain = 1.02;

  bool record(cudaStream_t stream) noexcept;
  void addUp() noexcept;

  std::vector<Event> events_;  ///< two for each call
  bool failed_ = false, isOver_ = false;
  double planMs_ = 0, ownMs_ = 0;
};

}  // namespace ucudnn
