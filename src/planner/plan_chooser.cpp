#include "planner/plan_chooser.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "benchmark/measurement.hpp"
#include "benchmark/timing_limits.hpp"
#include "optimizer/workspace_reuse.hpp"
#include "planner/candidates.hpp"
#include "planner/confirmation.hpp"
#include "planner/plan_builder.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

/// Repeats `attempt` until it returns something. An empty result says that cuDNN has denied a
/// kernel, which is not chosen again, so this ends. Only chosen kernels are asked about: cuDNN
/// takes 30 to 300 us to answer, and the optimizer less to choose anew.
template <typename Attempt>
auto untilConfirmed(Attempt attempt) {
  for (;;)
    if (auto made = attempt()) return *std::move(made);
}

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

/// The configuration with the least workspace that takes at most `mostMs`, if `fastest` has so much
/// that it matters. `halves`: a slightly slower one is taken if it needs at most half of that.
Configuration lean(const CandidateTable& table,
                   const Configuration& fastest,
                   const WorkspaceRoom& room,
                   int miniBatch,
                   double mostMs,
                   bool halves) {
  const auto within = [&](const Configuration& other, double ms) {
    if (other.workspaceBytes < kWorthSaving) return other;
    return leanConfiguration(table, miniBatch, room, kLaunchMs, ms).value_or(other);
  };
  Configuration chosen = within(fastest, mostMs);
  if (!halves || chosen.workspaceBytes < kWorthHalving) return chosen;
  Configuration half = within(chosen, mostMs * kHalfWorkspaceGain / kSplitGain);
  return half.workspaceBytes <= chosen.workspaceBytes / 2 ? half : chosen;
}

/// The fastest configuration. But a split must beat the undivided one by more than the noise of the
/// timings, and a large workspace must beat a smaller one by more than that.
std::optional<Configuration> chooseConfiguration(
    const CandidateTable& table, int miniBatch, const WorkspaceRoom& room, Pace pace, bool halves) {
  const auto fastest = fastestConfiguration(table, miniBatch, room, kLaunchMs);
  if (!fastest) return std::nullopt;
  if (const auto whole = table.find(miniBatch); whole != table.end()) {
    Configuration launched = *fastest;
    addReplay(launched, pace);
    const double mostMs = launched.timeMs * kSplitGain;
    const auto undivided = fastestConfiguration({*whole}, miniBatch, room, kLaunchMs);
    if (undivided && undivided->timeMs <= mostMs)
      return lean({*whole}, *undivided, room, miniBatch, mostMs, halves);
  }
  Configuration chosen =
      lean(table, *fastest, room, miniBatch, fastest->timeMs * kSplitGain, halves);
  addReplay(chosen, pace);
  return chosen;
}

}  // namespace

bool gainsOver(const PlanRequest& request,
               double planMs,
               std::size_t workspaceBytes,
               const Measurement& own) noexcept {
  const double ownMs = std::min(own.timeMs, own.deviceMs) + kLaunchMs;
  if (planMs * kSplitGain <= ownMs && planMs + kLeastGainMs <= ownMs) return true;
  return request.mayTellLess && planMs <= ownMs * kSplitGain &&
         isWorthTelling(workspaceBytes, request.own->workspaceBytes);
}

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

std::shared_ptr<const Plan> PlanChooser::plan() {
  return untilConfirmed([&]() -> std::optional<Chosen> {
    try {
      auto plan = tryPlan();
      if (plan && *plan && !passes(**plan)) return std::nullopt;
      return plan;
    } catch (const RefusedKernel& refused) {  // a database may have it of another installation
      logInfo("{} N={} {}: {}",
              request_.problem.text(),
              refused.batch,
              toText(request_.problem.operation, refused.kernel),
              refused.what());
      store_.refuse(request_, refused.batch, refused.kernel);
      measurements_ = store_.measurements(request_);
      return std::nullopt;
    }
  });
}

/// False: a kernel of the plan has failed its check, and `measurements_` have it no more.
bool PlanChooser::passes(const Plan& plan) {
  const auto outcome = checks_.check(request_, plan, measuring_);
  isChecked_ = outcome == KernelChecks::Outcome::kPassed;
  if (outcome != KernelChecks::Outcome::kFailed) return true;
  measurements_ = store_.measurements(request_);
  return false;
}

std::vector<Configuration> PlanChooser::front() {
  return untilConfirmed([&] { return tryFront(); });
}

/// Empty: cuDNN has denied a kernel, and `measurements_` have changed. Null: there is no plan.
std::optional<PlanChooser::Chosen> PlanChooser::tryPlan() {
  const bool wasAsked = store_.read(request_, [](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->isAnswered();
  });
  if (!wasAsked && !knowsOwnChoice()) return nullptr;
  const auto pair = choosePair(request_);
  // To build an engine takes 5 ms, and if it is compiled 0.3 s.
  ownIsAsFast_ = pair && losesToOwn(*pair);
  isLeftToCalls_ = pair && !ownIsAsFast_ && mayBeLeftToCalls(*pair);
  if (ownIsAsFast_ || isLeftToCalls_) return nullptr;
  auto plan = tryPair(request_, pair);
  if (!plan || !*plan) return plan;
  if (!(*plan)->of(CallKind::kOther)) {  // a query does not know which calls follow
    const PlanRequest any = request_.forAnyCall();
    auto general = tryPair(any, choosePair(any));
    if (!general) return std::nullopt;
    if (!*general && !request_.suitsEngines) return nullptr;
    if (*general) {
      auto both = withGeneral(**plan, *std::move(general));
      nameAlgorithm(*both, request_, measurements_);  // they may differ in determinism
      plan = std::move(both);
    }
  }
  const Kernel named{(*plan)->algorithm, request_.problem.mathType};
  const KernelsAtSizes wanted = {{request_.problem.batch(), {named}}};
  if (!confirmKernels(store_, request_, prepared_, wanted, measurements_)) return std::nullopt;
  return plan;
}

/// The configuration for calls that repeat; another one for calls that don't, if that gains. If a
/// graph gains nothing, all calls run the configuration that is fastest when enqueued. Empty: there
/// is none.
std::optional<PlanChooser::Pair> PlanChooser::choosePair(const PlanRequest& request) {
  const auto enqueued = choose(request, Pace::kHost);
  if (!enqueued) return std::nullopt;
  const auto replayed =
      request.replay() == Replay::kWhereRepeated ? choose(request, Pace::kDevice) : std::nullopt;
  const bool isOne = replayed && replayed->microBatches == enqueued->microBatches;
  const bool gains = isOne || (replayed && paysToReplay(*replayed, measurements_));
  const bool isPair = gains && enqueued->timeMs * kSplitGain < enqueuedMs(*replayed, measurements_);
  // A split would be replayed even if it gains less than its graph's launch costs.
  const bool runsReplayed = gains || (replayed && paysToReplay(*enqueued, measurements_));
  Pair pair{runsReplayed ? *replayed : *enqueued, gains ? Pace::kDevice : Pace::kHost, {}};
  if (isPair) pair.enqueued = enqueued;
  return pair;
}

/// Whether the client's own kernel runs, and takes no longer than the pair, as measured.
bool PlanChooser::losesToOwn(const Pair& pair) const {
  if (!request_.runsOwn() || !request_.suitsEngines) return false;
  const Measurement* const own =
      findKernel(measurements_, request_.problem.batch(), request_.own->kernel);
  if (own == nullptr) return false;
  const bool mayReplay = request_.replay() != Replay::kNever;
  double ms = predictedMs(pair.main, pair.pace, mayReplay, measurements_);
  if (pair.enqueued)
    ms = std::max(ms, predictedMs(*pair.enqueued, Pace::kHost, mayReplay, measurements_));
  return !gainsOver(request_, ms, pair.workspaceBytes(), *own);
}

/// Whether a client that asks for workspace gets along with that of its own kernel, because the
/// pair saves little of it. Then calls have the plan made beside them.
bool PlanChooser::mayBeLeftToCalls(const Pair& pair) const {
  return measuring_ == Measuring::kIfKnown && request_.mayTellLess && request_.runsOwn() &&
         request_.mayPlanInBackground() &&
         !isWorthTelling(pair.workspaceBytes(), request_.own->workspaceBytes);
}

/// The plan of a pair that was chosen for the request. Returns empty or null as `tryPlan` does.
std::optional<PlanChooser::Chosen> PlanChooser::tryPair(const PlanRequest& request,
                                                        const std::optional<Pair>& pair) {
  if (!pair && !confirmAll(store_, request, prepared_, measurements_)) return std::nullopt;
  if (!pair) return nullptr;
  if (!confirm(request, {pair->main}) || (pair->enqueued && !confirm(request, {*pair->enqueued})))
    return std::nullopt;
  const auto build = [&](const Configuration& configuration, Pace pace, Chosen other = nullptr) {
    return buildPlan(prepared_, request, configuration, pace, measurements_, std::move(other));
  };
  if (pair->enqueued) return build(pair->main, Pace::kDevice, build(*pair->enqueued, Pace::kHost));
  return build(pair->main, pair->pace);
}

/// Empty or null as for `tryPlan`.
std::optional<std::vector<Configuration>> PlanChooser::tryFront() {
  const Pace pace = request_.replay() == Replay::kWhereRepeated ? Pace::kDevice : Pace::kHost;
  const int miniBatch = request_.problem.batch();
  const auto frontOf = [&](int accurateBelow) {
    const CandidateTable table = candidates(request_, measurements_, accurateBelow, pace);
    auto front = paretoFront(table, miniBatch, request_.room(), kLaunchMs);
    for (Configuration& point : front) addReplay(point, pace);
    keepFront(front);
    return front;
  };
  auto front = frontOf(0);
  if (std::any_of(front.begin(), front.end(), [&](const Configuration& point) {
        return isTooInaccurate(point);
      }))
    front = frontOf(miniBatch);
  const bool isConfirmed = front.empty() ? confirmAll(store_, request_, prepared_, measurements_)
                                         : confirm(request_, front);
  return isConfirmed ? std::optional(std::move(front)) : std::nullopt;
}

std::optional<Configuration> PlanChooser::choose(const PlanRequest& request, Pace pace) {
  const int miniBatch = request.problem.batch();
  const auto among = [&](int accurateBelow) {
    const CandidateTable table = candidates(request, measurements_, accurateBelow, pace);
    return chooseConfiguration(table, miniBatch, request.room(), pace, request.mayTellLess);
  };
  auto chosen = among(0);
  if (chosen && isTooInaccurate(*chosen)) chosen = among(miniBatch);
  return chosen;
}

/// Returns true if cuDNN confirms all kernels of the configurations. If not, cuDNN has been asked
/// about all measurements, and `measurements_` have changed.
bool PlanChooser::confirm(const PlanRequest& request,
                          const std::vector<Configuration>& configurations) {
  // The first call that suits no engine confirms its plan itself.
  if (request.calls == CallKind::kOther) return true;
  KernelsAtSizes wanted;
  for (const Configuration& configuration : configurations)
    for (const MicroBatches& group : configuration.microBatches)
      wanted[group.batch].push_back(measurementOf(group, measurements_).kernel);
  const Asking asking = configurations.size() == 1 ? Asking::kOfOnePlan : Asking::kAll;
  if (confirmKernels(store_, request, prepared_, wanted, measurements_, asking)) return true;
  confirmAll(store_, request, prepared_, measurements_);
  return false;
}

/// Whether the kernel that cuDNN itself would run within the limit, by its heuristics, was
/// measured, or there is none. A plan is no slower then.
bool PlanChooser::knowsOwnChoice() {
  if (measurements_.empty()) return false;
  for (const KernelOffer& own : prepared_.ranked()) {
    if (own.workspaceBytes > request_.limitBytes || (request_.deterministic && !own.deterministic))
      continue;
    return findKernel(measurements_, request_.problem.batch(), own.kernel) != nullptr;
  }
  return true;
}

/// A split has an inaccurate kernel only if cuDNN, left alone without a limit, runs one. Undivided,
/// an inaccurate kernel is what cuDNN runs under the same limit.
bool PlanChooser::isTooInaccurate(const Configuration& configuration) {
  if (request_.withErrors() ||
      !isInaccurateSplit(configuration, measurements_, request_.problem.batch()))
    return false;
  if (!picksInaccurate_) picksInaccurate_ = picksInaccurate();
  return !*picksInaccurate_;
}

/// Whether cuDNN runs an inaccurate kernel if it may use any workspace. It does if its heuristics,
/// whose answer is the same for every query, put one first. If they give no answer, the fastest
/// kernel decides. Measuring that takes more workspace than the limit, for as long as it lasts.
bool PlanChooser::picksInaccurate() {
  if (const auto ranked = ranksInaccurateFirst()) return *ranked;
  const PlanRequest whole = request_.unlimited();
  if (fastestIsInaccurate(whole)) return true;
  // The caller's buffers have no more workspace than the limit, and FindEx may take no other.
  if (measuring_ != Measuring::kNow || request_.buffers != nullptr) return false;
  measurer_.measureIfDue(whole, Measuring::kNow);
  return fastestIsInaccurate(whole);
}

/// Empty if cuDNN does not say.
std::optional<bool> PlanChooser::ranksInaccurateFirst() {
  if (store_.ranksAccurateFirst(request_)) return false;
  const auto& ranked = prepared_.ranked();
  if (ranked.empty()) return std::nullopt;
  if (ranked.front().accurate) store_.addAccurateFirst(request_);
  return !ranked.front().accurate;
}

/// Looks among the undivided kernels of an answered question.
bool PlanChooser::fastestIsInaccurate(const PlanRequest& whole) {
  if (!store_.answers(whole)) return false;
  const int miniBatch = whole.problem.batch();
  Measurements known = store_.measurements(whole);
  return untilConfirmed([&]() -> std::optional<bool> {
    const auto size = known.find(miniBatch);
    if (size == known.end()) return false;
    const Measurement* const fastest = fastestOf(size->second.kernels);
    if (fastest == nullptr || fastest->accurate) return false;
    const KernelsAtSizes wanted = {{miniBatch, {fastest->kernel}}};
    return confirmKernels(store_, whole, prepared_, wanted, known) ? std::optional(true)
                                                                   : std::nullopt;
  });
}

}  // namespace ucudnn
