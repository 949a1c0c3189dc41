// One device's share of a benchmark.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "benchmark/kernel_timer.hpp"
#include "benchmark/stop_rule.hpp"

namespace ucudnn {

/// Times kernels on the handle's device. Not thread-safe; used once.
class DeviceBenchmark {
 public:
  using Clock = std::chrono::steady_clock;

  /// After `deadline` no further size is begun but the mini-batch itself.
  DeviceBenchmark(cudnnHandle_t handle,
                  const BenchmarkRequest& request,
                  Clock::time_point deadline);

  /// Throws Error.
  BenchmarkResult run(const std::vector<int>& batches);

 private:
  struct Size {
    int batch = 0;
    std::unique_ptr<ProblemDescriptors> descriptors;
    std::vector<KernelOffer>
        offers;  ///< once measured: those that ran, in step with the result's kernels

    KernelCall call(const KernelOffer& offer) const { return {descriptors->get(), batch, offer}; }
  };
  /// A kernel long enough for the host to run ahead of the device meanwhile.
  struct Ahead {
    Size size;
    KernelOffer offer;
    double timeMs = 0;
  };

  void allocate(const std::vector<Size>& sizes, bool sizesBetween);
  void measureAnchor(Size& size);
  void refineAnchor(const Size& size);
  void lookAgain(const Size& size);
  void measureBetween(int batch);
  bool isTooLate(int batch) const;
  bool fits(const KernelOffer& offer) const;
  bool isKnown(int batch, Kernel kernel) const;
  std::optional<double> quickTime(const Size& size, const KernelOffer& offer);
  std::optional<double> carefulTime(const Size& size,
                                    const KernelOffer& offer,
                                    double estimateMs,
                                    StopRule rule);
  double deviceTime(const Size& size, const KernelOffer& offer, double timeMs);
  void findAhead();
  void add(int batch, const KernelOffer& offer, double timeMs, double deviceMs);

  cudnnHandle_t handle_;
  const BenchmarkRequest& request_;
  Clock::time_point deadline_;
  TensorBuffers buffers_;
  int bufferBatch_ = 0;
  std::optional<ScratchBuffers> scratch_;
  std::optional<KernelTimer> timer_;
  std::optional<Ahead> ahead_;  ///< empty: none is long enough
  Measurements anchors_;        ///< powers of two and the mini-batch: known before, or measured now
  BenchmarkResult result_;
};

}  // namespace ucudnn
