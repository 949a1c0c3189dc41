// What the planner is asked.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

#include "benchmark/buffers.hpp"
#include "problem/problem.hpp"
#include "support/settings.hpp"

namespace ucudnn {

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
};

}  // namespace ucudnn
