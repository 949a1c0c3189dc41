// A measurement that nobody asked for. Calls of its problem take it further, a slice each.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "benchmark/benchmark_run.hpp"
#include "planner/looks.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// All that is known of a problem before it is measured.
struct KnownBefore {
  Measurements measurements;
  Measurements elsewhere;  ///< on another machine
  KernelsAtSizes refused;
  std::optional<PlannedLook> look;  ///< empty: all kernels are timed
  bool isAnswered = false;  ///< the question is; then little but the client's own kernel is timed

  /// REQUIRES: this outlives `benchmark`.
  void addTo(BenchmarkRequest& benchmark) const {
    benchmark.known = &measurements;
    benchmark.elsewhere = &elsewhere;
    benchmark.refused = &refused;
    if (!look) return;
    benchmark.look = &*look;
    benchmark.sizes = look->sizes;
  }
};

/// Holds no device memory between two slices. Not thread-safe.
class OngoingMeasurement {
 public:
  /// `benchmark` is the request's, without further devices; `before` has the known kernels.
  OngoingMeasurement(const PlanRequest& request, BenchmarkRequest benchmark, KnownBefore before);
  OngoingMeasurement(const OngoingMeasurement&) = delete;
  OngoingMeasurement& operator=(const OngoingMeasurement&) = delete;

  /// Whether the request's call can take it further: the call asks for the same, and its memory is
  /// of the same kind.
  bool isOf(const PlanRequest& request, const BenchmarkRequest& benchmark) const noexcept;

  /// Takes steps until about `sliceMs` have passed. Returns false if no step is left. Throws Error
  /// if no kernel can be timed. REQUIRES: isOf; the device of the request's handle is current, and
  /// its stream is not captured.
  bool advance(const PlanRequest& request, const BenchmarkRequest& benchmark, double sliceMs);
  /// What is measured by now and hasn't been asked for before.
  Measurements newlySettled();
  /// The result. Call it once.
  BenchmarkResult finish();

  /// Whether it answers the request's question. It may have begun for other limits and calls.
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
  KernelSet kept_;      ///< of `newlySettled`
  double spentMs_ = 0;  ///< the longer of the host's and the device's time, over all slices
};

}  // namespace ucudnn
