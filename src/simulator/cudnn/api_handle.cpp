// The handle, versions and library-wide queries.
#include <cuda_runtime_api.h>

#include "simulator/cudnn/descriptors.hpp"
#include "simulator/cudnn/recorded_profiles.hpp"

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
  return CUDNN_VERSION;
}
UCUDNN_SIMULATOR_CUDNN size_t cudnnGetCudartVersion() {
  return CUDART_VERSION;
}
UCUDNN_SIMULATOR_CUDNN size_t cudnnGetMaxDeviceVersion() {
  return CUDNN_MAX_DEVICE_VERSION;
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  return guarded(__func__, [&] {
    require(value != nullptr, "null value pointer");
    switch (type) {
      case MAJOR_VERSION:
        *value = CUDNN_MAJOR;
        return;
      case MINOR_VERSION:
        *value = CUDNN_MINOR;
        return;
      case PATCH_LEVEL:
        *value = CUDNN_PATCHLEVEL;
        return;
    }
    refuse(CUDNN_STATUS_INVALID_VALUE, "unknown property");
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle,
                                                            cudnnStatus_t* rstatus,
                                                            cudnnErrQueryMode_t,
                                                            cudnnRuntimeTag_t*) {
  return guarded(__func__, [&] {
    require(handle != nullptr && rstatus != nullptr, "null handle or status pointer");
    *rstatus = CUDNN_STATUS_SUCCESS;
  });
}

UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnGraphVersionCheck() {
  return guarded(__func__, [] {});
}
UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnOpsVersionCheck() {
  return guarded(__func__, [] {});
}
UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnCnnVersionCheck() {
  return guarded(__func__, [] {});
}
UCUDNN_SIMULATOR_CUDNN cudnnStatus_t cudnnAdvVersionCheck() {
  return guarded(__func__, [] {});
}
