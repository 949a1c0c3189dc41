// Checks statuses in a test's own code, which can't go on after a failure.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <stdexcept>

namespace ucudnn::test {

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
inline void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::runtime_error(cudnnGetErrorString(status));
}

}  // namespace ucudnn::test
