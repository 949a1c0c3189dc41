#include "planner/ongoing_measurement.hpp"

#include <algorithm>
#include <utility>

#include "cuda/owners.hpp"
#include "support/host_clock.hpp"
#include "support/log.hpp"

namespace ucudnn {

OngoingMeasurement::OngoingMeasurement(const PlanRequest& request,
                                       BenchmarkRequest benchmark,
                                       KnownBefore before)
    : machine_(request.machine),
      device_(request.device),
      question_(request.question()),
      limitBytes_(request.limitBytes),
      before_(std::move(before)),
      benchmark_(std::move(benchmark)) {
  before_.addTo(benchmark_);
  if (benchmark_.buffers == nullptr) return;
  buffers_ = *benchmark_.buffers;
  benchmark_.buffers = &buffers_;
}

bool OngoingMeasurement::isOf(const PlanRequest& request,
                              const BenchmarkRequest& benchmark) const noexcept {
  return request.machine == machine_ && request.device == device_ && answers(request) &&
         request.limitBytes == limitBytes_ && benchmark.own == benchmark_.own &&
         benchmark.calls == benchmark_.calls && benchmark.replays == benchmark_.replays &&
         (benchmark.buffers == nullptr) == (benchmark_.buffers == nullptr);
}

bool OngoingMeasurement::advance(const PlanRequest& request,
                                 const BenchmarkRequest& benchmark,
                                 double sliceMs) {
  const double beginMs = hostMs();
  const RelaxedCapture relaxed;
  if (benchmark.buffers != nullptr) buffers_ = *benchmark.buffers;
  const TensorBuffers* const buffers = benchmark.buffers != nullptr ? &buffers_ : nullptr;
  if (run_)
    run_->resume(request.handle, buffers);
  else
    run_.emplace(request.handle, benchmark_);
  // Waiting for the call's earlier work is no part of the measuring.
  const double waitedMs = run_->waitedMs();
  const auto takenMs = [&] { return hostMs() - beginMs - (run_->waitedMs() - waitedMs); };
  bool isLeft = true;
  const auto end = [&] {
    const double deviceMs = run_->pause();
    spentMs_ += std::max(deviceMs, takenMs());
  };
  try {
    do {
      const double beforeMs = takenMs();
      isLeft = run_->advance();
      const double stepMs = takenMs() - beforeMs;
      if (stepMs > request.settings->benchmarkStallMs)  // mostly because code is loaded
        logInfo("{} N={}: a call waited {:.0f} ms for one step of measuring: {}",
                request.problem.text(),
                request.problem.batch(),
                stepMs,
                run_->lastStep());
    } while (isLeft && !run_->isWaiting() && takenMs() < sliceMs);
  } catch (...) {
    end();
    throw;
  }
  end();
  return isLeft;
}

Measurements OngoingMeasurement::newlySettled() {
  Measurements settled = run_ ? run_->settled() : Measurements{};
  for (auto& [batch, size] : settled) {
    const auto isKept = [&, samples = batch](const Measurement& m) {
      return !kept_.insert({samples, m.kernel}).second;
    };
    auto& kernels = size.kernels;
    kernels.erase(std::remove_if(kernels.begin(), kernels.end(), isKept), kernels.end());
  }
  return settled;
}

BenchmarkResult OngoingMeasurement::finish() {
  BenchmarkResult result = run_ ? run_->finish() : BenchmarkResult{};
  result.spentMs = spentMs_;
  return result;
}

}  // namespace ucudnn
