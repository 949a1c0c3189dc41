// cudaGetLastError and the errors' texts. These are not counted as calls: they can't fail.
#include <utility>

#include "simulator/runtime/thread_state.hpp"

using ucudnn::simulator::thisThread;

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

// Those that the simulator returns or that clients name; the texts are NVIDIA's.
#define UCUDNN_ERROR(ERROR, TEXT) \
  { ERROR, #ERROR, TEXT }
constexpr ErrorText kErrors[] = {
    UCUDNN_ERROR(cudaSuccess, "no error"),
    UCUDNN_ERROR(cudaErrorInvalidValue, "invalid argument"),
    UCUDNN_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    UCUDNN_ERROR(cudaErrorInitializationError, "initialization error"),
    UCUDNN_ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    UCUDNN_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    UCUDNN_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    UCUDNN_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    UCUDNN_ERROR(cudaErrorInsufficientDriver,
                 "CUDA driver version is insufficient for CUDA runtime version"),
    UCUDNN_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    UCUDNN_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    UCUDNN_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    UCUDNN_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    UCUDNN_ERROR(cudaErrorNotReady, "device not ready"),
    UCUDNN_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    UCUDNN_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    UCUDNN_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    UCUDNN_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                 "part or all of the requested memory range is already mapped"),
    UCUDNN_ERROR(cudaErrorHostMemoryNotRegistered,
                 "pointer does not correspond to a registered memory region"),
    UCUDNN_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    UCUDNN_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    UCUDNN_ERROR(cudaErrorNotSupported, "operation not supported"),
    UCUDNN_ERROR(cudaErrorStreamCaptureUnsupported,
                 "operation not permitted when stream is capturing"),
    UCUDNN_ERROR(cudaErrorStreamCaptureInvalidated,
                 "operation failed due to a previous error during capture"),
    UCUDNN_ERROR(cudaErrorStreamCaptureMerge,
                 "operation would result in a merge of separate capture sequences"),
    UCUDNN_ERROR(cudaErrorStreamCaptureUnmatched,
                 "capture was not ended in the same stream as it began"),
    UCUDNN_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    UCUDNN_ERROR(cudaErrorStreamCaptureIsolation,
                 "dependency created on uncaptured work in another stream"),
    UCUDNN_ERROR(cudaErrorStreamCaptureImplicit,
                 "operation would make the legacy stream depend on a capturing blocking stream"),
    UCUDNN_ERROR(cudaErrorCapturedEvent,
                 "operation not permitted on an event last recorded in a capturing stream"),
    UCUDNN_ERROR(cudaErrorStreamCaptureWrongThread,
                 "attempt to terminate a thread-local capture sequence from another thread"),
    UCUDNN_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef UCUDNN_ERROR

constexpr ErrorText kUnrecognized = {
    cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};

const ErrorText& describe(cudaError_t error) {
  for (const ErrorText& entry : kErrors) {
    if (entry.error == error) return entry;
  }
  return kUnrecognized;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  return std::exchange(thisThread().lastError, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return thisThread().lastError;
}
const char* cudaGetErrorName(cudaError_t error) {
  return describe(error).name;
}
const char* cudaGetErrorString(cudaError_t error) {
  return describe(error).text;
}

}  // extern "C"
