#include "simulator/cudnn/status.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace ucudnn::simulator {
namespace {

// A plain array, so that the text outlives static destructors that still call cuDNN.
thread_local char lastError[512] = "";

}  // namespace

void refuse(cudnnStatus_t status, const char* message) {
  throw Refusal(status, message);
}

cudnnStatus_t fail(const char* function, cudnnStatus_t status, const char* message) {
  std::snprintf(lastError, sizeof lastError, "%s: %s", function, message);
  return status;
}

}  // namespace ucudnn::simulator

using namespace ucudnn::simulator;

UCUDNN_SIMULATOR_CUDNN void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (message == nullptr || max_size == 0) return;
  const std::size_t length = std::min(std::strlen(lastError), max_size - 1);
  std::memcpy(message, lastError, length);
  message[length] = '\0';
}

#define UCUDNN_CASE(code) \
  case code:              \
    return #code

UCUDNN_SIMULATOR_CUDNN const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (static_cast<int>(status)) {
    UCUDNN_CASE(CUDNN_STATUS_SUCCESS);
    UCUDNN_CASE(CUDNN_STATUS_NOT_INITIALIZED);
    UCUDNN_CASE(CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH);
    UCUDNN_CASE(CUDNN_STATUS_DEPRECATED);
    UCUDNN_CASE(CUDNN_STATUS_BAD_PARAM);
    UCUDNN_CASE(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    UCUDNN_CASE(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    UCUDNN_CASE(CUDNN_STATUS_NOT_SUPPORTED);
    UCUDNN_CASE(CUDNN_STATUS_INTERNAL_ERROR);
    UCUDNN_CASE(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    UCUDNN_CASE(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    UCUDNN_CASE(CUDNN_STATUS_EXECUTION_FAILED);
    UCUDNN_CASE(CUDNN_STATUS_EXECUTION_FAILED_CUDART);
    default:
      return "CUDNN_UNKNOWN_STATUS";
  }
}
