// Times calls of one kernel on one device, back to back.
#pragma once

#include <vector>

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

  /// How to time a kernel: `samples` times `calls` calls, after `warmUps` untimed ones that keep
  /// the device busy until the first timed one arrives.
  struct Schedule {
    int samples = 1;
    int calls = 1;
    int warmUps = 1;
  };

  /// The samples, each the device time in ms of one call. All calls are enqueued back to back and
  /// walk over the micro-batches of the buffers as a split convolution does (and, for backward
  /// filter, add up as it does); the host waits once, at the end. Empty when cuDNN refuses the
  /// kernel. Throws Error for a failed CUDA call. REQUIRES: `descriptors` are the problem's at
  /// `batch` samples; workspaceBytes fit the buffers'; at most kMaximumSamples samples.
  std::vector<double> time(const ConvolutionDescriptors& descriptors,
                           int batch,
                           const KernelOffer& offer,
                           Schedule schedule);

  static constexpr int kMaximumSamples = 8;

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
  std::vector<Event> events_;  ///< one more than kMaximumSamples
  // The further operands of bias_activation_forward.
  TensorDescriptor biasDescriptor_;
  ActivationDescriptor activation_;
  DeviceBuffer bias_;
};

}  // namespace ucudnn
