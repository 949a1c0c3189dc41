#include "tool/device.hpp"

#include <fmt/format.h>
#include <cstdint>

#include "support/settings.hpp"
#include "support/sizes.hpp"
#include "tool/failure.hpp"

namespace ucudnn::tool {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // A failed allocation must not be found again by the next launch.
  const std::string message = fmt::format("{}: {}", call, cudaGetErrorString(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(message);
  throw DeviceError(message);
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string message = fmt::format("{}: {}", call, cudnnGetErrorString(status));
  if (status == CUDNN_STATUS_ALLOC_FAILED) throw OutOfMemory(message);
  throw DeviceError(message);
}

Stream makeStream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return Stream(stream);
}

Event makeEvent() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return Event(event);
}

HostMemory makeHostMemory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return HostMemory(memory);
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), fmt::format("cudaMalloc of {}", formatSize(bytes)).c_str());
  memory_.reset(memory);
}

namespace {

/// μ-cuDNN's own reason to refuse a handle, after the other settings have been read: the devices.
/// Empty if its log has said so on stderr: one line is enough.
std::string refusedDevices() {
  const Settings settings = settingsFromEnvironment(Reporting::kNever);
  if (settings.logLevel != LogLevel::kOff && settings.logFile.empty()) return {};
  return "UCUDNN_BENCHMARK_DEVICES: a device is not there";
}

}  // namespace

Handles::Handles(cudaStream_t stream) {
  try {
    check(cudnnCreate(&native_), "cudnnCreate");
    check(cudnnSetStream(native_, stream), "cudnnSetStream");
    const cudnnStatus_t status = cudnnCreate(&ours_);
    if (status == CUDNN_STATUS_BAD_PARAM) throw BadInput(refusedDevices());
    check(status, "ucudnnCreate");
    check(cudnnSetStream(ours_, stream), "cudnnSetStream");
    // Nobody else uses the device: what is measured need not fit beside a framework.
    check(ours_.setBenchmarkMemory(SIZE_MAX), "ucudnnSetBenchmarkMemory");
  } catch (...) {
    if (ours_) cudnnDestroy(ours_);
    if (native_ != nullptr) cudnnDestroy(native_);
    throw;
  }
}

Handles::~Handles() {
  cudnnDestroy(ours_);
  cudnnDestroy(native_);
}

void useDevice(int device, const char* option) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    throw DeviceError(
        fmt::format("no CUDA device: {} (misc/with-simulator runs without one)",
                    status != cudaSuccess ? cudaGetErrorString(status) : "the driver sees none"));
  if (device >= count)
    throw BadInput(
        fmt::format("{}: there is no device {} (accepted: 0 to {})", option, device, count - 1));
  check(cudaSetDevice(device), "cudaSetDevice");
}

}  // namespace ucudnn::tool
