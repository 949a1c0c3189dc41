#include "optimizer/policy.hpp"

#include <cassert>

namespace ucudnn {

std::vector<int> microBatchSizes(BatchSizePolicy policy, int miniBatch) {
  assert(miniBatch >= 1);
  std::vector<int> sizes;
  switch (policy) {
    case BatchSizePolicy::kUndivided:
      break;
    case BatchSizePolicy::kPowerOfTwo:
      // Dividing the bound rather than doubling past it keeps the largest int from overflowing.
      for (int size = 1; size < miniBatch; size *= 2) {
        sizes.push_back(size);
        if (size > miniBatch / 2) break;
      }
      break;
    case BatchSizePolicy::kAll:
      sizes.reserve(static_cast<std::size_t>(miniBatch));
      for (int size = 1; size < miniBatch; ++size) sizes.push_back(size);
      break;
  }
  sizes.push_back(miniBatch);
  return sizes;
}

}  // namespace ucudnn
