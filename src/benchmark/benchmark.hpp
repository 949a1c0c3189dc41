// Times the kernels of a problem at a list of batch sizes, on one device or spread over several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/buffers.hpp"
#include "benchmark/measurement.hpp"

namespace ucudnn {

/// Why something of a question has not been tried.
enum class Untried {
  kNone,
  kMemory,  ///< some kernels or sizes were left out for want of memory
  kTime,    ///< the budget ended
};

struct BenchmarkRequest {
  Problem problem;                      ///< at the mini-batch
  std::vector<int> sizes;               ///< to be measured, ascending, each at most the mini-batch
  std::size_t limitBytes = 0;           ///< kernels that need more are not tried
  const Measurements* known = nullptr;  ///< kernels found here are not timed again
  const TensorBuffers* buffers = nullptr;  ///< the caller's; null: scratch memory
  std::size_t memoryBytes = SIZE_MAX;  ///< scratch memory may take at most this, workspace included
  std::vector<int> devices;                ///< beside the handle's own
  double budgetMs = 0;  ///< wall time after which no further size is begun; 0: none
};

struct BenchmarkResult {
  Measurements measurements;  ///< of the sizes asked for, known kernels not repeated
  long long kernelsMeasured = 0;
  bool everyOfferFits = false;  ///< no offer of any size needs more than the limit
  Untried untried = Untried::kNone;
  /// At the mini-batch itself every offer within the limit was timed or refused.
  bool undividedMeasured = false;
  int failures = 0;    ///< kernels whose call failed with something that may pass
  double spentMs = 0;  ///< the larger of wall time and device time
};

/// Runs kernels on the handle's stream (and on streams of its own on further devices) and waits for
/// them. Of caller's buffers only the output is written. Running out of memory leaves out sizes and
/// kernels, with a warning; other failures throw Error. REQUIRES: the handle's stream is not being
/// captured.
BenchmarkResult benchmarkKernels(cudnnHandle_t handle, const BenchmarkRequest& request);

}  // namespace ucudnn
