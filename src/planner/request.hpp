// What the planner is asked.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

#include "benchmark/buffers.hpp"
#include "problem/problem.hpp"
#include "support/settings.hpp"

namespace ucudnn {

/// How the calls run that a plan is for.
enum class Replay {
  kNever,          ///< each micro-batch is enqueued
  kWhereRepeated,  ///< enqueued at first, as a CUDA graph once a call repeats
  kSamePlan,       ///< likewise, by one plan: a repeated call must have the first one's result
};

/// Who asks, and for what.
struct PlanRequest {
  cudnnHandle_t handle = nullptr;
  int device = 0;
  int machine = 0;  ///< of Machines
  Problem problem;
  std::size_t limitBytes = 0;
  bool deterministic = false;  ///< only deterministic kernels
  const Settings* settings = nullptr;
  const std::vector<int>* benchmarkDevices = nullptr;  ///< beside the handle's own
  /// The caller's, whose output may be overwritten; null: scratch memory.
  const TensorBuffers* buffers = nullptr;

  Replay replay() const noexcept {
    if (settings->graphMemoryBytes == 0 || settings->equivalenceTest) return Replay::kNever;
    return settings->deterministic ? Replay::kSamePlan : Replay::kWhereRepeated;
  }
};

}  // namespace ucudnn
