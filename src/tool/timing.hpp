// Back-to-back times of convolutions on a stream.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "tool/device.hpp"

namespace ucudnn::tool {

/// One of those that are compared: enqueues its work, once a call, on the stream it was made for.
struct Contestant {
  std::function<void()> enqueue;
  // The answers.
  double timeMs = 0;         ///< the median over the rounds, of one call
  double replayedCalls = 0;  ///< convolutions that were replayed in one call: the mean
};

/// Times each contestant `rounds` times, one after another in each round, so that a clock that
/// drifts hits all alike. One time is taken with events around as many calls as fill 5 ms, after
/// one call that is not counted and keeps the queue from running dry; then the device rests. Throws
/// what enqueue throws, DeviceError.
void timeBackToBack(cudaStream_t stream, int rounds, std::vector<Contestant>& contestants);

/// The time of one call; a call before it is not counted. Then the device rests. Throws
/// DeviceError, and whatever enqueue throws.
double timeOnceMs(cudaStream_t stream, const std::function<void()>& enqueue);

/// Lets the device idle for three times as long as it was busy, at most 0.1 s. Without rests an
/// H200 reaches its power limit and lowers its clocks, by up to a sixth (2026-11-21), so that the
/// next timing pays for the work before it. Has no effect on the simulator, whose clock is virtual.
void restDevice(double busyMs);

/// Host time.
double msSince(std::chrono::steady_clock::time_point begin);

/// How many calls fill a timing. REQUIRES: timeMs >= 0.
int callsForTiming(double timeMs);

/// The middle value, or the mean of the two in the middle. REQUIRES: there is one.
double median(std::vector<double> values);

}  // namespace ucudnn::tool
