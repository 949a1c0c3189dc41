// Batch sizes that no policy lists: the largest whose fast kernels fit the limit.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <vector>

#include "benchmark/benchmark.hpp"

namespace ucudnn {

/// For each fast kernel that fits at one of the measured sizes and not at the next: the largest
/// batch at which it fits. Also, within the limit: the rest of the mini-batch beside such batches,
/// and the parts that are about even. If the kernel borrows: the ever smaller batches that borrow
/// behind it. Ascending, without the measured sizes. Asks cuDNN on the host; runs nothing.
/// `measured`: at the anchors that fit, including the problem's mini-batch. Throws Error.
std::vector<int> largestBatches(cudnnHandle_t handle,
                                const BenchmarkRequest& request,
                                const Measurements& measured);

}  // namespace ucudnn
