// Times calls of one kernel on one device, back to back.
#pragma once

#include <optional>

#include "benchmark/buffers.hpp"
#include "cuda/owners.hpp"
#include "kernels/kernel.hpp"

namespace ucudnn {

/// Enqueues calls on the handle's stream between two events. Not thread-safe.
class KernelTimer {
 public:
  /// `buffers` hold `bufferBatch` samples of the problem. Throws Error.
  KernelTimer(cudnnHandle_t handle,
              const Problem& problem,
              const TensorBuffers& buffers,
              int bufferBatch);

  /// The device time in ms of `calls` calls, which walk over the micro-batches of the buffers as a
  /// split convolution does (and, for backward filter, add up as it does). With `primed` one more
  /// call goes ahead untimed, so that the device is busy when the first timed one arrives. Waits
  /// for the device. Empty when cuDNN refuses the kernel. Throws Error for a failed CUDA call.
  /// REQUIRES: `descriptors` are the problem's at `batch` samples; workspaceBytes fit the buffers'.
  std::optional<double> time(const ConvolutionDescriptors& descriptors,
                             int batch,
                             const KernelOffer& offer,
                             int calls,
                             bool primed);

 private:
  cudnnStatus_t enqueue(const ConvolutionDescriptors& descriptors,
                        int batch,
                        const KernelOffer& offer,
                        int call);

  cudnnHandle_t handle_;
  cudaStream_t stream_ = nullptr;
  Problem problem_;
  TensorBuffers buffers_;
  int bufferBatch_;
  Event start_, stop_;
  // The further operands of bias_activation_forward.
  TensorDescriptor biasDescriptor_;
  ActivationDescriptor activation_;
  DeviceBuffer bias_;
};

}  // namespace ucudnn
