// The few pixels of a gradient that a filter gradient is checked with.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "problem/problem.hpp"

namespace ucudnn {

/// Where a tensor of gradients is not 0: some neighbouring pixels of a sample, of all channels.
struct Window {
  std::int64_t sample = 0;
  std::int64_t begin = 0, end = 0;  ///< in the order of the image's pixels
};

/// The pixels of dy that are not 0 when a filter gradient is checked: so few that the host sums
/// them up soon. Empty: all are.
std::vector<Window> windowsOf(const Problem& problem);

/// Enqueues dy: 0, and in each window the numbers of RandomTensor::kY, from the first on.
/// `copyOfBlock`: as for fillRandom. REQUIRES: not empty. Throws Error.
void fillWindows(void* y,
                 const Problem& problem,
                 const std::vector<Window>& windows,
                 cudaStream_t stream,
                 const void* copyOfBlock = nullptr);

}  // namespace ucudnn
