// Times calls of one kernel on one device, back to back.
#pragma once

#include <memory>
#include <vector>

#include "benchmark/buffers.hpp"
#include "benchmark/exact_outputs.hpp"
#include "cuda/owners.hpp"
#include "kernels/kernel.hpp"

namespace ucudnn {

/// A kernel, ready to run `batch` samples, and the memory it runs in. REQUIRES: the memory fits.
struct PlacedCall {
  std::shared_ptr<const BuiltKernel> kernel;
  int batch = 0;
  std::size_t workspaceBytes = 0;
  Placement place;
};

/// Device times in ms of one call each; empty if a call failed.
struct Timing {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;  ///< of the first call that failed
  std::vector<double> samples;
};

/// Enqueues calls on the handle's stream between two events. Not thread-safe.
class KernelTimer {
 public:
  /// Throws Error.
  KernelTimer(cudnnHandle_t handle, const Problem& problem);

  /// How to time a kernel: `samples` times `calls` calls, after `warmUps` untimed ones that keep
  /// the device busy until the first timed one arrives.
  struct Schedule {
    int samples = 1;
    int calls = 1;
    int warmUps = 1;
  };

  /// Enqueues all calls back to back. They walk over the micro-batches of the memory as a split
  /// convolution does, and add up for backward filter as it does. The host waits once, at the end.
  /// Throws Error for a failed CUDA call. REQUIRES: at most kMaximumSamples samples.
  Timing time(const PlacedCall& placed, Schedule schedule);

  /// Samples of `calls` calls each that are launched as one CUDA graph, so that the calls don't
  /// wait for the host. `ahead`: the number of calls that keep the device busy until the graph has
  /// been launched; 0: the graph itself does. No samples: nothing may be captured now. Throws Error
  /// if the calls can't be captured. REQUIRES: at most kMaximumSamples samples, and no more ahead
  /// than calls.
  Timing timeReplayed(const PlacedCall& placed, int calls, int samples, int ahead);

  /// The error of one call on the random values in scratch memory; infinite if the call fails.
  /// Waits for the call. Throws Error for a failed CUDA call. REQUIRES: `exact` belong to the
  /// problem at so many samples.
  double error(const PlacedCall& placed, const std::vector<ExactOutput>& exact);

  /// Enqueues one call that overwrites its output, or adds to it.
  cudnnStatus_t run(const PlacedCall& placed, bool adds);

  static constexpr int kMaximumSamples = 8;

 private:
  /// Calls from number `first` on, up to one that fails: runs from the first slice to the last.
  cudnnStatus_t enqueue(const PlacedCall& placed, int first, int calls, bool adds = false);
  /// Between the events `sample` and `sample` + 1, of one call. REQUIRES: both have happened.
  double sampleMs(int sample, int calls) const;
  void record(int event);
  void waitFor(int event);

  cudnnHandle_t handle_;
  cudaStream_t stream_ = nullptr;
  Problem problem_;
  std::vector<Event> events_;  ///< one more than kMaximumSamples
  // The further operands of bias_activation_forward.
  TensorDescriptor biasDescriptor_;
  ActivationDescriptor activation_;
};

}  // namespace ucudnn
