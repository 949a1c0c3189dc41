#include "planner/measurer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "benchmark/exact_outputs.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/engines.hpp"
#include "kernels/planes.hpp"
#include "planner/configuration_times.hpp"
#include "planner/confirmation.hpp"

namespace ucudnn {
namespace {

using Clock = KnownQuestion::Clock;

// What could not be tried is tried again when ten times as long has passed as the attempt took: so
// attempts take a tenth of the time at most. And not more often than a person would notice.
constexpr int kRetryAfter = 10;
constexpr std::chrono::milliseconds kShortestRetry{100};

// What nobody asked to be measured takes at most a quarter of what is free: the program's other
// threads allocate meanwhile, and must get what they would have got.
constexpr std::size_t kUnaskedPartsOfFree = 4;

/// What kernels are timed on; null: scratch memory. The caller's own is not for engines and planes
/// where it is not aligned, or has no z beside y: what they say there is no answer for other calls.
/// Nor does it hold what errors are measured on.
const TensorBuffers* timingBuffers(const PlanRequest& request) noexcept {
  const TensorBuffers* const own = request.buffers;
  if (request.withErrors()) return nullptr;
  const bool isForAlgorithms = !request.withEngines() && !mayHavePlanes(request.problem);
  if (own == nullptr || isForAlgorithms) return own;
  const bool isForEngines =
      request.problem.addsZ == 0 &&
      isMemoryForEngines({nullptr, nullptr, own->x, own->w, own->y, own->workspace});
  return isForEngines ? own : nullptr;
}

/// What is known of the problem is filled in later: whether there is memory is asked first.
BenchmarkRequest benchmarkRequestOf(const PlanRequest& request,
                                    bool isUnasked,
                                    const Measurements& known,
                                    const KernelsAtSizes& refused) {
  BenchmarkRequest benchmark;
  benchmark.problem = request.problem;
  benchmark.sizes = request.sizes();
  benchmark.largestBatches =
      benchmark.sizes.size() > 1 && request.policy() == BatchSizePolicy::kPowerOfTwo;
  benchmark.calls = request.timedCalls();
  if (request.runsOwn()) benchmark.own = request.own->kernel;
  benchmark.room = {request.limitBytes, request.borrowedSampleBytes()};
  benchmark.buffers = timingBuffers(request);
  benchmark.memory.mostBytes = request.settings->benchmarkMemoryBytes;
  if (isUnasked) benchmark.memory.partsOfFree = kUnaskedPartsOfFree;
  benchmark.devices = *request.benchmarkDevices;
  benchmark.replays = request.replay() != Replay::kNever;
  benchmark.kernels = request.settings->kernels;
  benchmark.tuning = request.settings->tuning;
  benchmark.errors = request.withErrors() && hasExactOutputs(request.problem);
  benchmark.budgetMs = request.settings->benchmarkBudgetMs;
  benchmark.known = &known;
  benchmark.refused = &refused;
  return benchmark;
}

/// Another question's engines decide nothing where no plan may have them, and are not asked about.
void dropEngines(Measurements& measurements) {
  const auto isEngine = [](const Measurement& m) { return m.kernel.source == kEngines; };
  for (auto& [batch, size] : measurements)
    size.kernels.erase(std::remove_if(size.kernels.begin(), size.kernels.end(), isEngine),
                       size.kernels.end());
}

}  // namespace

/// What is also run less exactly is one of the candidates of a program that compares them, and
/// seldom the fastest.
std::uint64_t Measurer::repetitionsOf(const PlanRequest& request, Measuring measuring) const {
  if (measuring == Measuring::kWhenItPays && request.isCompared)
    return MeasuringBudget::kRepetitionsOfCandidates;
  if (measuring != Measuring::kWhenItPays || request.problem.mathType != CUDNN_FMA_MATH)
    return MeasuringBudget::kRepetitions;
  Problem inexact = request.problem;
  inexact.mathType = CUDNN_DEFAULT_MATH;
  inexact.transform = Problem{}.transform;
  return store_.knows(request.machine, inexact) ? MeasuringBudget::kRepetitionsOfCandidates
                                                : MeasuringBudget::kRepetitions;
}

bool Measurer::mustMeasure(const PlanRequest& request,
                           Measuring measuring,
                           const Known& known,
                           const KnownQuestion& asked,
                           std::uint64_t repetitions) const {
  if (measuring == Measuring::kNever || measuring == Measuring::kIfKnown) return false;
  if (asked.isComplete(request.limitBytes) && asked.answersClosely(request.limitBytes) &&
      !(request.runsOwn() && !known.hasTried(request.problem.batch(), request.own->kernel)))
    return false;
  const bool brings = timingBuffers(request) != nullptr && asked.memoryWasShort;
  if (asked.isIncomplete() && !brings && Clock::now() < asked.retryAt) return false;
  if (measuring == Measuring::kNow) return true;
  const double timeMs = estimatedMs(request.problem);
  const double share = request.settings->benchmarkShare;
  // Calls pay for one attempt.
  const bool isNew = !asked.isAnswered() && !asked.isIncomplete();
  const bool isSlow = request.lacksWorkspace && !asked.runsUnmeasured(request);
  return budget_.pays(asked.calls, timeMs, share, repetitions, request.problem.batch() > 1) ||
         (isNew && isSlow && budget_.paysBack(asked.calls, timeMs, share));
}

bool Measurer::isToBeMeasured(const PlanRequest& request, Measuring measuring) {
  const std::uint64_t repetitions = repetitionsOf(request, measuring);
  return store_.update(request, [&](const Known& known, const KnownQuestion& asked) {
    return mustMeasure(request, measuring, known, asked, repetitions);
  });
}

void Measurer::measureIfDue(const PlanRequest& request, Measuring measuring) {
  if (store_.load(request) || !isToBeMeasured(request, measuring)) return;
  const auto reserved = devices_.reserve(request.device, measuring == Measuring::kNow);
  if (!reserved && measuring != Measuring::kNow) return;
  // Another thread may have measured meanwhile.
  if (isToBeMeasured(request, measuring)) measure(request, measuring);
}

void Measurer::measure(const PlanRequest& request, Measuring measuring) {
  // Calls pay for it, and none of them asked.
  const bool isUnasked = measuring == Measuring::kWhenItPays;
  Measurements known;
  KernelsAtSizes refused;
  const BenchmarkRequest benchmark = benchmarkRequestOf(request, isUnasked, known, refused);
  bool wasAnswered = false;  // then little is timed but the client's own kernel
  BenchmarkResult result;
  std::string why;
  const auto begin = Clock::now();
  // Without it cuDNN isn't even asked what it has.
  const bool hasMemory = !isUnasked || hasMemoryToBenchmark(benchmark);
  if (hasMemory) {
    store_.update(request, [&](const Known& problem, const KnownQuestion& asked) {
      wasAnswered = asked.answers(request.limitBytes);
      known = problem.measurements;
      refused = problem.refused;
    });
    if (!request.withEngines()) dropEngines(known);
    PreparedKernels prepared(request.handle, request.problem);
    confirmAll(store_, request, prepared, known);
  }
  try {
    if (hasMemory)
      result = benchmarkKernels(request.handle, benchmark);
    else
      result.untried = Untried::kMemory;
    if (result.untried == Untried::kMemory) why = "device memory is short";
    if (result.failures > 0) why = fmt::format("{} kernels failed", result.failures);
  } catch (const Error& error) {
    why = error.what();
    result.failures = 1;
  }
  statistics_.kernelsMeasured += result.kernelsMeasured;
  const auto elapsed = Clock::now() - begin;
  const std::chrono::duration<double, std::milli> wall = elapsed;
  const double costMs = std::max(result.spentMs, wall.count());
  // What was put off says nothing of what measuring costs.
  if (result.kernelsMeasured > 0 && !wasAnswered)
    budget_.learn(estimatedMs(request.problem), costMs);
  if (isUnasked) budget_.spend(costMs);
  // What can't be timed is never replaced.
  if (benchmark.own && result.untried == Untried::kNone && result.failures == 0 &&
      findKernel(result.measurements, request.problem.batch(), *benchmark.own) == nullptr)
    result.refused[request.problem.batch()].push_back(*benchmark.own);
  store_.update(request, [&](const Known&, KnownQuestion& asked) {
    asked.retryAt = Clock::now() + std::max<Clock::duration>(kRetryAfter * elapsed, kShortestRetry);
  });
  store_.addResult(request, result, why);
}

Measurements Measurer::measurements(const PlanRequest& request, Measuring measuring) {
  if (measuring != Measuring::kNever && isToBeMeasured(request, measuring))
    measureIfDue(request, measuring);
  const bool isKnown = store_.read(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->isAnswered() &&
           (measuring != Measuring::kNever || asked->answers(request.limitBytes));
  });
  return isKnown ? store_.measurements(request) : Measurements();
}

void Measurer::addCalls(const PlanRequest& request, KnownQuestion& asked) {
  budget_.addCalls(asked.calls, request.callsSince, estimatedMs(request.problem));
  asked.calls += request.callsSince;
}

}  // namespace ucudnn
