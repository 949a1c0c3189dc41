#include "planner/planner.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "optimizer/policy.hpp"
#include "optimizer/workspace_reuse.hpp"
#include "planner/conversion.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// Timings repeat within half a percent (median prediction error of misc/results/*.json, H200); two
// of them are compared.
constexpr double kSplitGain = 1.01;

/// Adds its own lifetime to a counter.
class PlanningTime {
 public:
  explicit PlanningTime(std::atomic<long long>& microseconds) : microseconds_(microseconds) {}
  ~PlanningTime() {
    const auto elapsed = std::chrono::steady_clock::now() - begin_;
    microseconds_ += std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
  }
  PlanningTime(const PlanningTime&) = delete;
  PlanningTime& operator=(const PlanningTime&) = delete;

 private:
  std::atomic<long long>& microseconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::vector<int> sizesOf(const PlanRequest& request) {
  return microBatchSizes(request.settings->batchSizePolicy, request.problem.batch());
}

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

}  // namespace

std::size_t Planner::Hash::operator()(const ProblemKey& key) const noexcept {
  return key.problem.hash() + static_cast<std::size_t>(key.machine);
}

std::size_t Planner::Hash::operator()(const PlanKey& key) const noexcept {
  return (*this)(key.problem) ^ (key.limitBytes * 0x9E3779B97F4A7C15u);
}

Planner::PlanKey Planner::planKey(const PlanRequest& request) {
  return {{request.machine, request.problem},
          request.limitBytes,
          request.settings->batchSizePolicy,
          request.deterministic};
}

/// Measurements belong to the problem at any mini-batch.
Planner::ProblemKey Planner::measurementKey(const PlanRequest& request) {
  return {request.machine, request.problem.withBatch(0)};
}

std::optional<std::shared_ptr<const Plan>> Planner::knownPlan(const PlanRequest& request) const {
  const std::lock_guard lock(mutex_);
  const auto plan = plans_.find(planKey(request));
  if (plan == plans_.end()) return std::nullopt;
  return plan->second;
}

std::shared_ptr<const Plan> Planner::plan(const PlanRequest& request) {
  const auto known = knownPlan(request);
  if (known && (*known || request.buffers == nullptr)) return *known;
  const PlanningTime time(statistics_.planningMicroseconds);
  return makePlan(request, require(request), MayMeasure::kYes);
}

std::optional<std::shared_ptr<const Plan>> Planner::planWithoutMeasuring(
    const PlanRequest& request) {
  if (const auto known = knownPlan(request)) return known;
  const PlanningTime time(statistics_.planningMicroseconds);
  const Measurements measurements = lookUp(request);
  if (measurements.size() < sizesOf(request).size()) return std::nullopt;
  return makePlan(request, measurements, MayMeasure::kNo);
}

std::shared_ptr<const Plan> Planner::makePlan(const PlanRequest& request,
                                              const Measurements& measurements,
                                              MayMeasure mayMeasure) {
  const int miniBatch = request.problem.batch();
  auto configuration = chooseConfiguration(
      candidates(measurements, request.deterministic, 0), miniBatch, request.limitBytes);
  if (configuration && isInaccurateSplit(*configuration, measurements, miniBatch))
    configuration = chooseConfiguration(
        accurateCandidates(request, measurements, mayMeasure), miniBatch, request.limitBytes);
  std::shared_ptr<const Plan> plan;
  if (configuration)
    plan = buildPlan(request.problem, request.limitBytes, *configuration, measurements);
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Plan>& place = plans_[planKey(request)];
    if (place) return place;  // another thread was faster: all hold the same plan
    place = plan;
  }
  if (plan) {
    ++statistics_.plans;
    logInfo("{} N={}: {} in {} of {} bytes, {:.3f} ms predicted",
            request.problem.text(),
            request.problem.batch(),
            toText(*plan),
            plan->workspaceBytes,
            request.limitBytes,
            plan->predictedMs);
  } else {
    const std::string why = failure(request);
    logWarn("no kernel is known for {} at batch {} within {} bytes of workspace: left to cuDNN{}{}",
            request.problem.text(),
            request.problem.batch(),
            request.limitBytes,
            why.empty() ? "" : ": ",
            why);
  }
  return plan;
}

/// An error beyond the math type's is brought into a split only where cuDNN, left alone without a
/// limit, runs such a kernel; undivided it is what cuDNN runs under the same limit.
CandidateTable Planner::accurateCandidates(const PlanRequest& request,
                                           const Measurements& measurements,
                                           MayMeasure mayMeasure) {
  const int below = picksInaccurate(request, mayMeasure) ? 0 : request.problem.batch();
  return candidates(measurements, request.deterministic, below);
}

bool Planner::picksInaccurate(const PlanRequest& request, MayMeasure mayMeasure) {
  const ProblemDescriptors descriptors(request.problem);
  const auto picked = pickedAlgorithm(request.handle, request.problem.operation, descriptors.get());
  if (picked && !isAccurate(request.problem, *picked)) return true;
  // Not the heuristics; but measured it may be the fastest.
  Settings undivided = *request.settings;
  undivided.batchSizePolicy = BatchSizePolicy::kUndivided;
  PlanRequest whole = request;
  whole.settings = &undivided;
  whole.limitBytes = std::numeric_limits<std::size_t>::max();
  whole.buffers = nullptr;  // the caller's have no more workspace than the limit
  const Measurements known = mayMeasure == MayMeasure::kYes ? require(whole) : lookUp(whole);
  const auto size = known.find(request.problem.batch());
  if (size == known.end()) return false;
  const Measurement* const fastest = fastestOf(size->second.kernels);
  return fastest != nullptr && !fastest->accurate;
}

std::vector<Measurement> Planner::undivided(const PlanRequest& request) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(measurementKey(request));
  if (known == known_.end()) return {};
  return kernelsWithin(known->second.measurements, request.problem.batch(), request.limitBytes);
}

Measurements Planner::measurements(const PlanRequest& request) {
  const PlanningTime time(statistics_.planningMicroseconds);
  return require(request);
}

std::vector<Configuration> Planner::front(const PlanRequest& request) {
  const PlanningTime time(statistics_.planningMicroseconds);
  const Measurements measurements = require(request);
  const int miniBatch = request.problem.batch();
  const auto frontOf = [&](const CandidateTable& table) {
    return paretoFront(table, miniBatch, request.limitBytes, kLaunchMs);
  };
  auto front = frontOf(candidates(measurements, request.deterministic, 0));
  if (std::any_of(front.begin(), front.end(), [&](const Configuration& point) {
        return isInaccurateSplit(point, measurements, miniBatch);
      }))
    front = frontOf(accurateCandidates(request, measurements, MayMeasure::kYes));
  return front;
}

Measurements Planner::lookUp(const PlanRequest& request) const {
  Measurements found;
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(measurementKey(request));
  if (known == known_.end()) return found;
  for (const int size : sizesOf(request))
    if (const auto at = known->second.measurements.find(size);
        at != known->second.measurements.end() && at->second.covers(request.limitBytes))
      found.insert(*at);
  return found;
}

Measurements Planner::require(const PlanRequest& request) {
  const std::vector<int> sizes = sizesOf(request);
  Measurements found = lookUp(request);
  if (found.size() == sizes.size()) return found;
  const std::lock_guard measuring(measuring_);
  load(request);
  found = lookUp(request);
  std::vector<int> missing;
  for (const int size : sizes)
    if (found.count(size) == 0) missing.push_back(size);
  if (missing.empty()) return found;
  measure(request, sizes);
  return lookUp(request);
}

void Planner::load(const PlanRequest& request) {
  const std::string& path = request.settings->databasePath;
  {
    const std::lock_guard lock(mutex_);
    Known& known = known_[measurementKey(request)];
    if (path.empty() || known.loadedFrom == path) return;
    known.loadedFrom = path;
  }
  const StoredMeasurements stored =
      database(path)->load(machines_.key(request.machine), request.problem.text());
  const Measurements loaded = fromStored(request.problem, stored);
  const std::lock_guard lock(mutex_);
  Measurements& measurements = known_[measurementKey(request)].measurements;
  for (const auto& [size, found] : loaded) {
    statistics_.kernelsLoaded += static_cast<long long>(found.kernels.size());
    addMeasurements(measurements[size], found);
  }
}

void Planner::measure(const PlanRequest& request, const std::vector<int>& sizes) {
  Measurements known;
  {
    const std::lock_guard lock(mutex_);
    known = known_[measurementKey(request)].measurements;
  }
  BenchmarkRequest benchmark;
  benchmark.problem = request.problem;
  benchmark.sizes = sizes;
  benchmark.limitBytes = request.limitBytes;
  benchmark.known = &known;
  benchmark.buffers = request.buffers;
  benchmark.devices = *request.benchmarkDevices;
  benchmark.budgetMs = request.settings->benchmarkBudgetMs;
  BenchmarkResult result = benchmarkKernels(request.handle, benchmark);
  if (result.failures > 0 && result.kernelsMeasured == 0)
    throw Error(CUDNN_STATUS_EXECUTION_FAILED, "every kernel failed that was to be timed");
  const std::string why =
      result.untried == Untried::kMemory ? "not enough device memory" : std::string();
  statistics_.kernelsMeasured += result.kernelsMeasured;
  if (!request.settings->databasePath.empty() && !result.measurements.empty())
    database(request.settings->databasePath)
        ->store(machines_.key(request.machine),
                request.problem.text(),
                toStored(request.problem.operation, result.measurements));
  // What could not be tried for want of memory or time is not tried again in this process: a query
  // costs microseconds from now on. The database does not learn of it.
  const std::lock_guard lock(mutex_);
  known_[measurementKey(request)].failure = why;
  Measurements& measurements = known_[measurementKey(request)].measurements;
  for (const int size : sizes) {
    addMeasurements(measurements[size], result.measurements[size]);
    measurements[size].coveredBytes = request.limitBytes;
  }
}

std::string Planner::failure(const PlanRequest& request) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(measurementKey(request));
  return known == known_.end() ? std::string() : known->second.failure;
}

Database* Planner::database(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Database>& database = databases_[path];
  if (!database) database = std::make_unique<Database>(path);
  return database.get();
}

void Planner::setLimit(int machine, const Problem& problem, std::size_t limitBytes) {
  const std::lock_guard lock(mutex_);
  const auto [place, isNew] = limits_.try_emplace({machine, problem}, limitBytes);
  if (!isNew && place->second == limitBytes) return;
  place->second = limitBytes;
  epoch_.fetch_add(1, std::memory_order_release);
}

std::optional<std::size_t> Planner::limit(int machine, const Problem& problem) const {
  const std::lock_guard lock(mutex_);
  const auto limit = limits_.find({machine, problem});
  if (limit == limits_.end()) return std::nullopt;
  return limit->second;
}

Planner& planner() noexcept {
  static Planner& instance = *new Planner;
  return instance;
}

}  // namespace ucudnn
