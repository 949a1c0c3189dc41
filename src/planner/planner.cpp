#include "planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "optimizer/workspace_reuse.hpp"
#include "planner/belief.hpp"
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
  auto fastest = fastestConfiguration(table, miniBatch, limitBytes, kLaunchMs);
  const auto whole = table.find(miniBatch);
  if (!fastest || whole == table.end()) return fastest;
  auto undivided = fastestConfiguration({*whole}, miniBatch, limitBytes, kLaunchMs);
  return undivided && undivided->timeMs <= fastest->timeMs * kSplitGain ? undivided : fastest;
}

bool isSamePlan(const Plan* a, const Plan* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->workspaceBytes == b->workspaceBytes && a->predictedMs == b->predictedMs &&
         a->algorithm == b->algorithm && a->algorithmBytes == b->algorithmBytes &&
         toText(*a) == toText(*b);
}

KernelsAtSizes kernelsOf(const Measurements& measurements) {
  KernelsAtSizes kernels;
  for (const auto& [batch, size] : measurements)
    for (const Measurement& m : size.kernels) kernels[batch].push_back(m.kernel);
  return kernels;
}

/// Those known at the mini-batch.
KernelsAtSizes kernelsUndivided(const Measurements& measurements, int miniBatch) {
  const auto size = measurements.find(miniBatch);
  return size == measurements.end() ? KernelsAtSizes() : kernelsOf({*size});
}

}  // namespace

/// Measurements belong to the problem at any mini-batch.
KnownKey Planner::knownKey(const PlanRequest& request) {
  return {request.machine, request.problem.withBatch(0)};
}

const KnownQuestion* Planner::findQuestion(const PlanRequest& request) const {
  const Known* const known = known_.peek(knownKey(request));
  if (known == nullptr) return nullptr;
  return known->find(request.problem.batch(), request.settings->batchSizePolicy);
}

KnownQuestion& Planner::question(const PlanRequest& request) {
  return known_[knownKey(request)].question(request.problem.batch(),
                                            request.settings->batchSizePolicy);
}

void Planner::addConvolutionTime(double timeMs) {
  const std::lock_guard lock(mutex_);
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
  {
    const std::lock_guard lock(mutex_);
    const KnownQuestion* const asked = findQuestion(request);
    if (asked == nullptr || !asked->answers(request.limitBytes)) return std::nullopt;
  }
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
  const std::lock_guard lock(mutex_);
  if (measuring == Measuring::kNever && findQuestion(request) == nullptr) return PlanAnswer{};
  KnownQuestion& asked = question(request);
  if (measuring == Measuring::kWhenItPays)
    investment_.addCall(asked.calls++, estimatedMs(request.problem));
  if (mustMeasure(request, measuring, asked)) return std::nullopt;
  const Known& problem = known_[knownKey(request)];
  const bool mayLoad =
      measuring != Measuring::kNever && problem.mayLoad(request.settings->databasePath);
  if (mayLoad && problem.wasLocked()) return std::nullopt;
  if (const KnownPlan* const known = asked.find(request.deterministic, request.limitBytes))
    return PlanAnswer{known->plan, known->lasts};
  // The database may hold the answer; else what has not been measured has no plan.
  if (!asked.answeredBytes && !asked.isIncomplete() && !mayLoad) return PlanAnswer{};
  return std::nullopt;
}

void Planner::inquire(const PlanRequest& request, Measuring measuring) {
  if (loadAnswer(request)) return;
  {
    const std::lock_guard lock(mutex_);
    if (!mustMeasure(request, measuring, question(request))) return;
  }
  const Turn turn(turns_, request.device, measuring == Measuring::kNow);
  if (!turn.isTaken() && measuring != Measuring::kNow) return;
  {
    const std::lock_guard lock(mutex_);  // another thread may have measured meanwhile
    if (!mustMeasure(request, measuring, question(request))) return;
  }
  measure(request);
}

/// True: the database has answered the question.
bool Planner::loadAnswer(const PlanRequest& request) {
  const std::string& path = request.settings->databasePath;
  {
    const std::lock_guard lock(mutex_);
    Known& known = known_[knownKey(request)];
    if (!known.mayLoad(path)) return false;
    known.loadedFrom = path;
  }
  const Loaded loaded = load(path, request);
  const std::lock_guard lock(mutex_);
  Known& known = known_[knownKey(request)];
  if (loaded.isLocked) {
    known.loadedFrom.clear();
    known.loadAgainAt = Clock::now() + kShortestRetry;
    return false;
  }
  for (const auto& [size, found] : loaded.measurements) {
    statistics_.kernelsLoaded += static_cast<long long>(found.kernels.size());
    addUnconfirmed(known.measurements[size], found);
  }
  for (const auto& [policy, miniBatch, answeredBytes] : loaded.answered) {
    KnownQuestion& asked = known.question(miniBatch, policy);
    if (!asked.answers(answeredBytes)) asked.answeredBytes = answeredBytes;
  }
  if (known.wasLocked()) known.dropPlans();  // made without the database
  known.loadAgainAt = {};
  return question(request).answers(request.limitBytes);
}

/// What is missing because it can't be true is measured, so the file has answered nothing.
Planner::Loaded Planner::load(const std::string& path, const PlanRequest& request) {
  Loaded loaded;
  Database& file = *database(path);
  const MachineKey machine = machines_.key(request.machine);
  std::vector<std::string> texts{request.problem.text()};
  for (const BatchSizePolicy policy : kBatchSizePolicies)
    texts.push_back(questionText(request.problem, policy));
  const std::vector<StoredMeasurements> stored = file.load(machine, texts, &loaded.isLocked);
  if (stored.empty()) return loaded;
  int refused = 0;
  loaded.measurements = fromStored(request.problem, stored.front(), &refused);
  if (refused > 0) {
    file.warnOfLies();
    return loaded;
  }
  for (std::size_t i = 1; i < stored.size(); ++i)
    for (const auto& [miniBatch, size] : stored[i]) {
      const auto undivided = loaded.measurements.find(miniBatch);
      if (undivided != loaded.measurements.end() && !undivided->second.kernels.empty())
        loaded.answered.push_back({kBatchSizePolicies[i - 1], miniBatch, size.coveredBytes});
    }
  return loaded;
}

void Planner::measure(const PlanRequest& request) {
  Measurements known;
  KernelsAtSizes refused;
  {
    const std::lock_guard lock(mutex_);
    known = known_[knownKey(request)].measurements;
    refused = known_[knownKey(request)].refused;
  }
  confirmKernels(request, kernelsOf(known), known);
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
  {
    const std::lock_guard lock(mutex_);
    const std::chrono::duration<double, std::milli> wall = Clock::now() - begin;
    investment_.addCost(estimatedMs(request.problem), std::max(result.spentMs, wall.count()));
    KnownQuestion& asked = question(request);
    asked.retryAt = Clock::now() +
                    std::max<Clock::duration>(kRetryAfter * (Clock::now() - begin), kShortestRetry);
  }
  note(request, result, why);
}

/// What could not be tried for want of time is not tried again in this process; the database does
/// not learn of it.
void Planner::note(const PlanRequest& request,
                   const BenchmarkResult& result,
                   const std::string& why) {
  const bool isAnswered = result.undividedMeasured;
  const std::size_t answeredBytes = result.everyOfferFits ? kNoLimit : request.limitBytes;
  {
    const std::lock_guard lock(mutex_);
    Known& known = known_[knownKey(request)];
    for (const auto& [size, found] : result.measurements)
      addMeasurements(known.measurements[size], found);
    for (const auto& [size, kernels] : result.refused) {
      std::vector<Kernel>& place = known.refused[size];
      place.insert(place.end(), kernels.begin(), kernels.end());
    }
    KnownQuestion& asked = question(request);
    asked.memoryWasShort = result.untried == Untried::kMemory;
    asked.failed = result.failures > 0 || (!isAnswered && !asked.memoryWasShort);
    asked.why = why;
    if (isAnswered && !asked.answers(answeredBytes)) asked.answeredBytes = answeredBytes;
    asked.dropPlans();
  }
  const std::string& path = request.settings->databasePath;
  if (path.empty()) return;
  const MachineKey machine = machines_.key(request.machine);
  if (!result.measurements.empty())
    database(path)->store(
        machine, request.problem.text(), toStored(request.problem.operation, result.measurements));
  if (isAnswered && result.untried == Untried::kNone && result.failures == 0)
    database(path)->store(machine,
                          questionText(request.problem, request.settings->batchSizePolicy),
                          {{request.problem.batch(), {answeredBytes, {}}}});
}

/// The plan, all that it runs or names confirmed.
std::shared_ptr<const Plan> Planner::choosePlan(const PlanRequest& request, Measuring measuring) {
  bool isAnswered = false;
  {
    const std::lock_guard lock(mutex_);
    isAnswered = question(request).answeredBytes.has_value();
  }
  Measurements measurements = lookUp(request);
  if (!isAnswered && !knowsOwnChoice(request, measurements)) return nullptr;
  for (;;) {
    const auto configuration = chooseAccurately(request, measurements, measuring);
    if (!configuration) return nullptr;
    auto plan = buildPlan(
        request.problem, request.limitBytes, *configuration, measurements, request.deterministic);
    const Kernel named{plan->algorithm, request.problem.mathType};
    if (confirmKernels(request, {{request.problem.batch(), {named}}}, measurements)) return plan;
  }
}

PlanAnswer Planner::makePlan(const PlanRequest& request, Measuring measuring) {
  bool lasts = false;
  {
    const std::lock_guard lock(mutex_);
    const KnownQuestion& asked = question(request);
    lasts = asked.answers(request.limitBytes) && !asked.isIncomplete();
  }
  const std::shared_ptr<const Plan> plan = choosePlan(request, measuring);
  KnownPlan made;
  made.deterministic = request.deterministic;
  made.highBytes = request.limitBytes;
  made.lowBytes = plan ? std::max(plan->workspaceBytes, plan->algorithmBytes) : 0;
  made.lasts = lasts;
  made.plan = plan;
  bool isNew = true;
  {
    const std::lock_guard lock(mutex_);
    KnownQuestion& place = question(request);
    if (const KnownPlan* const other = place.find(request.deterministic, request.limitBytes))
      return {other->plan, other->lasts};  // another thread was faster: all hold the same plan
    for (const auto* list : {&place.plans, &place.formerPlans})
      for (const KnownPlan& former : *list)
        if (isNew && former.deterministic == made.deterministic &&
            isSamePlan(former.plan.get(), made.plan.get())) {
          made.plan = former.plan;
          isNew = false;
        }
    if (place.plans.size() >= kMostPlans) place.plans.erase(place.plans.begin());
    place.plans.push_back(made);
  }
  if (isNew) report(request, made.plan.get());
  if (isNew && made.plan) ++statistics_.plans;
  return {made.plan, made.lasts};
}

/// Whether what cuDNN itself would run within the limit, by its heuristics, is among what was
/// measured: a plan is then no slower.
bool Planner::knowsOwnChoice(const PlanRequest& request, const Measurements& measurements) {
  const auto size = measurements.find(request.problem.batch());
  if (size == measurements.end()) return false;
  const ProblemDescriptors descriptors(request.problem);
  for (const KernelOffer& own : rankedKernels(request.handle, request.problem, descriptors.get())) {
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
  {
    const std::lock_guard lock(mutex_);
    const KnownQuestion* const asked = findQuestion(request);
    if (asked != nullptr) why = asked->why;
    isOrdinary = asked != nullptr && asked->memoryWasShort && !asked->failed;
  }
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
                      : confirmKernels(request, kernelsOf(measurements), measurements))
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
  if (confirmKernels(request, wanted, measurements)) return true;
  confirmKernels(request, kernelsOf(measurements), measurements);
  return false;
}

/// Only what a plan uses is asked about: a question to cuDNN takes up to 20 us, and a lie that
/// makes a kernel look worse than it is makes a plan slow at worst.
bool Planner::confirmKernels(const PlanRequest& request,
                             const KernelsAtSizes& wanted,
                             Measurements& measurements) {
  bool isAsStored = true;
  for (const auto& [batch, kernels] : wanted) {
    const auto size = measurements.find(batch);
    if (size == measurements.end()) continue;
    int failures = 0;
    const bool isTrue =
        confirm(request.handle, request.problem, batch, kernels, size->second, &failures);
    isAsStored = isAsStored && isTrue;
    if (failures > 0) continue;  // to be asked again
    const std::lock_guard lock(mutex_);
    addConfirmed(known_[knownKey(request)].measurements[batch], kernels, size->second);
  }
  if (!isAsStored) database(request.settings->databasePath)->warnOfLies();
  return isAsStored;
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
  const ProblemDescriptors descriptors(request.problem);
  const auto ranked = rankedKernels(request.handle, request.problem, descriptors.get());
  if (!ranked.empty() && !ranked.front().accurate) return true;
  // Not the heuristics; but measured it may be the fastest.
  Settings undivided = *request.settings;
  undivided.batchSizePolicy = BatchSizePolicy::kUndivided;
  PlanRequest whole = request;
  whole.settings = &undivided;
  whole.limitBytes = kNoLimit;
  whole.buffers = nullptr;
  // The caller's buffers have no more workspace than the limit, and FindEx may take no other.
  const bool mayMeasure = measuring == Measuring::kNow && request.buffers == nullptr;
  if (mayMeasure) inquire(whole, Measuring::kNow);
  {
    const std::lock_guard lock(mutex_);
    const KnownQuestion* const asked = findQuestion(whole);
    if (asked == nullptr || !asked->answers(kNoLimit)) return false;
  }
  Measurements known = lookUp(whole);
  confirmKernels(whole, kernelsUndivided(known, request.problem.batch()), known);
  const auto size = known.find(request.problem.batch());
  if (size == known.end()) return false;
  const Measurement* const fastest = fastestOf(size->second.kernels);
  return fastest != nullptr && !fastest->accurate;
}

std::vector<Measurement> Planner::undivided(const PlanRequest& request) {
  const int miniBatch = request.problem.batch();
  Measurements known;
  {
    const std::lock_guard lock(mutex_);
    const Known* const found = known_.peek(knownKey(request));
    if (found == nullptr) return {};
    known[miniBatch].kernels = kernelsWithin(found->measurements, miniBatch, request.limitBytes);
  }
  confirmKernels(request, kernelsOf(known), known);
  return kernelsWithin(known, miniBatch, request.limitBytes);
}

Measurements Planner::measurements(const PlanRequest& request, Measuring measuring) {
  const PlanningTime time(statistics_.planningMicroseconds);
  Measurements measurements = require(request, measuring);
  confirmKernels(request, kernelsOf(measurements), measurements);
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
    if (front.empty() ? confirmKernels(request, kernelsOf(measurements), measurements)
                      : confirmChoice(request, front, measurements))
      return front;
  }
}

/// What is known at the sizes of the policy.
Measurements Planner::lookUp(const PlanRequest& request) const {
  Measurements found;
  const std::lock_guard lock(mutex_);
  const Known* const known = known_.peek(knownKey(request));
  if (known == nullptr) return found;
  for (const int size : sizesFor(request.problem, request.settings->batchSizePolicy))
    if (const auto at = known->measurements.find(size); at != known->measurements.end())
      found.insert(*at);
  return found;
}

/// Empty where not even the undivided kernels could be measured.
Measurements Planner::require(const PlanRequest& request, Measuring measuring) {
  bool missing = false;
  if (measuring != Measuring::kNever) {
    const std::lock_guard lock(mutex_);
    missing = mustMeasure(request, measuring, question(request));
  }
  if (missing) inquire(request, measuring);
  {
    const std::lock_guard lock(mutex_);
    const KnownQuestion* const asked = findQuestion(request);
    if (asked == nullptr || !asked->answeredBytes) return {};
    if (measuring == Measuring::kNever && !asked->answers(request.limitBytes)) return {};
  }
  return lookUp(request);
}

Database* Planner::database(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Database>& database = databases_[path];
  if (!database) database = std::make_unique<Database>(path);
  return database.get();
}

Planner& planner() noexcept {
  static Planner& instance = *new Planner;
  return instance;
}

}  // namespace ucudnn
