// Owners of the objects that CUDA and cuDNN create, and the check of their statuses.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <ucudnn/diagnosis.h>
#include <ucudnn/ucudnn.h>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace ucudnn::tool {

/// Throw DeviceError (OutOfMemory) unless the status says success. `call` is the function's name.
void check(cudaError_t status, const char* call);
void check(cudnnStatus_t status, const char* call);

/// An owner of a C handle: `Destroy` takes it and never throws.
template <typename Handle, auto Destroy>
struct Deleter {
  using pointer = Handle;
  void operator()(Handle handle) const noexcept { Destroy(handle); }
};
using Stream =
    std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Deleter<cudaStream_t, cudaStreamDestroy>>;
using Event =
    std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Deleter<cudaEvent_t, cudaEventDestroy>>;
using HostMemory = std::unique_ptr<void, Deleter<void*, cudaFreeHost>>;

Stream makeStream();
Event makeEvent();
/// Page-locked memory, from which copies run at the bus's full speed.
HostMemory makeHostMemory(std::size_t bytes);

/// Device memory. Null when made of 0 bytes.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);

  void* get() const noexcept { return memory_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::unique_ptr<void, Deleter<void*, cudaFree>> memory_;
  std::size_t bytes_ = 0;
};

/// The workspace of a convolution: a part of a buffer, or none.
struct Workspace {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

/// The same program as a framework that has replaced the handle's type, and as one that has not.
class Handles {
 public:
  /// Both on `stream`.
  explicit Handles(cudaStream_t stream);
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  cudnnHandle_t native() const noexcept { return native_; }
  UcudnnHandle_t ours() const noexcept { return ours_; }

 private:
  cudnnHandle_t native_ = nullptr;
  UcudnnHandle_t ours_;
};

/// Throws DeviceError.
inline ucudnnStatistics_t statisticsNow() {
  ucudnnStatistics_t statistics{};
  statistics.size = sizeof(statistics);
  check(ucudnnGetStatistics(&statistics), "ucudnnGetStatistics");
  return statistics;
}

/// Fills in the report's counters, which are known when all is done. Throws DeviceError.
template <typename AnyReport>
void addStatistics(AnyReport& report) {
  const ucudnnStatistics_t statistics = statisticsNow();
  report.kernelsMeasured = statistics.kernelsMeasured;
  report.kernelsLoaded = statistics.kernelsLoaded;
  report.replayedCalls = statistics.replayedCalls;
  report.graphs = statistics.graphs;
  report.graphBytes = statistics.graphBytes;
}

/// Makes `device` the current one. Throws BadInput if there is no such device, which names the
/// option, DeviceError if there is none at all.
void useDevice(int device, const char* option = "--device");

}  // namespace ucudnn::tool
