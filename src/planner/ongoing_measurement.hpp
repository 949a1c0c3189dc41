// A measurement that nobody asked for: it goes on a slice at a time, in calls of its problem.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "benchmark/benchmark_run.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// What is known of a problem before it is measured.
struct KnownBefore {
  Measurements measurements;
  Measurements elsewhere;  ///< of another version of cuDNN or the driver
  KernelsAtSizes refused;
  std::vector<Kernel> neighbour;  ///< BenchmarkRequest::neighbour; empty: all kernels are looked at
  bool isAnswered = false;  ///< the question: then little is timed but the client's own kernel

  /// REQUIRES: this outlives what is asked.
  void addTo(BenchmarkRequest& benchmark) const noexcept {
    benchmark.known = &measurements;
    benchmark.elsewhere = &elsewhere;
    benchmark.refused = &refused;
    if (!neighbour.empty()) benchmark.neighbour = &neighbour;
  }
};

/// Holds no device memory between two slices. Not thread-safe.
class OngoingMeasurement {
 public:
  /// `benchmark`: of the request, without further devices and known kernels, which are the others.
  OngoingMeasurement(const PlanRequest& request, BenchmarkRequest benchmark, KnownBefore before);
  OngoingMeasurement(const OngoingMeasurement&) = delete;
  OngoingMeasurement& operator=(const OngoingMeasurement&) = delete;

  /// Whether the request's call can take it further: it asks for the same, and its memory is of the
  /// same kind.
  bool isOf(const PlanRequest& request, const BenchmarkRequest& benchmark) const noexcept;

  /// Takes steps until `sliceMs` have passed: a step more or less. False: none is left. Throws
  /// Error where no kernel can be timed. REQUIRES: isOf; the request's handle's device is current,
  /// its stream not captured.
  bool advance(const PlanRequest& request, const BenchmarkRequest& benchmark, double sliceMs);
  /// What has been found, once.
  BenchmarkResult finish();

  /// Whether it answers the request's question, for whatever limit and calls it was begun.
  bool answers(const PlanRequest& request) const noexcept {
    return request.problem == benchmark_.problem && request.question() == question_;
  }
  double spentMs() const noexcept { return spentMs_; }
  const KnownBefore& before() const noexcept { return before_; }

 private:
  const int machine_, device_;
  const QuestionKey question_;
  const std::size_t limitBytes_;
  TensorBuffers buffers_;
  KnownBefore before_;
  BenchmarkRequest benchmark_;
  std::optional<BenchmarkRun> run_;
  double spentMs_ = 0;  ///< of the host's or the device's time, in all slices
};

}  // namespace ucudnn
