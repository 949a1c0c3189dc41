// Batch sizes that no policy lists: the largest whose fast kernels fit the limit.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

#include "benchmark/benchmark.hpp"

namespace ucudnn {

/// For each fast kernel that has room at one of the measured sizes and no longer at the next: the
/// largest batch at which it still has. Within the limit also what is left of the mini-batch beside
/// such ones, and the parts that are about even; where it borrows, the ever smaller ones that do so
/// behind it. Ascending, without the measured ones. Asks cuDNN on the host; runs nothing.
/// `measured`: at the anchors, where there is room, the problem's mini-batch included. Throws
/// Error.
std::vector<int> largestBatches(cudnnHandle_t handle,
                                const BenchmarkRequest& request,
                                const Measurements& measured);

}  // namespace ucudnn
