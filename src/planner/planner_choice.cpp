// How the planner chooses among configurations: the fastest that is confirmed, and no less accurate
// than what cuDNN itself would run.
#include <algorithm>
#include <limits>

#include "kernels/algorithms.hpp"
#include "optimizer/workspace_reuse.hpp"
#include "planner/conversion.hpp"
#include "planner/planner.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// Timings repeat within half a percent (median prediction error of misc/results/*.json, H200); two
// of them are compared.
constexpr double kSplitGain = 1.01;

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

}  // namespace

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

}  // namespace ucudnn
