#include "planner/measurer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "benchmark/exact_outputs.hpp"
#include "kernels/engine_calls.hpp"
#include "kernels/engine_configuration.hpp"
#include "kernels/engines.hpp"
#include "kernels/planes.hpp"
#include "planner/configuration_times.hpp"
#include "planner/confirmation.hpp"
#include "planner/measuring_line.hpp"

namespace ucudnn {
namespace {

using Clock = KnownQuestion::Clock;

// An incomplete attempt is repeated after ten times its duration, so attempts take at most a tenth
// of the time. It is not repeated more often than a person would notice.
constexpr int kRetryAfter = 10;
constexpr std::chrono::milliseconds kShortestRetry{100};

// A slice takes this part of the stall: steps of 1 to 3 ms, too little for a person or a server to
// notice.
constexpr double kSlicesOfStall = 4;
// Measurements that a program has begun and not continued. They hold built engines, some of 1 MiB.
constexpr std::size_t kMostOngoing = 16;
// Findings are kept after so much measuring, because a process that ends loses the rest. Keeping
// them takes a millisecond.
constexpr double kKeptEachMs = 50;

// An unasked measurement takes at most a quarter of the free memory. The program's other threads
// allocate meanwhile, and must get what they would have got without it.
constexpr std::size_t kUnaskedPartsOfFree = 4;

/// The memory that kernels are timed on; null: scratch memory. The caller's buffers don't serve for
/// engines and planes if they are not aligned, or have no z beside y: the answer would not hold for
/// other calls. They don't have the values either on which errors are measured.
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

/// How long a call may wait for measuring. A call that lacks workspace may wait for as long as it
/// takes itself, because it has lost as much already.
double sliceMsOf(const PlanRequest& request) noexcept {
  const double shortMs = request.settings->benchmarkStallMs / kSlicesOfStall;
  return request.lacksWorkspace ? std::max(shortMs, estimatedMs(request.problem)) : shortMs;
}

/// The benchmark's request, without what is known of the problem.
BenchmarkRequest benchmarkRequestOf(const PlanRequest& request, bool isUnasked) {
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
  return benchmark;
}

/// Drops engines of other questions: they decide nothing if no plan may have any, so cuDNN isn't
/// asked.
void dropEngines(Measurements& measurements) {
  const auto isEngine = [](const Measurement& m) { return m.kernel.source == kEngines; };
  for (auto& [batch, size] : measurements)
    size.kernels.erase(std::remove_if(size.kernels.begin(), size.kernels.end(), isEngine),
                       size.kernels.end());
}

/// The least time in which so many samples ran, some at a time. 0: nothing was timed.
double leastMs(const Measurements& measurements, int miniBatch) {
  double least = 0;
  for (const auto& [batch, size] : measurements)
    for (const Measurement& m : size.kernels) {
      const double ms = m.timeMs * miniBatch / batch;
      least = least == 0 ? ms : std::min(least, ms);
    }
  return least;
}

/// Whether the parts of the batch run on copies that we make for their kernel.
bool isOnCopies(const Plan& parts) {
  return std::any_of(parts.steps.begin(), parts.steps.end(), [](const Plan::Step& step) {
    if (step.kernel.source != kEngines) return false;
    const EngineConfiguration value = engineConfigurationOf(step.kernel.id);
    return value.blocks != 0 && value.bands == 1;
  });
}

MeasuringBudget::Hope hopeOf(const PlanRequest& request, const KnownQuestion& asked) {
  using Hope = MeasuringBudget::Hope;
  if (asked.isOfLook) return Hope::kAfterALook;
  if (!request.lacksWorkspace) return Hope::kWhole;
  const auto parts = asked.unmeasuredFor(request);
  return parts != nullptr && isOnCopies(*parts) ? Hope::kOnCopies : Hope::kInParts;
}

}  // namespace

bool Measurer::mustMeasure(const PlanRequest& request,
                           Measuring measuring,
                           const Known& known,
                           const KnownQuestion& asked) {
  if (measuring == Measuring::kNever || measuring == Measuring::kIfKnown) return false;
  // After a look the other kernels are timed, but not if the client's own kernel runs as well.
  const bool goesOn = asked.isOfLook && (measuring == Measuring::kNow || request.lacksWorkspace);
  if (!goesOn && asked.isComplete(request.limitBytes) && asked.answersClosely(request.limitBytes) &&
      !(request.runsOwn() && !known.hasTried(request.problem.batch(), request.own->kernel)))
    return false;
  const bool brings = timingBuffers(request) != nullptr && asked.memoryWasShort;
  if (asked.isIncomplete() && !brings && Clock::now() < asked.retryAt) return false;
  if (measuring == Measuring::kNow) return true;
  const double share = request.settings->benchmarkShare;
  if (share <= 0 || request.settings->benchmarkStallMs <= 0) return false;
  const double callsMs =
      static_cast<double>(asked.calls) * budget_.expectedMs(estimatedMs(request.problem));
  const bool hasShare = budget_.has(sliceMsOf(request), share);
  // Calls pay for one attempt only.
  const bool isFirst = asked.isOngoing || (!asked.isAnswered() && !asked.isIncomplete());
  const auto parts = request.lacksWorkspace ? asked.unmeasuredFor(request) : nullptr;
  const bool isInParts = parts != nullptr;
  double lostMs = 0;
  if (request.lacksWorkspace && !isInParts) lostMs = callsMs;
  if (isInParts && !isOnCopies(*parts)) lostMs = budget_.lossInParts() * callsMs;
  const bool isPaid = isFirst && !asked.isOfLook && asked.spentMs + sliceMsOf(request) <= lostMs;
  if (isPaid && !isInParts) return true;
  if (!hasShare && !isPaid) return false;
  if (asked.isOngoing) return true;
  const double pays = payback(request, asked, callsMs);
  return pays >= 1 && queue_.isNext(request, pays);
}

double Measurer::payback(const PlanRequest& request,
                         const KnownQuestion& asked,
                         double callsMs) const {
  const double timeMs = budget_.expectedMs(estimatedMs(request.problem));
  const double gain = budget_.hopedGain(hopeOf(request, asked));
  if (asked.isOfLook) return budget_.payback(callsMs, timeMs, gain);
  const auto look = lookAt(store_, request, asked);
  if (!look) return budget_.payback(callsMs, timeMs, gain);
  if (!look->kernels.empty()) return MeasuringBudget::paybackOfALook(callsMs, timeMs, gain);
  return budget_.payback(callsMs, timeMs, MeasuringBudget::kLeastGain);
}

bool Measurer::isToBeMeasured(const PlanRequest& request, Measuring measuring) {
  return store_.update(request, [&](const Known& known, const KnownQuestion& asked) {
    return mustMeasure(request, measuring, known, asked);
  });
}

void Measurer::measureIfDue(const PlanRequest& request, Measuring measuring) {
  if (store_.load(request) || !isToBeMeasured(request, measuring)) return;
  const auto reserved = devices_.reserve(request.device, measuring == Measuring::kNow);
  if (!reserved && measuring != Measuring::kNow) return;
  // Another thread may have measured meanwhile.
  if (!isToBeMeasured(request, measuring)) return;
  if (measuring != Measuring::kNow) return measureSlice(request);
  const MeasuringLine line(*request.settings, statistics_);
  measure(request, reserved != nullptr);
  if (hasFailed(request)) measure(request, reserved != nullptr);
}

/// Whether kernels failed, and others are known. Another attempt tries only those that failed.
bool Measurer::hasFailed(const PlanRequest& request) const {
  return store_.read(request, [&](const Known* known, const KnownQuestion* asked) {
    return asked != nullptr && asked->failed && known->hasMeasured(request.problem.batch());
  });
}

KnownBefore Measurer::knownBefore(const PlanRequest& request) {
  KnownBefore before;
  store_.update(request, [&](const Known& problem, const KnownQuestion& asked) {
    before.isAnswered = asked.answers(request.limitBytes) && !asked.isOfLook;
    before.measurements = problem.measurements;
    before.elsewhere = problem.elsewhere;
    before.refused = problem.refused;
    for (const int size : request.sizes())
      before.refused[size].insert(
          before.refused[size].end(), problem.wrong.begin(), problem.wrong.end());
  });
  if (!request.withEngines()) dropEngines(before.measurements);
  PreparedKernels prepared(request.handle, request.problem);
  confirmAll(store_, request, prepared, before.measurements);
  return before;
}

void Measurer::measure(const PlanRequest& request, bool isReserved) {
  const KnownBefore before = knownBefore(request);
  BenchmarkRequest benchmark = benchmarkRequestOf(request, false);
  before.addTo(benchmark);
  BenchmarkResult result;
  std::string why;
  const auto begin = Clock::now();
  try {
    result = benchmarkKernels(request.handle, benchmark);
  } catch (const Error& error) {
    why = error.what();
    result.failures = 1;
  }
  const std::chrono::duration<double, std::milli> wall = Clock::now() - begin;
  result.spentMs = std::max(result.spentMs, wall.count());
  conclude(request, std::move(result), benchmark.own, std::move(why), before);
  // Measurements begun in slices are not needed any more. Without a reservation another thread may
  // use them.
  if (isReserved)
    ongoingOn(request.device).remove_if([&](const Begun& one) {
      return one.measurement.answers(request);
    });
}

Measurer::Ongoing& Measurer::ongoingOn(int device) {
  const std::lock_guard lock(ongoingMutex_);
  return ongoing_[device];
}

Measurer::Begun* Measurer::ongoingOf(const PlanRequest& request,
                                     const BenchmarkRequest& benchmark) {
  Ongoing& all = ongoingOn(request.device);
  const auto now = Clock::now();
  for (Begun& one : all)
    if (one.measurement.isOf(request, benchmark)) return &one;
  for (const Begun& one : all)
    if (now - one.wanted < kWantedWithin) return nullptr;
  KnownBefore before = knownBefore(request);
  store_.update(request, [&](const Known&, const KnownQuestion& asked) {
    before.look = lookAt(store_, request, asked);
  });
  if (before.look && before.look->kernels.empty()) before.look.reset();
  queue_.leave(request);
  if (all.size() >= kMostOngoing) all.pop_front();
  Begun& begun = all.emplace_back(request, benchmark, std::move(before));
  store_.update(request, [](const Known&, KnownQuestion& asked) { asked.isOngoing = true; });
  return &begun;
}

void Measurer::measureSlice(const PlanRequest& request) {
  BenchmarkRequest benchmark = benchmarkRequestOf(request, true);
  benchmark.devices.clear();  // the call would wait for them
  benchmark.longestMs = request.settings->benchmarkStallMs;
  benchmark.worksAside = request.settings->backgroundPlanning;
  std::string why;
  // Without memory cuDNN isn't even asked for its kernels.
  if (!hasMemoryToBenchmark(benchmark)) {
    BenchmarkResult result;
    result.untried = Untried::kMemory;
    conclude(request, std::move(result), benchmark.own, std::move(why), {});
    return;
  }
  Begun* const begun = ongoingOf(request, benchmark);
  if (begun == nullptr) return;
  OngoingMeasurement& measurement = begun->measurement;
  begun->wanted = Clock::now();
  const double before = measurement.spentMs();
  bool isLeft = false;
  BenchmarkResult result;
  try {
    isLeft = measurement.advance(request, benchmark, sliceMsOf(request));
    if (!isLeft) result = measurement.finish();
  } catch (const Error& error) {
    why = error.what();
    result.failures = 1;
  }
  const double sliceMs = measurement.spentMs() - before;
  budget_.spend(sliceMs);
  addSlice(statistics_, sliceMs);
  store_.update(request, [&](const Known&, KnownQuestion& asked) { asked.spentMs += sliceMs; });
  if (isLeft) {
    if (measurement.spentMs() < begun->keptMs + kKeptEachMs) return;
    begun->keptMs = measurement.spentMs();
    return store_.addPart(request, measurement.newlySettled());
  }
  result.spentMs = measurement.spentMs();
  const KnownBefore known = measurement.before();
  ongoingOn(request.device).remove_if([&](const Begun& one) { return &one == begun; });
  conclude(request, std::move(result), benchmark.own, std::move(why), known);
}

/// Stores the result.
void Measurer::conclude(const PlanRequest& request,
                        BenchmarkResult result,
                        const std::optional<Kernel>& own,
                        std::string why,
                        const KnownBefore& before) {
  if (result.untried == Untried::kMemory) why = "device memory is short";
  if (result.failures > 0 && why.empty()) why = fmt::format("{} kernels failed", result.failures);
  statistics_.kernelsMeasured += result.kernelsMeasured;
  // The rest of an earlier measurement, or a look at few kernels, does not show the cost of
  // measuring.
  const bool isLook = before.look.has_value();
  const bool isWhole = !before.isAnswered && before.measurements.empty() && !isLook;
  if (result.kernelsMeasured > 0 && isWhole)
    budget_.learn(estimatedMs(request.problem), result.spentMs);
  const Measurement* const timedOwn =
      own ? findKernel(result.measurements, request.problem.batch(), *own) : nullptr;
  const double callMs = timedOwn != nullptr ? timedOwn->timeMs
                                            : leastMs(result.measurements, request.problem.batch());
  if (callMs > 0) budget_.learnTime(estimatedMs(request.problem), callMs);
  // A kernel that can't be timed is never replaced.
  if (own && result.untried == Untried::kNone && result.failures == 0 && timedOwn == nullptr)
    result.refused[request.problem.batch()].push_back(*own);
  const auto spent = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double, std::milli>(result.spentMs));
  store_.update(request, [&](const Known&, KnownQuestion& asked) {
    const int batch = request.problem.batch();
    const auto parts = asked.unmeasuredFor(request);
    const double formerMs = asked.isOfLook        ? leastMs(before.measurements, batch)
                            : timedOwn != nullptr ? timedOwn->timeMs
                            : parts != nullptr    ? partsMs(*parts, result.measurements)
                                                  : 0;
    const double newMs = leastMs(result.measurements, batch);
    if (formerMs > 0 && newMs > 0)
      budget_.learnGain(hopeOf(request, asked), std::max(0.0, 1 - newMs / formerMs));
    asked.retryAt = Clock::now() + std::max<Clock::duration>(kRetryAfter * spent, kShortestRetry);
    asked.isOngoing = false;
    const bool wasTried = result.untried != Untried::kMemory || result.kernelsMeasured > 0;
    // After a look that fails again, its kernels count as refused (KnownQuestion::addAttempt).
    const bool fails = isLook && result.failures > 0;
    if (wasTried) asked.isOfLook = isLook && (!fails || asked.lookFailed);
    asked.lookFailed = fails && !asked.isOfLook;
    if (asked.isOfLook) asked.calls = 0;
    asked.spentMs = 0;
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
  budget_.addTime(request.callsSince * estimatedMs(request.problem));
  asked.calls += request.callsSince;
}

}  // namespace ucudnn
