// Failed CUDA and cuDNN calls as exceptions that carry what the caller of cuDNN is told.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <stdexcept>
#include <string>

namespace ucudnn {

/// A failure inside μ-cuDNN. `status` is what a public function returns for it.
class Error : public std::runtime_error {
 public:
  Error(cudnnStatus_t status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  cudnnStatus_t status() const noexcept { return status_; }

 private:
  cudnnStatus_t status_;
};

/// Device or host memory ran out: the benchmark answers it with smaller sizes, not with a failed
/// call.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message) : Error(CUDNN_STATUS_ALLOC_FAILED, message) {}
};

/// Throw for a failed call: the call, the code's name, the library's last-error text, file and
/// line. A CUDA error that is not sticky is taken off the runtime's last-error slot, so that a
/// client never sees it there.
[[noreturn]] void throwCudnnError(cudnnStatus_t status,
                                  const char* call,
                                  const char* file,
                                  int line);
[[noreturn]] void throwCudaError(cudaError_t error, const char* call, const char* file, int line);

}  // namespace ucudnn

#define UCUDNN_CHECK_CUDNN(call)                                           \
  do {                                                                     \
    const cudnnStatus_t ucudnnStatus_ = (call);                            \
    if (ucudnnStatus_ != CUDNN_STATUS_SUCCESS)                             \
      ::ucudnn::throwCudnnError(ucudnnStatus_, #call, __FILE__, __LINE__); \
  } while (false)

#define UCUDNN_CHECK_CUDA(call)                                          \
  do {                                                                   \
    const cudaError_t ucudnnError_ = (call);                             \
    if (ucudnnError_ != cudaSuccess)                                     \
      ::ucudnn::throwCudaError(ucudnnError_, #call, __FILE__, __LINE__); \
  } while (false)
