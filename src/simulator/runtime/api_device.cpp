// cudaDevice*, versions, and what else concerns a device.
#include <cctype>
#include <cstdio>

#include "simulator/runtime/api.hpp"
#include "simulator/runtime/device_models.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/memory.hpp"
#include "simulator/runtime/thread_state.hpp"

using namespace ucudnn::simulator;

namespace {

constexpr int kCudaVersion =
    13000;  // of driver and runtime, as cudaRuntimeGetVersion says for CUDA 13.0

/// False for attributes that the simulator does not know.
bool findAttribute(cudaDeviceAttr attribute, const cudaDeviceProp& properties, int* value) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      return true;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      return true;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      return true;
    case cudaDevAttrWarpSize:
      *value = properties.warpSize;
      return true;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = properties.maxThreadsPerBlock;
      return true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = properties.maxThreadsPerMultiProcessor;
      return true;
    case cudaDevAttrMaxBlockDimX:
      *value = properties.maxThreadsDim[0];
      return true;
    case cudaDevAttrMaxBlockDimY:
      *value = properties.maxThreadsDim[1];
      return true;
    case cudaDevAttrMaxBlockDimZ:
      *value = properties.maxThreadsDim[2];
      return true;
    case cudaDevAttrMaxGridDimX:
      *value = properties.maxGridSize[0];
      return true;
    case cudaDevAttrMaxGridDimY:
      *value = properties.maxGridSize[1];
      return true;
    case cudaDevAttrMaxGridDimZ:
      *value = properties.maxGridSize[2];
      return true;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(properties.sharedMemPerBlock);
      return true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      return true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(properties.sharedMemPerMultiprocessor);
      return true;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = properties.regsPerBlock;
      return true;
    case cudaDevAttrConcurrentKernels:
      *value = properties.concurrentKernels;
      return true;
    case cudaDevAttrAsyncEngineCount:
      *value = properties.asyncEngineCount;
      return true;
    case cudaDevAttrUnifiedAddressing:
      *value = properties.unifiedAddressing;
      return true;
    case cudaDevAttrManagedMemory:
      *value = properties.managedMemory;
      return true;
    case cudaDevAttrConcurrentManagedAccess:
      *value = properties.concurrentManagedAccess;
      return true;
    case cudaDevAttrMemoryPoolsSupported:
      *value = properties.memoryPoolsSupported;
      return true;
    case cudaDevAttrStreamPrioritiesSupported:
      *value = properties.streamPrioritiesSupported;
      return true;
    case cudaDevAttrPciBusId:
      *value = properties.pciBusID;
      return true;
    case cudaDevAttrPciDeviceId:
      *value = properties.pciDeviceID;
      return true;
    case cudaDevAttrPciDomainId:
      *value = properties.pciDomainID;
      return true;
    case cudaDevAttrEccEnabled:
      *value = properties.ECCEnabled;
      return true;
    case cudaDevAttrTextureAlignment:
      *value = static_cast<int>(properties.textureAlignment);
      return true;
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrPageableMemoryAccess:
      *value = 0;
      return true;
    default:
      return false;
  }
}

cudaError_t setDevice(int device) {
  if (!isDevice(device)) return cudaErrorInvalidDevice;
  thisThread().device = device;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  UCUDNN_SIMULATED_CALL();
  if (count == nullptr) return finish(cudaErrorInvalidValue);
  *count = static_cast<int>(devices().size());
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  UCUDNN_SIMULATED_CALL();
  if (device == nullptr) return finish(cudaErrorInvalidValue);
  *device = thisThread().device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  UCUDNN_SIMULATED_CALL();
  return finish(setDevice(device));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  UCUDNN_SIMULATED_CALL();
  if (properties == nullptr) return finish(cudaErrorInvalidValue);
  if (!isDevice(device)) return finish(cudaErrorInvalidDevice);
  *properties = deviceProperties(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  UCUDNN_SIMULATED_CALL();
  if (!isDevice(device)) return finish(cudaErrorInvalidDevice);
  if (value == nullptr || !findAttribute(attribute, deviceProperties(device), value)) {
    return finish(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().deviceSynchronize());
}

cudaError_t cudaDeviceReset() {
  UCUDNN_SIMULATED_CALL();
  return finish(Machine::instance().deviceReset());
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  UCUDNN_SIMULATED_CALL();
  if (can == nullptr) return finish(cudaErrorInvalidValue);
  if (!isDevice(device) || !isDevice(peer)) return finish(cudaErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  UCUDNN_SIMULATED_CALL();
  if (flags != 0) return finish(cudaErrorInvalidValue);
  if (!isDevice(peer) || peer == thisThread().device) return finish(cudaErrorInvalidDevice);
  return finish(Machine::instance().enablePeer(peer));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  UCUDNN_SIMULATED_CALL();
  if (!isDevice(peer)) return finish(cudaErrorInvalidDevice);
  return finish(Machine::instance().disablePeer(peer));
}

cudaError_t cudaDriverGetVersion(int* version) {
  UCUDNN_SIMULATED_CALL();
  if (version == nullptr) return finish(cudaErrorInvalidValue);
  *version = kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  UCUDNN_SIMULATED_CALL();
  if (version == nullptr) return finish(cudaErrorInvalidValue);
  *version = kCudaVersion;
  return cudaSuccess;
}

}  // extern "C"
