// Which outputs are computed when UCUDNN_SIMULATOR_ARITHMETIC=sampled.
#pragma once

#include <array>
#include <functional>

#include "simulator/cudnn/view.hpp"

namespace ucudnn::simulator {

/// About this many scalars of an allocation are samples: enough to notice a wrong micro-batch, few
/// enough that AlexNet's largest filter gradient (775,000 products for each output) takes a second.
constexpr std::size_t kSamplesPerAllocation = 256;

/// The allocation is cut into kSamplesPerAllocation strata of equal size, each with one sample at a
/// place given by a hash of the stratum's number. It depends on the place within the allocation
/// alone, so the calls of a split convolution choose together what the undivided call chooses.
/// Calls f with the index of each sample that `view`, which begins `firstByte` bytes into the
/// allocation, contains.
void forEachSample(const View& view,
                   std::size_t firstByte,
                   std::size_t allocationBytes,
                   const std::function<void(const std::array<int, 5>&)>& f);

}  // namespace ucudnn::simulator
