// Times the kernels of a problem at a list of batch sizes, on one device or dealt out to several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "benchmark/buffers.hpp"
#include "benchmark/measurement.hpp"
#include "support/policies.hpp"
#include "support/workspace_room.hpp"

namespace ucudnn {

/// A first look at few kernels, which soon brings a good plan. The others are left for another
/// time, so the question has no full answer.
struct Look {
  std::vector<Kernel> kernels;  ///< the most likely to win
  /// How many more at each size: the first ones by cuDNN's heuristics that fit the limit. Some on
  /// our copies come with them.
  std::size_t firstOffers = 0;
};

/// The question: the kernels of a problem that a plan may need.
struct BenchmarkRequest {
  Problem problem;              ///< at the mini-batch
  std::vector<int> sizes;       ///< ascending, the mini-batch included
  bool largestBatches = false;  ///< and those of largest_batches.hpp
  Calls calls = Calls::kAll;    ///< kOverwriting: kernels may be timed that can't add to the output
  /// The kernel that a client runs by itself: timed at the mini-batch whatever cuDNN offers.
  std::optional<Kernel> own;
  WorkspaceRoom room;                   ///< kernels that need more are not tried
  const Measurements* known = nullptr;  ///< kernels found here are not timed again (any size)
  /// Times on this device with other versions: the kernels that were fastest there are timed first.
  /// Nothing else depends on them.
  const Measurements* elsewhere = nullptr;
  const Look* look = nullptr;               ///< null: all kernels are timed
  const KernelsAtSizes* refused = nullptr;  ///< kernels found here are not tried again
  const TensorBuffers* buffers = nullptr;   ///< the caller's: then nothing is allocated on the
                                            ///< device; null: scratch memory
  ScratchBound memory;  ///< scratch memory, tensors and workspace together, on each device
  Kernels kernels = Kernels::kLegacy;  ///< that plans are made of; algorithms are timed in any case
  Tuning tuning = Tuning::kExhaustive;
  std::vector<int> devices;  ///< beside the handle's own
  bool errors =
      false;  ///< of kernels are measured as well, and what is more accurate than all that
              ///< is faster is worth timing. REQUIRES: hasExactOutputs, scratch memory
  bool replays = true;  ///< calls are captured, to find out what they take when they are replayed
  /// A kernel that is expected to take longer is left out, unless none is expected to take half as
  /// long, or it is `own`. 0: no kernel is left out.
  double longestMs = 0;
  /// Another thread asks cuDNN first (FirstAnswer), and builds the kernels that it compiles.
  /// Meanwhile steps do other work, or nothing (BenchmarkRun::isWaiting).
  bool worksAside = false;

  bool withEngines() const noexcept { return kernels != Kernels::kLegacy; }
  bool enginesAlone() const noexcept { return kernels == Kernels::kEngines; }
  /// The kind of calls at a batch size: a filter gradient's micro-batches add up.
  Calls callsAt(int batch) const noexcept {
    const bool addsUp = problem.operation == Operation::kBackwardFilter && batch < problem.batch();
    return addsUp ? Calls::kAll : calls;
  }
  /// z has its own memory: cuDNN's algorithms can read it in y, engines can't.
  bool hasZBesideY() const noexcept { return withEngines() && problem.addsZ != 0; }
  /// The most workspace of a micro-batch of `batch` samples. Borrowing adds to the limit, as far as
  /// the benchmark itself has the memory.
  std::size_t limitAt(int batch) const noexcept;
};

/// Why a part of a question has not been tried.
enum class Untried { kNone, kMemory, kTime };

struct BenchmarkResult {
  Measurements measurements;  ///< kernels measured now, by size
  KernelsAtSizes refused;     ///< kernels that cuDNN names, but now refuses to run:
                              ///< NOT_SUPPORTED or BAD_PARAM
  long long kernelsMeasured = 0;
  bool everyOfferFits = false;  ///< no offer of any size of the question needs more than the limit:
                                ///< a larger one adds nothing
  Untried untried = Untried::kNone;  ///< memory: kernels or sizes were left out for want of it;
                                     ///< time: the run ended early. Both: memory
  bool replaysUntried = false;       ///< for want of memory
  bool undividedMeasured = false;    ///< at the mini-batch itself every offer within the limit is
                                     ///< known, timed or refused
  int failures = 0;    ///< kernels whose call failed otherwise; it may succeed the next time
  double spentMs = 0;  ///< the larger of wall time and of the time between the first and the last
                       ///< work on a device
};

/// Runs kernels on the handle's stream (and on its own streams on further devices) and waits for
/// them. Writes only the output of the caller's buffers. Known and new measurements together decide
/// which kernels are worth timing; at the mini-batch itself all are. If none is, cuDNN is asked on
/// the host only. Kernels that fail are counted; throws Error if no kernel can be timed at all. No
/// lock is held while waiting for a device. REQUIRES: the handle's stream is not being captured,
/// its device is current.
BenchmarkResult benchmarkKernels(cudnnHandle_t handle, const BenchmarkRequest& request);

/// Whether the mini-batch's tensors fit into memory. If they don't, no kernel can be timed for the
/// whole mini-batch, and a benchmark would give no answer. REQUIRES: the handle's device is
/// current. Throws Error.
bool hasMemoryToBenchmark(const BenchmarkRequest& request);

/// Makes the further devices ready in the background: a device's first cuDNN handle takes longer
/// than a benchmark, which does not wait for it.
void prepareBenchmarkDevices(const std::vector<int>& devices) noexcept;

}  // namespace ucudnn
