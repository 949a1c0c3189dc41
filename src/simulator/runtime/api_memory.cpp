// Allocation and copies.
#include "simulator/runtime/api.hpp"
#include "simulator/runtime/copies.hpp"
#include "simulator/runtime/device_models.hpp"
#include "simulator/runtime/host_costs.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/memory.hpp"
#include "simulator/runtime/thread_state.hpp"

using namespace ucudnn::simulator;

namespace {

/// cudaMalloc of 0 bytes succeeds and gives null.
cudaError_t allocate(void** pointer, size_t bytes, MemoryKind kind, unsigned int flags) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = Memory::instance().allocate(bytes, kind, thisThread().device, flags);
  return *pointer != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t allocateNow(void** pointer, size_t bytes, MemoryKind kind, unsigned int flags = 0) {
  if (const cudaError_t error = Machine::instance().checkUnsafeCall()) return error;
  hostMaps(bytes);
  return allocate(pointer, bytes, kind, flags);
}

cudaError_t releaseNow(void* pointer, bool host) {
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t error = Machine::instance().checkUnsafeCall()) return error;
  // cudaFree waits for the device: nothing under way may still use the memory.
  Machine::instance().waitForDevice();
  return Memory::instance().release(pointer, host) ? cudaSuccess : cudaErrorInvalidValue;
}

/// Stream-ordered functions can't be captured here: graphs own no memory.
cudaError_t checkStreamOrdered(cudaStream_t stream) {
  CaptureInfo info;
  if (const cudaError_t error = Machine::instance().captureInfo(stream, &info)) return error;
  return info.status == cudaStreamCaptureStatusNone ? cudaSuccess
                                                    : cudaErrorStreamCaptureUnsupported;
}

CopyShape oneRow(size_t bytes) {
  return {bytes, 1, bytes, bytes};
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  UCUDNN_SIMULATED_ALLOCATION();
  return finish(allocateNow(pointer, bytes, MemoryKind::kDevice));
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  UCUDNN_SIMULATED_ALLOCATION();
  if (const cudaError_t error = checkStreamOrdered(stream)) return finish(error);
  return finish(allocate(pointer, bytes, MemoryKind::kDevice, 0));
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  UCUDNN_SIMULATED_ALLOCATION();
  return finish(allocateNow(pointer, bytes, MemoryKind::kHost));
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  UCUDNN_SIMULATED_ALLOCATION();
  return finish(allocateNow(pointer, bytes, MemoryKind::kHost, flags));
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  UCUDNN_SIMULATED_ALLOCATION();
  return finish(allocateNow(pointer, bytes, MemoryKind::kManaged, flags));
}

// Where managed memory is costs nothing here.
#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(
    const void* pointer, size_t bytes, cudaMemLocation, unsigned int, cudaStream_t) {
#else
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int, cudaStream_t) {
#endif
  UCUDNN_SIMULATED_CALL();
  const auto block = Memory::instance().find(pointer);
  const bool isManaged = block && block->kind == MemoryKind::kManaged;
  return finish(isManaged && checkRange(pointer, bytes, "a prefetch") ? cudaSuccess
                                                                      : cudaErrorInvalidValue);
}

cudaError_t cudaFree(void* pointer) {
  return finish(enterDestroying(__func__, [&] { return releaseNow(pointer, false); }));
}

cudaError_t cudaFreeHost(void* pointer) {
  return finish(enterDestroying(__func__, [&] { return releaseNow(pointer, true); }));
}

// Works execute when they are enqueued, so what uses the memory on this stream has run.
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return finish(enterDestroying(__func__, [&] {
    if (const cudaError_t error = checkStreamOrdered(stream)) return error;
    return Memory::instance().release(pointer, false) ? cudaSuccess : cudaErrorInvalidValue;
  }));
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  UCUDNN_SIMULATED_CALL();
  if (pointer == nullptr || bytes == 0) return finish(cudaErrorInvalidValue);
  const bool added = Memory::instance().registerHost(pointer, bytes, thisThread().device, flags);
  return finish(added ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void* pointer) {
  return finish(enterDestroying(__func__, [&] {
    return Memory::instance().unregisterHost(pointer) ? cudaSuccess
                                                      : cudaErrorHostMemoryNotRegistered;
  }));
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int) {
  UCUDNN_SIMULATED_CALL();
  if (device == nullptr || !Memory::instance().find(host)) return finish(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  UCUDNN_SIMULATED_CALL();
  const int device = thisThread().device;
  if (free == nullptr || total == nullptr) return finish(cudaErrorInvalidValue);
  *free = Memory::instance().freeBytes(device);
  *total = deviceModel(device).memoryBytes;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  UCUDNN_SIMULATED_CALL();
  if (attributes == nullptr) return finish(cudaErrorInvalidValue);
  *attributes = {};
  void* const address = const_cast<void*>(pointer);
  const auto block = Memory::instance().find(pointer);
  if (!block) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -1;  // as NVIDIA's answers
    attributes->hostPointer = address;
    return cudaSuccess;
  }
  attributes->device = block->device;
  attributes->devicePointer = address;
  if (block->kind != MemoryKind::kDevice) attributes->hostPointer = address;
  attributes->type = block->kind == MemoryKind::kDevice    ? cudaMemoryTypeDevice
                     : block->kind == MemoryKind::kManaged ? cudaMemoryTypeManaged
                                                           : cudaMemoryTypeHost;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  UCUDNN_SIMULATED_CALL();
  return finish(copy(target, source, oneRow(bytes), kind, cudaStreamLegacy, Wait::kHost));
}

cudaError_t cudaMemcpyAsync(
    void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  return finish(copy(target, source, oneRow(bytes), kind, stream, Wait::kNo));
}

cudaError_t cudaMemcpyPeer(
    void* target, int targetDevice, const void* source, int sourceDevice, size_t bytes) {
  UCUDNN_SIMULATED_CALL();
  if (!isDevice(targetDevice) || !isDevice(sourceDevice)) return finish(cudaErrorInvalidDevice);
  return finish(
      copy(target, source, oneRow(bytes), cudaMemcpyDeviceToDevice, cudaStreamLegacy, Wait::kHost));
}

cudaError_t cudaMemcpyPeerAsync(void* target,
                                int targetDevice,
                                const void* source,
                                int sourceDevice,
                                size_t bytes,
                                cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  if (!isDevice(targetDevice) || !isDevice(sourceDevice)) return finish(cudaErrorInvalidDevice);
  return finish(copy(target, source, oneRow(bytes), cudaMemcpyDeviceToDevice, stream, Wait::kNo));
}

cudaError_t cudaMemcpy2D(void* target,
                         size_t targetPitch,
                         const void* source,
                         size_t sourcePitch,
                         size_t width,
                         size_t height,
                         cudaMemcpyKind kind) {
  UCUDNN_SIMULATED_CALL();
  if (width > targetPitch || width > sourcePitch) return finish(cudaErrorInvalidPitchValue);
  const CopyShape shape = {width, height, targetPitch, sourcePitch};
  return finish(copy(target, source, shape, kind, cudaStreamLegacy, Wait::kHost));
}

cudaError_t cudaMemcpy2DAsync(void* target,
                              size_t targetPitch,
                              const void* source,
                              size_t sourcePitch,
                              size_t width,
                              size_t height,
                              cudaMemcpyKind kind,
                              cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  if (width > targetPitch || width > sourcePitch) return finish(cudaErrorInvalidPitchValue);
  const CopyShape shape = {width, height, targetPitch, sourcePitch};
  return finish(copy(target, source, shape, kind, stream, Wait::kNo));
}

cudaError_t cudaMemset(void* target, int value, size_t bytes) {
  UCUDNN_SIMULATED_CALL();
  return finish(fill(target, value, {bytes}, cudaStreamLegacy, Wait::kHost));
}

cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  return finish(fill(target, value, {bytes}, stream, Wait::kNo));
}

cudaError_t cudaMemset2DAsync(
    void* target, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  UCUDNN_SIMULATED_CALL();
  if (width > pitch) return finish(cudaErrorInvalidPitchValue);
  return finish(fill(target, value, {width, height, pitch}, stream, Wait::kNo));
}

}  // extern "C"
