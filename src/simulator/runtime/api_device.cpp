// cudaDevice*, versions, and what else concerns a device.
#include <map>
#include <optional>

#include "simulator/runtime/api.hpp"
#include "simulator/runtime/device_models.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/memory.hpp"
#include "simulator/runtime/thread_state.hpp"

using namespace ucudnn::simulator;

namespace {

/// The driver's and the runtime's. 13.0 is the newest that is simulated.
constexpr int kCudaVersion = CUDART_VERSION < 13000 ? CUDART_VERSION : 13000;

// An H100's. Its clock follows from the model's bandwidth, at two transfers a clock.
constexpr int kMemoryBusBits = 5120;

/// Null for attributes that the simulator does not know.
std::optional<int> findAttribute(cudaDeviceAttr attribute, int device) {
  const cudaDeviceProp properties = deviceProperties(device);
  const double bitsPerMs = deviceModel(device).memoryGigabytesPerSecond * 8e6;
  const std::map<cudaDeviceAttr, int> known = {
      {cudaDevAttrComputeCapabilityMajor, properties.major},
      {cudaDevAttrComputeCapabilityMinor, properties.minor},
      {cudaDevAttrMultiProcessorCount, properties.multiProcessorCount},
      {cudaDevAttrWarpSize, properties.warpSize},
      {cudaDevAttrMaxThreadsPerBlock, properties.maxThreadsPerBlock},
      {cudaDevAttrMaxThreadsPerMultiProcessor, properties.maxThreadsPerMultiProcessor},
      {cudaDevAttrMaxBlockDimX, properties.maxThreadsDim[0]},
      {cudaDevAttrMaxBlockDimY, properties.maxThreadsDim[1]},
      {cudaDevAttrMaxBlockDimZ, properties.maxThreadsDim[2]},
      {cudaDevAttrMaxGridDimX, properties.maxGridSize[0]},
      {cudaDevAttrMaxGridDimY, properties.maxGridSize[1]},
      {cudaDevAttrMaxGridDimZ, properties.maxGridSize[2]},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<int>(properties.sharedMemPerBlock)},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin,
       static_cast<int>(properties.sharedMemPerBlockOptin)},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor,
       static_cast<int>(properties.sharedMemPerMultiprocessor)},
      {cudaDevAttrMaxRegistersPerBlock, properties.regsPerBlock},
      {cudaDevAttrConcurrentKernels, properties.concurrentKernels},
      {cudaDevAttrAsyncEngineCount, properties.asyncEngineCount},
      {cudaDevAttrUnifiedAddressing, properties.unifiedAddressing},
      {cudaDevAttrManagedMemory, properties.managedMemory},
      {cudaDevAttrConcurrentManagedAccess, properties.concurrentManagedAccess},
      {cudaDevAttrMemoryPoolsSupported, properties.memoryPoolsSupported},
      {cudaDevAttrStreamPrioritiesSupported, properties.streamPrioritiesSupported},
      {cudaDevAttrPciBusId, properties.pciBusID},
      {cudaDevAttrPciDeviceId, properties.pciDeviceID},
      {cudaDevAttrPciDomainId, properties.pciDomainID},
      {cudaDevAttrEccEnabled, properties.ECCEnabled},
      {cudaDevAttrTextureAlignment, static_cast<int>(properties.textureAlignment)},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrComputeMode, 0},
      {cudaDevAttrKernelExecTimeout, 0},
      {cudaDevAttrPageableMemoryAccess, 0},
      {cudaDevAttrGlobalMemoryBusWidth, kMemoryBusBits},
      {cudaDevAttrMemoryClockRate, static_cast<int>(bitsPerMs / (2 * kMemoryBusBits))},
  };
  const auto found = known.find(attribute);
  return found != known.end() ? std::optional<int>(found->second) : std::nullopt;
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
  const std::optional<int> found = findAttribute(attribute, device);
  if (value == nullptr || !found) return finish(cudaErrorInvalidValue);
  *value = *found;
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
