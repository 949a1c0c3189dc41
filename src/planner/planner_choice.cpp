// How the planner chooses among configurations: the fastest, no less accurate than what cuDNN
// itself would run, that cuDNN confirms; and what it says of that.
#include <algorithm>
#include <limits>

#include "benchmark/timing_limits.hpp"
#include "kernels/algorithms.hpp"
#include "optimizer/workspace_reuse.hpp"
#include "planner/candidates.hpp"
#include "planner/frozen_plans.hpp"
#include "planner/plan_builder.hpp"
#include "planner/planner.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

bool isInaccurateSplit(const Configuration& configuration,
                       const Measurements& measurements,
                       int miniBatch) {
  const auto& groups = configuration.microBatches;
  return std::any_of(groups.begin(), groups.end(), [&](const MicroBatches& group) {
    return group.batch < miniBatch && !measurementOf(group, measurements).accurate;
  });
}

/// A graph's launch takes time of its own.
void addReplay(Configuration& configuration, Pace pace) {
  if (pace == Pace::kDevice && isDivided(configuration)) configuration.timeMs += kReplayMs;
}

/// Drops points that are no faster than one with less workspace.
void keepFront(std::vector<Configuration>& front) {
  double fastestMs = std::numeric_limits<double>::infinity();
  front.erase(std::remove_if(front.begin(),
                             front.end(),
                             [&](const Configuration& point) {
                               if (point.timeMs >= fastestMs) return true;
                               fastestMs = point.timeMs;
                               return false;
                             }),
              front.end());
}

/// Of what takes no longer than `mostMs` the one with the least workspace, if `fastest` of the
/// table has so much that it matters.
Configuration lean(const CandidateTable& table,
                   const Configuration& fastest,
                   const WorkspaceRoom& room,
                   int miniBatch,
                   double mostMs) {
  if (fastest.workspaceBytes < kWorthSaving) return fastest;
  return leanConfiguration(table, miniBatch, room, kLaunchMs, mostMs).value_or(fastest);
}

/// The fastest configuration; but a split has to win more than the noise of the timings against the
/// undivided one, and much workspace more than that against less.
std::optional<Configuration> chooseConfiguration(const CandidateTable& table,
                                                 int miniBatch,
                                                 const WorkspaceRoom& room,
                                                 Pace pace) {
  const auto fastest = fastestConfiguration(table, miniBatch, room, kLaunchMs);
  if (!fastest) return std::nullopt;
  if (const auto whole = table.find(miniBatch); whole != table.end()) {
    Configuration launched = *fastest;
    addReplay(launched, pace);
    const double mostMs = launched.timeMs * kSplitGain;
    const auto undivided = fastestConfiguration({*whole}, miniBatch, room, kLaunchMs);
    if (undivided && undivided->timeMs <= mostMs)
      return lean({*whole}, *undivided, room, miniBatch, mostMs);
  }
  Configuration chosen = lean(table, *fastest, room, miniBatch, fastest->timeMs * kSplitGain);
  addReplay(chosen, pace);
  return chosen;
}

}  // namespace

std::optional<Configuration> Planner::chooseAccurately(const PlanRequest& request,
                                                       const Measurements& measurements,
                                                       Measuring measuring,
                                                       Pace pace) {
  const int miniBatch = request.problem.batch();
  const auto choose = [&](const CandidateTable& table) {
    return chooseConfiguration(table, miniBatch, request.room(), pace);
  };
  auto configuration = choose(candidates(request, measurements, 0, pace));
  if (configuration && !request.withErrors() &&
      isInaccurateSplit(*configuration, measurements, miniBatch))
    configuration = choose(accurateCandidates(request, measurements, measuring, pace));
  return configuration;
}

/// True: all that the configurations run is as cuDNN says; of a plan for any call it is not asked.
/// False: `measurements` have changed, and cuDNN has been asked about all of them.
bool Planner::confirmChoice(const PlanRequest& request,
                            const std::vector<Configuration>& configurations,
                            Measurements& measurements) {
  // What runs calls that suit no engine is confirmed by the first of them.
  if (request.anyCall) return true;
  KernelsAtSizes wanted;
  for (const Configuration& configuration : configurations)
    for (const MicroBatches& group : configuration.microBatches)
      wanted[group.batch].push_back(measurementOf(group, measurements).kernel);
  using Asking = MeasurementStore::Asking;
  const Asking asking = configurations.size() == 1 ? Asking::kOfOnePlan : Asking::kAll;
  if (store_.confirm(request, wanted, measurements, asking)) return true;
  store_.confirmAll(request, measurements);
  return false;
}

/// An error beyond the math type's is brought into a split only where cuDNN, left alone without a
/// limit, runs such a kernel; undivided it is what cuDNN runs under the same limit.
CandidateTable Planner::accurateCandidates(const PlanRequest& request,
                                           const Measurements& measurements,
                                           Measuring measuring,
                                           Pace pace) {
  const int below = picksInaccurate(request, measuring) ? 0 : request.problem.batch();
  return candidates(request, measurements, below, pace);
}

bool Planner::picksInaccurate(const PlanRequest& request, Measuring measuring) {
  if (const auto ranked = ranksInaccurateFirst(request)) return *ranked;
  Settings undivided = *request.settings;
  undivided.batchSizePolicy = BatchSizePolicy::kUndivided;
  PlanRequest whole = request;
  whole.settings = &undivided;
  whole.limitBytes = kNoLimit;
  whole.buffers = nullptr;
  if (fastestIsInaccurate(whole)) return true;
  // The caller's buffers have no more workspace than the limit, and FindEx may take no other.
  if (measuring != Measuring::kNow || request.buffers != nullptr) return false;
  inquire(whole, Measuring::kNow);
  return fastestIsInaccurate(whole);
}

std::optional<bool> Planner::ranksInaccurateFirst(const PlanRequest& request) {
  if (store_.ranksAccurateFirst(request)) return false;
  PreparedKernels own(request.handle, request.problem);
  const auto& ranked = (request.prepared != nullptr ? *request.prepared : own).ranked();
  if (ranked.empty()) return std::nullopt;
  if (ranked.front().accurate) store_.addAccurateFirst(request);
  return !ranked.front().accurate;
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

std::vector<Configuration> Planner::front(const PlanRequest& request,
                                          Measuring measuring,
                                          const std::vector<std::size_t>& limits) {
  const PlanningTime time(statistics_.planningMicroseconds);
  if (request.frozen != nullptr) {
    auto frozen = request.frozen->front(request, machines_);
    keepFront(frozen);
    if (!frozen.empty() || request.settings->plansStrict) return frozen;
  }
  PlanRequest smaller = request;
  for (const std::size_t bytes : limits) {
    smaller.limitBytes = bytes;
    require(smaller, measuring);
  }
  Measurements measurements = require(request, measuring);
  const int miniBatch = request.problem.batch();
  const Pace pace = request.replay() == Replay::kWhereRepeated ? Pace::kDevice : Pace::kHost;
  const auto frontOf = [&](const CandidateTable& table) {
    auto front = paretoFront(table, miniBatch, request.room(), kLaunchMs);
    for (Configuration& point : front) addReplay(point, pace);
    keepFront(front);
    return front;
  };
  for (;;) {
    auto front = frontOf(candidates(request, measurements, 0, pace));
    if (!request.withErrors() &&
        std::any_of(front.begin(), front.end(), [&](const Configuration& point) {
          return isInaccurateSplit(point, measurements, miniBatch);
        }))
      front = frontOf(accurateCandidates(request, measurements, measuring, pace));
    if (front.empty() ? store_.confirmAll(request, measurements)
                      : confirmChoice(request, front, measurements))
      return front;
  }
}

/// Whether what cuDNN itself would run within the limit, by its heuristics, is among what was
/// measured, or there is nothing: a plan is then no slower. REQUIRES: `prepared` is not null.
bool Planner::knowsOwnChoice(const PlanRequest& request, const Measurements& measurements) {
  if (measurements.empty()) return false;
  const auto size = measurements.find(request.problem.batch());
  for (const KernelOffer& own : request.prepared->ranked()) {
    if (own.workspaceBytes > request.limitBytes || (request.deterministic && !own.deterministic))
      continue;
    if (size == measurements.end()) return false;
    const auto& kernels = size->second.kernels;
    return std::any_of(kernels.begin(), kernels.end(), [&](const Measurement& m) {
      return m.kernel == own.kernel;
    });
  }
  return true;
}

/// The least error that is known of a kernel; infinite where none is asked for.
double Planner::leastErrorWithin(const PlanRequest& request) const {
  double least = kUnknownError;
  if (!request.withErrors()) return least;
  for (const auto& [batch, size] : store_.measurements(request))
    for (const Measurement& m : size.kernels)
      if (m.workspaceBytes <= request.limitBytes) least = std::min(least, m.error);
  return least;
}

void Planner::report(const PlanRequest& request, const Plan* plan) const {
  if (plan != nullptr) {
    if (!Log::instance().enabled(LogLevel::kInfo)) return;
    logInfo("{} N={}: {}{} in {} of {} bytes, {:.3f} ms predicted{}",
            request.problem.text(),
            request.problem.batch(),
            toText(*plan),
            plan->enqueued ? " (" + toText(*plan->enqueued) + " until a call repeats)" : "",
            plan->workspaceBytes,
            request.limitBytes,
            plan->predictedMs,
            plan->replayed ? ", replayed" : "");
    return;
  }
  const double maxError = request.settings->maxError;
  const double least = leastErrorWithin(request);
  if (least < kUnknownError && least * kErrorSpread > maxError) {
    logWarn(
        "no kernel for {} at batch {} within {} bytes of workspace is known to be within {:.3g} "
        "(UCUDNN_MAX_ERROR), the most accurate to {:.3g}: left to cuDNN",
        request.problem.text(),
        request.problem.batch(),
        request.limitBytes,
        maxError,
        least * kErrorSpread);
    return;
  }
  std::string why;
  store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    if (asked != nullptr) why = asked->why;
  });
  logInfo("no kernel is known for {} at batch {} within {} bytes of workspace: left to cuDNN{}{}",
          request.problem.text(),
          request.problem.batch(),
          request.limitBytes,
          why.empty() ? "" : ": ",
          why);
}

}  // namespace ucudnn
