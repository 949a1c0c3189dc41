// Times calls of one kernel on one device, back to back.
#pragma once

#include <optional>
#include <vector>

#include "benchmark/buffers.hpp"
#include "cuda/owners.hpp"
#include "kernels/kernel.hpp"

namespace ucudnn {

/// One kernel at one batch size. REQUIRES: `descriptors` are the problem's at `batch` samples;
/// the workspace fits the timer's buffers.
struct KernelCall {
  ConvolutionDescriptors descriptors;
  int batch = 0;
  KernelOffer offer;
};

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
  /// kernel. Throws Error for a failed CUDA call. REQUIRES: at most kMaximumSamples samples.
  std::vector<double> time(const KernelCall& call, Schedule schedule);

  /// The device time in ms of one of `calls` calls that are enqueued while the device is still busy
  /// with `aheadCalls` others: without what it waits for the host. Empty, and throws, as above.
  std::optional<double> timeBehind(const KernelCall& ahead,
                                   int aheadCalls,
                                   const KernelCall& call,
                                   int calls);

  static constexpr int kMaximumSamples = 8;

 private:
  cudnnStatus_t enqueue(const KernelCall& call, int index);
  /// Calls from number `first` on; false when cuDNN refuses one.
  bool enqueueAll(const KernelCall& call, int first, int calls);
  /// Between the events `sample` and `sample` + 1, of one call. REQUIRES: both have happened.
  double sampleMs(int sample, int calls) const;
  void record(int event);
  void waitFor(int event);

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
