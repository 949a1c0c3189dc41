// Owners of CUDA's and cuDNN's handles: a unique_ptr each, whose deleter names the handle as its
// pointer; cuDNN's are members of its table. Deleters ignore failures: there is nobody to tell, and
// the process may be ending.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "cuda/cudnn.hpp"
#include "cuda/error.hpp"

namespace ucudnn {

template <typename Handle, auto Destroy>
struct HandleDeleter {
  using pointer = Handle;
  void operator()(Handle handle) const noexcept {
    if constexpr (std::is_member_pointer_v<decltype(Destroy)>)
      static_cast<void>((cudnn().*Destroy)(handle));
    else
      static_cast<void>(Destroy(handle));
  }
};

template <typename Handle, auto Destroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, HandleDeleter<Handle, Destroy>>;

using CudnnHandle = Owner<cudnnHandle_t, &Cudnn::destroy>;
using TensorDescriptor = Owner<cudnnTensorDescriptor_t, &Cudnn::destroyTensorDescriptor>;
using FilterDescriptor = Owner<cudnnFilterDescriptor_t, &Cudnn::destroyFilterDescriptor>;
using ConvolutionDescriptor =
    Owner<cudnnConvolutionDescriptor_t, &Cudnn::destroyConvolutionDescriptor>;
using ActivationDescriptor =
    Owner<cudnnActivationDescriptor_t, &Cudnn::destroyActivationDescriptor>;
using OpTensorDescriptor = Owner<cudnnOpTensorDescriptor_t, &Cudnn::destroyOpTensorDescriptor>;
using Event = Owner<cudaEvent_t, cudaEventDestroy>;
using Stream = Owner<cudaStream_t, cudaStreamDestroy>;
using Graph = Owner<cudaGraph_t, cudaGraphDestroy>;
/// Destroyed while it runs, CUDA frees it when it has run.
using GraphExec = Owner<cudaGraphExec_t, cudaGraphExecDestroy>;

/// Makes a handle by a `Create(Handle*)` function. Throws Error.
template <typename OwnerType, typename Create>
OwnerType makeOwned(Create create) {
  typename OwnerType::pointer handle = nullptr;
  UCUDNN_CHECK_CUDNN(create(&handle));
  return OwnerType(handle);
}

inline Event makeEvent() {
  cudaEvent_t event = nullptr;
  UCUDNN_CHECK_CUDA(cudaEventCreate(&event));
  return Event(event);
}

/// It waits for no other stream, because a client may be capturing one.
inline Stream makeStream() {
  cudaStream_t stream = nullptr;
  UCUDNN_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

/// Device memory on the device that is current when it is made. Throws OutOfMemory.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* memory = nullptr;
    UCUDNN_CHECK_CUDA(cudaMalloc(&memory, bytes));
    memory_.reset(memory);
  }
  void* get() const noexcept { return memory_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Deleter {
    void operator()(void* memory) const noexcept { static_cast<void>(cudaFree(memory)); }
  };
  std::unique_ptr<void, Deleter> memory_;
  std::size_t bytes_ = 0;
};

/// Makes a device current, and the former one again at the end of its scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    UCUDNN_CHECK_CUDA(cudaGetDevice(&former_));
    changed_ = device != former_;
    if (changed_) UCUDNN_CHECK_CUDA(cudaSetDevice(device));
  }
  ~DeviceScope() {
    if (changed_) static_cast<void>(cudaSetDevice(former_));
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int former_ = 0;
  bool changed_ = false;
};

/// Lets this thread allocate and synchronize while other streams of the process are being captured:
/// what is done in its scope touches none of them (CUDA Runtime API,
/// cudaThreadExchangeStreamCaptureMode).
class RelaxedCapture {
 public:
  RelaxedCapture() { UCUDNN_CHECK_CUDA(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  /// The client's captures in this thread must not stay relaxed: a failure is not taken for an
  /// answer.
  ~RelaxedCapture() {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess) return;
      static_cast<void>(cudaGetLastError());
    }
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  static constexpr int kAttempts = 3;

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  ///< afterwards: the former one
};

}  // namespace ucudnn
