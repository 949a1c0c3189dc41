#include "planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "kernels/algorithms.hpp"
#include "optimizer/workspace_reuse.hpp"
#include "planner/conversion.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

using Clock = KnownQuestion::Clock;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// Timings repeat within half a percent (median prediction error of misc/results/*.json, H200); two
// of them are compared.
constexpr double kSplitGain = 1.01;

// What could not be tried is tried again when ten times as long has passed as the attempt took: so
// attempts take a tenth of the time at most. And not more often than a person would notice.
constexpr int kRetryAfter = 10;
constexpr std::chrono::milliseconds kShortestRetry{100};

/// Adds its own lifetime to a counter.
class PlanningTime {
 public:
  explicit PlanningTime(std::atomic<long long>& microseconds) : microseconds_(microseconds) {}
  ~PlanningTime() {
    const auto elapsed = Clock::now() - begin_;
    microseconds_ += std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
  }
  PlanningTime(const PlanningTime&) = delete;
  PlanningTime& operator=(const PlanningTime&) = delete;

 private:
  std::atomic<long long>& microseconds_;
  Clock::time_point begin_ = Clock::now();
};

bool isInaccurateSplit(const Configuration& configuration,
                       const Measurements& measurements,
                       int miniBatch) {
  const auto& groups = configuration.microBatches;
  return std::any_of(groups.begin(), groups.end(), [&](const MicroBatches& group) {
    const auto& kernels = measurements.at(group.batch).kernels;
    return group.batch < miniBatch && !kernels[static_cast<std::size_t>(group.kernel)].accurate;
  });
}

/// The fastest configuration; but a split has to win more than the noise of the timings against the
/// undivided one.
std::optional<Configuration> chooseConfiguration(const CandidateTable& table,
                                                 int miniBatch,
                                                 std::size_t limitBytes) {
  const auto fastest = fastestConfiguration(table, miniBatch, limitBytes, kLaunchMs);
  const auto whole = table.find(miniBatch);
  if (!fastest || whole == table.end()) return fastest;
  const auto undivided = fastestConfiguration({*whole}, miniBatch, limitBytes, kLaunchMs);
  return undivided && undivided->timeMs <= fastest->timeMs * kSplitGain ? undivided : fastest;
}

bool isSamePlan(const Plan* a, const Plan* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->workspaceBytes == b->workspaceBytes && a->predictedMs == b->predictedMs &&
         a->algorithm == b->algorithm && a->algorithmBytes == b->algorithmBytes &&
         toText(*a) == toText(*b);
}

}  // namespace

void Planner::addConvolutionTime(double timeMs) {
  investment_.addTime(timeMs);
}

PlanAnswer Planner::answer(const PlanRequest& request, Measuring measuring) {
  if (measuring != Measuring::kNever && request.settings->benchmarkShare == kMeasureAlways)
    measuring = Measuring::kNow;
  if (const auto known = knownAnswer(request, measuring)) return *known;
  const PlanningTime time(statistics_.planningMicroseconds);
  if (measuring != Measuring::kNever) inquire(request, measuring);
  return makePlan(request, measuring);
}

std::optional<std::shared_ptr<const Plan>> Planner::planWithoutMeasuring(
    const PlanRequest& request) {
  if (!isAnswered(request)) return std::nullopt;
  return answer(request, Measuring::kNever).plan;
}

bool Planner::mustMeasure(const PlanRequest& request,
                          Measuring measuring,
                          const KnownQuestion& asked) const {
  if (measuring == Measuring::kNever || measuring == Measuring::kIfKnown) return false;
  const bool complete = asked.answers(request.limitBytes) && !asked.isIncomplete();
  if (complete) return false;
  const bool brings = request.buffers != nullptr && asked.memoryWasShort;
  if (asked.isIncomplete() && !brings && Clock::now() < asked.retryAt) return false;
  return measuring == Measuring::kNow ||
         investment_.pays(
             asked.calls, estimatedMs(request.problem), request.settings->benchmarkShare);
}

std::optional<PlanAnswer> Planner::knownAnswer(const PlanRequest& request, Measuring measuring) {
  const bool isNew = store_.look(
      request, [](const Known*, const KnownQuestion* asked) { return asked == nullptr; });
  if (measuring == Measuring::kNever && isNew) return PlanAnswer{};
  return store_.use(
      request, [&](const Known& problem, KnownQuestion& asked) -> std::optional<PlanAnswer> {
        if (measuring == Measuring::kWhenItPays)
          investment_.addCall(asked.calls++, estimatedMs(request.problem));
        if (mustMeasure(request, measuring, asked)) return std::nullopt;
        const bool mayLoad =
            measuring != Measuring::kNever && problem.mayLoad(request.settings->databasePath);
        if (mayLoad && problem.wasLocked()) return std::nullopt;
        if (const KnownPlan* const known = asked.find(request.deterministic, request.limitBytes))
          return PlanAnswer{known->plan, known->lasts};
        // The database may hold the answer; else what has not been measured has no plan.
        if (!asked.answeredBytes && !asked.isIncomplete() && !mayLoad) return PlanAnswer{};
        return std::nullopt;
      });
}

void Planner::inquire(const PlanRequest& request, Measuring measuring) {
  if (store_.load(request)) return;
  const auto isToBeMeasured = [&] {
    return store_.use(request, [&](const Known&, const KnownQuestion& asked) {
      return mustMeasure(request, measuring, asked);
    });
  };
  if (!isToBeMeasured()) return;
  const Turn turn(turns_, request.device, measuring == Measuring::kNow);
  if (!turn.isTaken() && measuring != Measuring::kNow) return;
  // Another thread may have measured meanwhile.
  if (isToBeMeasured()) measure(request);
}

void Planner::measure(const PlanRequest& request) {
  Measurements known;
  KernelsAtSizes refused;
  store_.use(request, [&](const Known& problem, const KnownQuestion&) {
    known = problem.measurements;
    refused = problem.refused;
  });
  store_.confirmAll(request, known);
  BenchmarkRequest benchmark;
  benchmark.problem = request.problem;
  benchmark.sizes = sizesFor(request.problem, request.settings->batchSizePolicy);
  benchmark.limitBytes = request.limitBytes;
  benchmark.known = &known;
  benchmark.refused = &refused;
  benchmark.buffers = request.buffers;
  benchmark.memoryBytes = request.settings->benchmarkMemoryBytes;
  benchmark.devices = *request.benchmarkDevices;
  benchmark.budgetMs = request.settings->benchmarkBudgetMs;
  BenchmarkResult result;
  std::string why;
  const auto begin = Clock::now();
  try {
    result = benchmarkKernels(request.handle, benchmark);
    if (result.untried == Untried::kMemory) why = "device memory is short";
    if (result.failures > 0) why = fmt::format("{} kernels failed", result.failures);
  } catch (const Error& error) {
    why = error.what();
    result.failures = 1;
  }
  statistics_.kernelsMeasured += result.kernelsMeasured;
  const auto elapsed = Clock::now() - begin;
  const std::chrono::duration<double, std::milli> wall = elapsed;
  investment_.addCost(estimatedMs(request.problem), std::max(result.spentMs, wall.count()));
  store_.use(request, [&](const Known&, KnownQuestion& asked) {
    asked.retryAt = Clock::now() + std::max<Clock::duration>(kRetryAfter * elapsed, kShortestRetry);
  });
  store_.add(request, result, why);
}

/// The plan, all that it runs or names confirmed.
std::shared_ptr<const Plan> Planner::choosePlan(const PlanRequest& request, Measuring measuring) {
  const bool wasAsked = store_.look(request, [](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->answeredBytes;
  });
  Measurements measurements = store_.measurements(request);
  if (!wasAsked && !knowsOwnChoice(request, measurements)) return nullptr;
  for (;;) {
    const auto configuration = chooseAccurately(request, measurements, measuring);
    if (!configuration) return nullptr;
    auto plan = buildPlan(request.handle,
                          request.problem,
                          request.limitBytes,
                          *configuration,
                          measurements,
                          request.deterministic);
    const Kernel named{plan->algorithm, request.problem.mathType};
    if (store_.confirm(request, {{request.problem.batch(), {named}}}, measurements)) return plan;
  }
}

PlanAnswer Planner::makePlan(const PlanRequest& request, Measuring measuring) {
  KnownPlan made;
  made.lasts = store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->answers(request.limitBytes) && !asked->isIncomplete();
  });
  made.plan = choosePlan(request, measuring);
  made.deterministic = request.deterministic;
  made.highBytes = request.limitBytes;
  made.lowBytes = made.plan ? std::max(made.plan->workspaceBytes, made.plan->algorithmBytes) : 0;
  const auto [kept, isNew] = keep(request, made);
  if (isNew) report(request, kept.plan.get());
  if (isNew && kept.plan) ++statistics_.plans;
  return kept;
}

/// All threads hold the same plan, and an equal one of before is kept. The second: whether this
/// one is new.
std::pair<PlanAnswer, bool> Planner::keep(const PlanRequest& request, KnownPlan made) {
  return store_.use(request, [&](const Known&, KnownQuestion& asked) {
    if (const KnownPlan* const other = asked.find(request.deterministic, request.limitBytes))
      return std::make_pair(PlanAnswer{other->plan, other->lasts}, false);
    bool isNew = true;
    for (const auto* list : {&asked.plans, &asked.formerPlans})
      for (const KnownPlan& former : *list)
        if (isNew && former.deterministic == made.deterministic &&
            isSamePlan(former.plan.get(), made.plan.get())) {
          made.plan = former.plan;
          isNew = false;
        }
    if (asked.plans.size() >= kMostPlans) asked.plans.erase(asked.plans.begin());
    asked.plans.push_back(made);
    return std::make_pair(PlanAnswer{made.plan, made.lasts}, isNew);
  });
}

/// Whether what cuDNN itself would run within the limit, by its heuristics, is among what was
/// measured: a plan is then no slower.
bool Planner::knowsOwnChoice(const PlanRequest& request, const Measurements& measurements) {
  const auto size = measurements.find(request.problem.batch());
  if (size == measurements.end()) return false;
  const ProblemDescriptors descriptors(request.problem);
  for (const KernelOffer& own :
       rankedAlgorithms(request.handle, request.problem, descriptors.get())) {
    if (own.workspaceBytes > request.limitBytes || (request.deterministic && !own.deterministic))
      continue;
    const auto& kernels = size->second.kernels;
    return std::any_of(kernels.begin(), kernels.end(), [&](const Measurement& m) {
      return m.kernel == own.kernel;
    });
  }
  return false;
}

void Planner::report(const PlanRequest& request, const Plan* plan) const {
  if (plan != nullptr) {
    logInfo("{} N={}: {} in {} of {} bytes, {:.3f} ms predicted",
            request.problem.text(),
            request.problem.batch(),
            toText(*plan),
            plan->workspaceBytes,
            request.limitBytes,
            plan->predictedMs);
    return;
  }
  std::string why;
  bool isOrdinary = false;  // a framework's allocator holds all memory most of the time
  store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    if (asked == nullptr) return;
    why = asked->why;
    isOrdinary = asked->memoryWasShort && !asked->failed;
  });
  log(isOrdinary ? LogLevel::kInfo : LogLevel::kWarn,
      "no kernel is known for {} at batch {} within {} bytes of workspace: left to cuDNN{}{}",
      request.problem.text(),
      request.problem.batch(),
      request.limitBytes,
      why.empty() ? "" : ": ",
      why);
}

std::optional<Configuration> Planner::chooseAccurately(const PlanRequest& request,
                                                       Measurements& measurements,
                                                       Measuring measuring) {
  const int miniBatch = request.problem.batch();
  for (;;) {
    auto configuration = chooseConfiguration(
        candidates(measurements, request.deterministic, 0), miniBatch, request.limitBytes);
    if (configuration && isInaccurateSplit(*configuration, measurements, miniBatch))
      configuration = chooseConfiguration(
          accurateCandidates(request, measurements, measuring), miniBatch, request.limitBytes);
    if (configuration ? confirmChoice(request, {*configuration}, measurements)
                      : store_.confirmAll(request, measurements))
      return configuration;
  }
}

/// True: all that the configurations run is as cuDNN says. False: `measurements` have changed, and
/// none of them is unconfirmed any more.
bool Planner::confirmChoice(const PlanRequest& request,
                            const std::vector<Configuration>& configurations,
                            Measurements& measurements) {
  KernelsAtSizes wanted;
  for (const Configuration& configuration : configurations)
    for (const MicroBatches& group : configuration.microBatches)
      wanted[group.batch].push_back(
          measurements.at(group.batch).kernels[static_cast<std::size_t>(group.kernel)].kernel);
  if (store_.confirm(request, wanted, measurements)) return true;
  store_.confirmAll(request, measurements);
  return false;
}

/// An error beyond the math type's is brought into a split only where cuDNN, left alone without a
/// limit, runs such a kernel; undivided it is what cuDNN runs under the same limit.
CandidateTable Planner::accurateCandidates(const PlanRequest& request,
                                           const Measurements& measurements,
                                           Measuring measuring) {
  const int below = picksInaccurate(request, measuring) ? 0 : request.problem.batch();
  return candidates(measurements, request.deterministic, below);
}

bool Planner::picksInaccurate(const PlanRequest& request, Measuring measuring) {
  Settings undivided = *request.settings;
  undivided.batchSizePolicy = BatchSizePolicy::kUndivided;
  PlanRequest whole = request;
  whole.settings = &undivided;
  whole.limitBytes = kNoLimit;
  whole.buffers = nullptr;
  // What is known is looked up sooner than cuDNN ranks its kernels.
  if (fastestIsInaccurate(whole)) return true;
  const ProblemDescriptors descriptors(request.problem);
  const auto ranked = rankedAlgorithms(request.handle, request.problem, descriptors.get());
  if (!ranked.empty() && !ranked.front().accurate) return true;
  // The caller's buffers have no more workspace than the limit, and FindEx may take no other.
  if (measuring != Measuring::kNow || request.buffers != nullptr) return false;
  inquire(whole, Measuring::kNow);
  return fastestIsInaccurate(whole);
}

/// Of the kernels that an answered question has found undivided.
bool Planner::fastestIsInaccurate(const PlanRequest& request) {
  if (!isAnswered(request)) return false;
  const int miniBatch = request.problem.batch();
  Measurements known = store_.measurements(request);
  for (;;) {
    const auto size = known.find(miniBatch);
    if (size == known.end()) return false;
    const Measurement* const fastest = fastestOf(size->second.kernels);
    if (fastest == nullptr || fastest->accurate) return false;
    if (store_.confirm(request, {{miniBatch, {fastest->kernel}}}, known)) return true;
  }
}

Measurements Planner::measurements(const PlanRequest& request, Measuring measuring) {
  const PlanningTime time(statistics_.planningMicroseconds);
  Measurements measurements = require(request, measuring);
  store_.confirmAll(request, measurements);
  return measurements;
}

std::vector<Configuration> Planner::front(const PlanRequest& request, Measuring measuring) {
  const PlanningTime time(statistics_.planningMicroseconds);
  Measurements measurements = require(request, measuring);
  const int miniBatch = request.problem.batch();
  const auto frontOf = [&](const CandidateTable& table) {
    return paretoFront(table, miniBatch, request.limitBytes, kLaunchMs);
  };
  for (;;) {
    auto front = frontOf(candidates(measurements, request.deterministic, 0));
    if (std::any_of(front.begin(), front.end(), [&](const Configuration& point) {
          return isInaccurateSplit(point, measurements, miniBatch);
        }))
      front = frontOf(accurateCandidates(request, measurements, measuring));
    if (front.empty() ? store_.confirmAll(request, measurements)
                      : confirmChoice(request, front, measurements))
      return front;
  }
}

bool Planner::isAnswered(const PlanRequest& request) const {
  return store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->answers(request.limitBytes);
  });
}

/// Empty where not even the undivided kernels could be measured.
Measurements Planner::require(const PlanRequest& request, Measuring measuring) {
  const bool missing = measuring != Measuring::kNever &&
                       store_.use(request, [&](const Known&, const KnownQuestion& asked) {
                         return mustMeasure(request, measuring, asked);
                       });
  if (missing) inquire(request, measuring);
  const bool isKnown = store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->answeredBytes &&
           (measuring != Measuring::kNever || asked->answers(request.limitBytes));
  });
  return isKnown ? store_.measurements(request) : Measurements();
}

Planner& planner() noexcept {
  static Planner& instance = *new Planner;
  return instance;
}

}  // namespace ucudnn
