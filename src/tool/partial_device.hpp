// A part of a device, to emulate a smaller one.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace ucudnn::tool {

/// A stream whose kernels run on so many multiprocessors of the current device (a CUDA green
/// context). Memory, its bandwidth and the caches stay whole. Kernels of a captured graph don't
/// keep to it.
class PartialDevice {
 public:
  /// Throws DeviceError where the driver can't divide the device so, BadInput for more
  /// multiprocessors than it has.
  PartialDevice(int device, int multiprocessors);
  ~PartialDevice();
  PartialDevice(const PartialDevice&) = delete;
  PartialDevice& operator=(const PartialDevice&) = delete;

  cudaStream_t stream() const noexcept { return stream_; }
  /// No fewer than were asked for: the driver rounds up.
  int multiprocessors() const noexcept { return multiprocessors_; }

 private:
  struct Driver;

  std::unique_ptr<Driver> driver_;
  cudaStream_t stream_ = nullptr;
  void* context_ = nullptr;
  int multiprocessors_ = 0;
};

}  // namespace ucudnn::tool
