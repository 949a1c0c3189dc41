// Numbers that say how long to time what, as found on an H200.
#pragma once

#include <algorithm>

#include "benchmark/stop_rule.hpp"

namespace ucudnn {

// A sample lasts at least this long: 600 times the resolution of an event (0.5 us; CUDA Runtime
// API, cudaEventElapsedTime), so that it is known to better than 1 %.
constexpr double kSampleMs = 0.3;
// Where the host takes longer to enqueue a call (20 to 70 us, measured on an H200) than the device
// to run it, the host's pace is what is timed, and it takes some twenty calls to settle.
constexpr double kHostPacedMs = 0.08;
constexpr double kHostPacedSampleMs = 1.0;
// The host may be slow, by half, for longer than a kernel is timed (measured, too): kernels at its
// pace are timed once more when all others have been, and the better time counts.
constexpr double kSlowHostPacedMs = 0.1;
constexpr StopRule::Limits kHostPacedAtFirst{2, 2, 0.01, 4.0};
constexpr StopRule::Limits kHostPacedAgain{1, 1, 0.01, 1.0};
// To find out what the device alone takes, so many calls are enqueued behind others, each long
// enough for the host to gain on the device.
constexpr int kCallsBehind = 8;
constexpr double kAheadMs = 3 * kHostPacedMs;
// Where that differs by less than the noise of timings, the host paces nothing.
constexpr double kHostPaced = 0.98;
// What a single timing has of the gap before a first call: measured on an H200 where the call
// enqueues several kernels.
constexpr double kFirstCallGapMs = 0.03;
// Kernels slower than this need no call ahead of the timed one: the gap is 1 % of it. One timing is
// enough for them.
constexpr double kLongMs = 100 * kFirstCallGapMs;
// Kernels within this factor of the front of all anchors are timed until the stop rule is content.
constexpr double kNearFront = 1.15;
// Between anchors there are many sizes, and only what wins by more than this matters.
constexpr StopRule::Limits kBetween{2, 5, 0.02, 2.0};

/// The least that a kernel may take of which a single timing says `timeMs`.
inline double withoutGap(double timeMs) {
  return std::max(timeMs - kFirstCallGapMs, timeMs / 2);
}

}  // namespace ucudnn
