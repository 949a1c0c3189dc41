// Plans in a file, as values and as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "optimizer/policy.hpp"

namespace ucudnn {

/// `count` micro-batches of `batch` samples by the kernel with this text.
struct FrozenMicroBatches {
  int batch = 0;
  int count = 0;
  std::string kernel;
  double timeMs = 0, deviceMs = 0;  ///< of one micro-batch, as in KernelTiming
  bool borrows = false;             ///< their workspace is in the output
};

/// The micro-batches of a call, one after another.
struct FrozenConfiguration {
  double predictedMs = 0;
  std::string algorithm;  ///< the kernel that queries name; empty: none
  std::vector<FrozenMicroBatches> microBatches;

  bool borrows() const noexcept {
    for (const FrozenMicroBatches& group : microBatches)
      if (group.borrows) return true;
    return false;
  }
};

/// The configuration for calls that repeat, and the one for calls that don't, if it differs.
struct FrozenPair {
  FrozenConfiguration repeated;
  std::optional<FrozenConfiguration> enqueued;

  bool borrows() const noexcept { return repeated.borrows() || (enqueued && enqueued->borrows()); }
};

/// A plan and what it was made for.
struct FrozenPlan {
  std::string device;            ///< its model
  int cudaVersion = 0;           ///< as cudaRuntimeGetVersion tells it; 0: not known
  std::size_t cudnnVersion = 0;  ///< as cudnnGetVersion tells it; 0: not known
  std::string problem;           ///< Problem::text()
  int miniBatch = 0;
  std::size_t limitBytes = 0;
  bool deterministic = false;
  BatchSizePolicy policy = BatchSizePolicy::kUndivided;
  Kernels kernels = Kernels::kLegacy;
  std::size_t workspaceBytes = 0;  ///< for people only: cuDNN is asked
  FrozenPair plan;
  std::optional<FrozenPair> general;  ///< for calls that suit no engine
};

/// Largest size of a file of plans: about 50,000 plans.
constexpr std::size_t kMostPlansBytes = std::size_t{64} << 20;

std::string frozenPlansToJson(const std::vector<FrozenPlan>& plans);

/// Throws std::runtime_error: names the line if the text is no JSON, else the field that is wrong.
std::vector<FrozenPlan> frozenPlansFromJson(const std::string& text);

}  // namespace ucudnn
