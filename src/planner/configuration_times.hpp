// How long kernels and configurations take, and which differences matter.
#pragma once

#include <cstddef>

#include "benchmark/measurement.hpp"
#include "optimizer/configuration.hpp"
#include "plan/plan.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// The time of one more launch in a plan. Kernels are timed among calls that are enqueued back to
/// back, so each time already includes its own launch. This small amount prefers fewer launches
/// among equally fast configurations.
constexpr double kLaunchMs = 1e-4;

// Timings repeat within half a percent (median prediction error of misc/results/*.json, H200), and
// a comparison involves two of them.
constexpr double kSplitGain = 1.01;

// A plan that gains less does not replace the client's own kernel. A call by the plan costs the
// host that much more than a call that is left alone, and times of short kernels vary by that much.
constexpr double kLeastGainMs = 5e-4;

// If the client is yet to be told how much workspace it needs, a plan may take this much longer if
// it halves a workspace of at least kWorthHalving. For less workspace, the host's time for more
// calls of cuDNN is no longer small.
constexpr double kHalfWorkspaceGain = 1.03;
constexpr std::size_t kWorthHalving = std::size_t{256} << 20;

// Saving less than this frees nothing: PyTorch's allocator hands out up to 10 MiB from blocks of 20
// MiB, and for more it keeps the largest block that a plan asked for.
constexpr std::size_t kWorthSaving = std::size_t{16} << 20;

// A client whose own kernel fits is told less than that needs only if it saves this much. Another
// size splits the blocks of PyTorch's allocator in another way, which may cost as much as a small
// saving frees: Stable Diffusion's UNet reserved 60 MiB more than plain.
constexpr std::size_t kWorthTellingLess = std::size_t{64} << 20;

/// Whether a client that is yet to be told its workspace is better told a plan's than its own
/// kernel's.
constexpr bool isWorthTelling(std::size_t planBytes, std::size_t ownBytes) noexcept {
  return planBytes + kWorthTellingLess <= ownBytes;
}

/// The pace of a plan's micro-batches.
enum class Pace {
  kHost,   ///< each is enqueued by the host
  kDevice  ///< all are replayed, if that gains
};

/// REQUIRES: the group belongs to a configuration of these measurements.
const Measurement& measurementOf(const MicroBatches& group, const Measurements& measurements);

bool isDivided(const Configuration& configuration) noexcept;

/// Whether a plan of this kernel alone is replayed.
bool paysToReplay(KernelTiming timing) noexcept;

/// Whether a call that repeats is replayed. REQUIRES: as for `measurementOf`.
bool paysToReplay(const Configuration& configuration, const Measurements& measurements);

/// Expected time of a call whose plan is this configuration. `mayReplay`: the plan may be replayed.
/// REQUIRES: as for `measurementOf`.
double predictedMs(const Configuration& configuration,
                   Pace pace,
                   bool mayReplay,
                   const Measurements& measurements);

/// Time of a call that is not replayed. REQUIRES: as for `measurementOf`.
double enqueuedMs(const Configuration& configuration, const Measurements& measurements);

/// The time of a plan whose parts were not timed when it was made. A part takes no longer than a
/// larger one that was timed, and no longer for a sample than a smaller one. 0: it is not known.
double partsMs(const Plan& plan, const Measurements& measurements);

/// Estimated time of a convolution that nobody has timed; rather too short, on an H200.
double estimatedMs(const Problem& problem);

}  // namespace ucudnn
