// Which micro-batch sizes are tried (μ-cuDNN paper, section III-D).
#pragma once

#include <vector>

#include "support/policies.hpp"

namespace ucudnn {

/// The sizes in ascending order; the last one is `miniBatch`. REQUIRES: miniBatch >= 1.
std::vector<int> microBatchSizes(BatchSizePolicy policy, int miniBatch);

}  // namespace ucudnn
