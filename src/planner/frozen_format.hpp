// Plans in a file: what stands there, as values and as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "optimizer/policy.hpp"

namespace ucudnn {

/// `count` micro-batches of `batch` samples by the kernel that has this text.
struct FrozenMicroBatches {
  int batch = 0;
  int count = 0;
  std::string kernel;
  double timeMs = 0, deviceMs = 0;  ///< of one, as KernelTiming
  bool borrows = false;             ///< their workspace is in the output
};

/// What runs, one micro-batch after another.
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

/// What runs for a call that repeats, and before it does where that differs.
struct FrozenPair {
  FrozenConfiguration repeated;
  std::optional<FrozenConfiguration> enqueued;

  bool borrows() const noexcept { return repeated.borrows() || (enqueued && enqueued->borrows()); }
};

/// A plan and what it was made for.
struct FrozenPlan {
  std::string device;   ///< its model
  std::string problem;  ///< Problem::text()
  int miniBatch = 0;
  std::size_t limitBytes = 0;
  bool deterministic = false;
  BatchSizePolicy policy = BatchSizePolicy::kUndivided;
  Kernels kernels = Kernels::kLegacy;
  std::size_t workspaceBytes = 0;  ///< for people: cuDNN is asked
  FrozenPair plan;
  std::optional<FrozenPair> general;  ///< for calls that suit no engine
};

/// No file of plans is larger: 50,000 plans.
constexpr std::size_t kMostPlansBytes = std::size_t{64} << 20;

std::string frozenPlansToJson(const std::vector<FrozenPlan>& plans);

/// Throws std::runtime_error: names the line of what is no JSON, else the field that is wrong.
std::vector<FrozenPlan> frozenPlansFromJson(const std::string& text);

}  // namespace ucudnn
