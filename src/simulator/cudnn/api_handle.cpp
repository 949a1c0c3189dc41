// The handle, versions and library-wide queries.
#include <cuda_runtime_api.h>

#include "simulator/cudnn/descriptors.hpp"
#include "simulator/cudnn/recorded_profiles.hpp"
#include "simulator/cudnn/version.hpp"

using namespace ucudnn::simulator;

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle pointer");
    if (!recordedProfiles().valid) {
      refuse(CUDNN_STATUS_NOT_INITIALIZED, "UCUDNN_SIMULATOR_PROFILE cannot be read");
    }
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
      refuse(CUDNN_STATUS_NOT_INITIALIZED, "no current device");
    }
    // As on an H200: the real one allocates device memory.
    if (unsafeCall() != cudaSuccess) {
      refuse(CUDNN_STATUS_ALLOC_FAILED, "a stream capture forbids allocating");
    }
    *handle = new cudnnContext{device, nullptr};
    countHandle("cudnnHandle", 1);
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return destroyDescriptor(__func__, "cudnnHandle", handle);
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
  return guarded(__func__, [&] {
    require(handle != nullptr, "null handle");
    handle->stream = streamId;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* streamId) {
  return guarded(__func__, [&] {
    require(handle != nullptr && streamId != nullptr, "null handle or stream pointer");
    *streamId = handle->stream;
  });
}

UCUDNN_SIMULATOR_CUDNN size_t cudnnGetVersion() {
  return simulatedVersion();
}
