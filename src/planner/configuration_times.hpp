// What kernels and configurations take, and which differences matter.
#pragma once

#include <cstddef>

#include "benchmark/measurement.hpp"
#include "optimizer/configuration.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// The time of one more launch in a plan. Kernels are timed among calls enqueued back to back, so
/// each time holds its own launch already; this much is kept so that equally fast configurations do
/// not differ by launches alone.
constexpr double kLaunchMs = 1e-4;

// Timings repeat within half a percent (median prediction error of misc/results/*.json, H200); two
// of them are compared.
constexpr double kSplitGain = 1.01;

// A plan that gains less does not replace the client's own kernel: a call by it costs the host as
// much more than one that is left alone, and times of short kernels differ by as much.
constexpr double kLeastGainMs = 5e-4;

// Half of so much workspace is worth that much time, where the client is yet to be told how much it
// needs. Of less the time that the host takes for more calls of cuDNN is no longer small.
constexpr double kHalfWorkspaceGain = 1.03;
constexpr std::size_t kWorthHalving = std::size_t{256} << 20;

// What is less a framework's allocator has anyway: PyTorch's hands out up to 10 MiB of blocks of
// 20, and for more it keeps the largest block that a plan asked for.
constexpr std::size_t kWorthSaving = std::size_t{16} << 20;

/// What paces the micro-batches of a plan.
enum class Pace {
  kHost,   ///< each is enqueued
  kDevice  ///< all are replayed, where that gains
};

/// REQUIRES: the group is of a configuration of these measurements.
const Measurement& measurementOf(const MicroBatches& group, const Measurements& measurements);

bool isDivided(const Configuration& configuration) noexcept;

/// Whether a kernel that makes up a plan alone is replayed.
bool paysToReplay(KernelTiming timing) noexcept;

/// Whether a call that repeats is replayed. REQUIRES: as `measurementOf`.
bool paysToReplay(const Configuration& configuration, const Measurements& measurements);

/// What a call takes that is not replayed. REQUIRES: the same.
double enqueuedMs(const Configuration& configuration, const Measurements& measurements);

/// About how long a convolution takes that nobody has timed: rather too short, on an H200.
double estimatedMs(const Problem& problem);

}  // namespace ucudnn
