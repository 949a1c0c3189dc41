// Batch sizes that no policy lists: the largest whose fast kernels fit the limit.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

#include "benchmark/measurement.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// For each fast kernel that fits the limit at one of the measured sizes and no longer at the next:
/// the largest batch that still fits, what is left of the mini-batch beside such ones, and the
/// parts that are about even. Ascending, without the measured ones. Asks cuDNN on the host; runs
/// nothing. `measured`: at the anchors, within the limit, the problem's mini-batch included.
/// Throws Error.
std::vector<int> largestBatches(cudnnHandle_t handle,
                                const Problem& problem,
                                std::size_t limitBytes,
                                const Measurements& measured);

}  // namespace ucudnn
