#include "cuda/error.hpp"

#include <fmt/format.h>

namespace ucudnn {

void throwCudnnError(cudnnStatus_t status, const char* call, const char* file, int line) {
  char detail[512] = "";
#if CUDNN_VERSION >= 90000
  cudnnGetLastErrorString(detail, sizeof(detail));
#endif
  const std::string message = fmt::format(
      "{} returned {} at {}:{} {}", call, cudnnGetErrorString(status), file, line, detail);
  if (status == CUDNN_STATUS_ALLOC_FAILED) throw OutOfMemory(message);
  throw Error(status, message);
}

void throwCudaError(cudaError_t error, const char* call, const char* file, int line) {
  cudaGetLastError();
  const std::string message = fmt::format("{} returned {} ({}) at {}:{}",
                                          call,
                                          cudaGetErrorName(error),
                                          cudaGetErrorString(error),
                                          file,
                                          line);
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(message);
  throw Error(CUDNN_STATUS_EXECUTION_FAILED, message);
}

}  // namespace ucudnn
