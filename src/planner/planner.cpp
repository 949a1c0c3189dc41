#include "planner/planner.hpp"

#include <algorithm>
#include <limits>

#include "planner/named_algorithm.hpp"
#include "planner/plan_builder.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

bool isSame(const Configuration& a, const Configuration& b) {
  return std::equal(a.microBatches.begin(),
                    a.microBatches.end(),
                    b.microBatches.begin(),
                    b.microBatches.end(),
                    [](const MicroBatches& one, const MicroBatches& other) {
                      return one.batch == other.batch && one.kernel == other.kernel &&
                             one.count == other.count && one.borrows == other.borrows;
                    });
}

bool isSamePlan(const Plan* a, const Plan* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->workspaceBytes == b->workspaceBytes && a->predictedMs == b->predictedMs &&
         a->replayed == b->replayed && a->algorithm == b->algorithm &&
         a->algorithmBytes == b->algorithmBytes && toText(*a) == toText(*b) &&
         isSamePlan(a->enqueued.get(), b->enqueued.get()) &&
         isSamePlan(a->general.get(), b->general.get());
}

/// What a call takes at most that may suit no engine, unless it is known to.
double longestMs(const Plan& plan, bool suitsEngines) {
  double longest = plan.predictedMs;
  if (plan.enqueued) longest = std::max(longest, plan.enqueued->predictedMs);
  if (suitsEngines || plan.anyCall) return longest;
  if (!plan.general) return std::numeric_limits<double>::infinity();
  return std::max(longest, longestMs(*plan.general, true));
}

/// Whether a plan takes the place of the client's own kernel: where it takes less time, by more
/// than timings differ; or no more time, in so much less workspace that it matters, where the
/// client is yet to be told how much. A host that runs ahead must not lose: the own kernel's time
/// is that of the device.
bool gainsOver(const PlanRequest& request, const Plan& plan, const Measurement& own) {
  const double ownMs = std::min(own.timeMs, own.deviceMs) + kLaunchMs;
  const double planMs = longestMs(plan, request.suitsEngines);
  if (planMs * kSplitGain <= ownMs && planMs + kLeastGainMs <= ownMs) return true;
  return request.mayTellLess && planMs <= ownMs * kSplitGain &&
         plan.workspaceBytes + kWorthSaving <= request.own->workspaceBytes;
}

}  // namespace

void Planner::addConvolutionTime(double timeMs) {
  investment_.addTime(timeMs);
}

PlanAnswer Planner::answer(const PlanRequest& request, Measuring measuring) {
  if (const auto frozen = frozenAnswer(request)) return *frozen;
  PlanAnswer found = besideOwn(request, answerMeasured(request, measuring));
  if (!found.plan && !found.lasts) found.plan = ownUnmeasured(request, measuring);
  return found;
}

std::shared_ptr<const Plan> Planner::ownUnmeasured(const PlanRequest& request,
                                                   Measuring measuring) {
  return request.own && request.lacksWorkspace ? ownInParts(request, measuring) : nullptr;
}

void Planner::preferOwn(const PlanRequest& request, Kernel own) {
  logInfo("{} N={}: {} is faster than its plan, where both run in turns",
          request.problem.text(),
          request.problem.batch(),
          toText(request.problem.operation, own));
  store_.use(request, [&](Known& known, KnownQuestion&) {
    known.preferred.insert({request.problem.batch(), own});
  });
}

PlanAnswer Planner::besideOwn(const PlanRequest& request, PlanAnswer found) const {
  if (!request.runsOwn()) return found;
  const int batch = request.problem.batch();
  std::optional<Measurement> own;
  bool isTried = false, isPreferred = false;
  store_.look(request, [&](const Known* known, const KnownQuestion*) {
    if (known == nullptr) return;
    isTried = known->hasTried(batch, request.own->kernel);
    isPreferred = known->preferred.count({batch, request.own->kernel}) > 0;
    if (const Measurement* const m = known->find(batch, request.own->kernel)) own = *m;
  });
  found.lasts = found.lasts && isTried;
  if (!found.plan || (own && !isPreferred && gainsOver(request, *found.plan, *own))) return found;
  found.ownIsBest = own.has_value();
  found.plan = nullptr;
  return found;
}

PlanAnswer Planner::answerMeasured(const PlanRequest& request, Measuring measuring) {
  if (measuring != Measuring::kNever && request.settings->benchmarkShare == kMeasureAlways)
    measuring = Measuring::kNow;
  if (const auto known = knownAnswer(request, measuring)) return *known;
  const PlanningTime time(statistics_.planningMicroseconds);
  if (measuring != Measuring::kNever) inquire(request, measuring);
  return makePlan(request, measuring);
}

std::optional<std::shared_ptr<const Plan>> Planner::planWithoutMeasuring(
    const PlanRequest& request) {
  if (const auto frozen = frozenAnswer(request)) return frozen->plan;
  if (!isAnswered(request)) return std::nullopt;
  return answer(request, Measuring::kNever).plan;
}

std::optional<PlanAnswer> Planner::knownAnswer(const PlanRequest& request, Measuring measuring) {
  const bool isNew = store_.look(
      request, [](const Known*, const KnownQuestion* asked) { return asked == nullptr; });
  if (measuring == Measuring::kNever && isNew) return PlanAnswer{};
  const std::uint64_t repetitions = repetitionsOf(request, measuring);
  return store_.use(
      request, [&](const Known& problem, KnownQuestion& asked) -> std::optional<PlanAnswer> {
        if (measuring == Measuring::kWhenItPays) {
          investment_.addCalls(asked.calls, request.callsSince, estimatedMs(request.problem));
          asked.calls += request.callsSince;
        }
        if (mustMeasure(request, measuring, problem, asked, repetitions)) return std::nullopt;
        const bool mayLoad =
            measuring != Measuring::kNever && problem.mayLoad(request.settings->databasePath);
        if (mayLoad && problem.wasLocked()) return std::nullopt;
        if (const KnownPlan* const known = asked.find(request))
          return PlanAnswer{known->plan, known->lasts, known->isFar};
        // The database may hold the answer; else what has not been measured has no plan.
        if (!asked.isAnswered() && !asked.isIncomplete() && !mayLoad) return PlanAnswer{};
        return std::nullopt;
      });
}

/// The plan, all that it runs or names confirmed and made ready to run.
std::shared_ptr<const Plan> Planner::choosePlan(const PlanRequest& request, Measuring measuring) {
  PreparedKernels prepared(request.handle, request.problem);
  PlanRequest asking = request;
  asking.prepared = &prepared;
  for (;;) {
    try {
      return chooseConfirmed(asking, measuring);
    } catch (const RefusedKernel& refused) {  // a database may have it of another installation
      logInfo("{} N={} {}: {}",
              request.problem.text(),
              refused.batch,
              toText(request.problem.operation, refused.kernel),
              refused.what());
      store_.refuse(request, refused.batch, refused.kernel);
    }
  }
}

std::shared_ptr<const Plan> Planner::chooseConfirmed(const PlanRequest& request,
                                                     Measuring measuring) {
  const bool wasAsked = store_.look(request, [](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->isAnswered();
  });
  Measurements measurements = store_.measurements(request);
  if (!wasAsked && !knowsOwnChoice(request, measurements)) return nullptr;
  PlanRequest any = request;
  any.anyCall = true;
  for (;;) {
    auto plan = choosePair(request, measurements, measuring);
    if (!plan) return nullptr;
    if (!plan->anyCall) {  // a query does not know which calls follow
      auto general = choosePair(any, measurements, measuring);
      if (!general && !request.suitsEngines) return nullptr;
      if (general) {
        auto both = withGeneral(*plan, std::move(general));
        nameAlgorithm(*both, request, measurements);  // they may differ in determinism
        plan = std::move(both);
      }
    }
    const Kernel named{plan->algorithm, request.problem.mathType};
    if (store_.confirm(request, {{request.problem.batch(), {named}}}, measurements)) return plan;
  }
}

/// The plan for calls that repeat, and in it the one for those that don't where that gains. Where a
/// graph gains nothing, all calls run by what is the fastest enqueued. cuDNN is asked about what
/// runs, and about all else only where that is not as it was stored.
std::shared_ptr<const Plan> Planner::choosePair(const PlanRequest& request,
                                                Measurements& measurements,
                                                Measuring measuring) {
  const auto choose = [&](Pace pace) {
    return chooseAccurately(request, measurements, measuring, pace);
  };
  for (;;) {
    const auto enqueued = choose(Pace::kHost);
    if (!enqueued && store_.confirmAll(request, measurements)) return nullptr;
    if (!enqueued) continue;
    const auto replayed =
        request.replay() == Replay::kWhereRepeated ? choose(Pace::kDevice) : std::nullopt;
    const bool isOne = replayed && isSame(*replayed, *enqueued);
    const bool gains = isOne || (replayed && paysToReplay(*replayed, measurements));
    const bool isPair =
        gains && enqueued->timeMs * kSplitGain < enqueuedMs(*replayed, measurements);
    // A split that gains less than its graph's launch costs would be replayed all the same.
    const bool runsReplayed = gains || (replayed && paysToReplay(*enqueued, measurements));
    const Configuration& main = runsReplayed ? *replayed : *enqueued;
    if (!confirmChoice(request, {main}, measurements) ||
        (isPair && !confirmChoice(request, {*enqueued}, measurements)))
      continue;
    const auto build = [&](const Configuration& configuration,
                           Pace pace,
                           std::shared_ptr<const Plan> other = nullptr) {
      return buildPlan(request, configuration, pace, measurements, std::move(other));
    };
    if (isPair) return build(main, Pace::kDevice, build(*enqueued, Pace::kHost));
    return build(main, gains ? Pace::kDevice : Pace::kHost);
  }
}

PlanAnswer Planner::makePlan(const PlanRequest& request, Measuring measuring) {
  KnownPlan made;
  const std::size_t limitBytes = request.limitBytes;
  const bool mayMeasure = request.settings->benchmarkShare > 0;
  store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    if (asked == nullptr) return;
    made.isFar = asked->answers(limitBytes) && !asked->looksClosely(limitBytes);
    made.lasts = asked->isComplete(limitBytes) && !(made.isFar && mayMeasure);
  });
  made.plan = choosePlan(request, measuring);
  made.deterministic = request.deterministic;
  made.borrows = request.mayBorrow();
  made.suitsEngines = request.suitsEngines;
  made.replay = request.replay();
  made.maxError = request.settings->maxError;
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
    if (const KnownPlan* const other = asked.find(request))
      return std::make_pair(PlanAnswer{other->plan, other->lasts, other->isFar}, false);
    bool isNew = true;
    const auto isSame = [&](const KnownPlan& former) {
      if (former.maxError != made.maxError) return false;
      // One line is enough, though deterministic kernels were asked for first.
      if (!former.plan && !made.plan) return former.highBytes == made.highBytes;
      return former.replay == made.replay && isSamePlan(former.plan.get(), made.plan.get());
    };
    for (const auto* list : {&asked.plans, &asked.formerPlans})
      for (const KnownPlan& former : *list)
        if (isNew && isSame(former)) {
          // The same plan, now for more calls, is not another one.
          if (!made.plan || former.plan->isFor(made.plan->calls)) made.plan = former.plan;
          isNew = false;
        }
    if (asked.plans.size() >= kMostPlans) asked.plans.erase(asked.plans.begin());
    asked.plans.push_back(made);
    return std::make_pair(PlanAnswer{made.plan, made.lasts, made.isFar}, isNew);
  });
}

Measurements Planner::measurements(const PlanRequest& request, Measuring measuring) {
  const PlanningTime time(statistics_.planningMicroseconds);
  Measurements measurements = require(request, measuring);
  store_.confirmAll(request, measurements);
  return measurements;
}

bool Planner::isAnswered(const PlanRequest& request) const {
  return store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->answers(request.limitBytes);
  });
}

/// Empty where not even the undivided kernels could be measured.
Measurements Planner::require(const PlanRequest& request, Measuring measuring) {
  if (measuring != Measuring::kNever && isToBeMeasured(request, measuring))
    inquire(request, measuring);
  const bool isKnown = store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->isAnswered() &&
           (measuring != Measuring::kNever || asked->answers(request.limitBytes));
  });
  return isKnown ? store_.measurements(request) : Measurements();
}

Planner& planner() noexcept {
  static Planner& instance = *new Planner;
  return instance;
}

}  // namespace ucudnn
