#include "executor/distance.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/cudnn.hpp"
#include "cuda/error.hpp"
#include "problem/numbers.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

double normalizedDistance(cudnnHandle_t handle,
                          std::int32_t dataType,
                          const void* a,
                          const void* b,
                          std::size_t elements) {
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &stream));
  const std::size_t each = elementBytes(dataType);
  std::vector<char> bytes(std::min(elements, kDistanceChunk) * each);
  const auto read = [&](const void* array, std::size_t first, std::size_t count) {
    UCUDNN_CHECK_CUDA(cudaMemcpyAsync(bytes.data(),
                                      static_cast<const char*>(array) + first * each,
                                      count * each,
                                      cudaMemcpyDeviceToHost,
                                      stream));
    UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream));
    return toDoubles(bytes.data(), count, dataType);
  };
  double differenceSquared = 0;
  double referenceSquared = 0;
  for (std::size_t first = 0; first < elements; first += kDistanceChunk) {
    const std::size_t count = std::min(kDistanceChunk, elements - first);
    const std::vector<double> left = read(a, first, count);
    const std::vector<double> right = read(b, first, count);
    for (std::size_t i = 0; i < count; ++i) {
      differenceSquared += (left[i] - right[i]) * (left[i] - right[i]);
      referenceSquared += right[i] * right[i];
    }
  }
  if (differenceSquared == 0) return 0;
  return std::sqrt(differenceSquared / referenceSquared);
}

}  // namespace ucudnn
