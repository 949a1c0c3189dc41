#include "planner/planner.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "benchmark/measurement.hpp"
#include "planner/configuration_times.hpp"
#include "planner/frozen_plans.hpp"
#include "planner/measured_kernels.hpp"
#include "planner/plan_chooser.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

bool isSamePlan(const Plan* a, const Plan* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->workspaceBytes == b->workspaceBytes && a->predictedMs == b->predictedMs &&
         a->replayed == b->replayed && a->algorithm == b->algorithm &&
         a->algorithmBytes == b->algorithmBytes && toText(*a) == toText(*b) &&
         isSamePlan(a->enqueued.get(), b->enqueued.get()) &&
         isSamePlan(a->general.get(), b->general.get());
}

/// The longest time of a call by the plan. The call may suit no engine, unless it is known to.
double longestMs(const Plan& plan, bool suitsEngines) {
  double longest = plan.predictedMs;
  if (plan.enqueued) longest = std::max(longest, plan.enqueued->predictedMs);
  if (suitsEngines) return longest;
  const Plan* const other = plan.of(CallKind::kOther);
  if (other == nullptr) return std::numeric_limits<double>::infinity();
  return std::max(longest, longestMs(*other, true));
}

/// Whether the file's plans for the problem are another machine's, so that timings decide. Then the
/// store knows their kernels.
bool takesHints(const PlanRequest& request, const Machines& machines, MeasurementStore& store) {
  if (request.settings->plansStrict || !request.frozen->areOfAnother(request, machines))
    return false;
  const int batch = request.problem.batch();
  const bool isKnown = store.read(request, [&](const Known* known, const KnownQuestion*) {
    return known != nullptr && known->hinted.count(batch) > 0;
  });
  if (isKnown) return true;
  const Measurements hints = request.frozen->hints(request, machines);
  store.update(request, [&](Known& known, KnownQuestion&) {
    std::vector<Kernel>& kernels = known.hinted[batch];
    for (const auto& [size, found] : hints) {
      addMeasurements(known.elsewhere[size], found);
      for (const Measurement& m : found.kernels)
        if (!contains(kernels, m.kernel)) kernels.push_back(m.kernel);
    }
  });
  return true;
}

/// Whether the client's own kernel runs within the call's workspace, as it is or in parts.
bool runsWithoutPlan(const MeasurementStore& store, const PlanRequest& request) {
  if (!request.lacksWorkspace) return request.runsOwn();
  return store.read(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->unmeasuredFor(request) != nullptr;
  });
}

/// The least known error of a kernel within the limit; infinite if errors don't count.
double leastErrorWithin(const MeasurementStore& store, const PlanRequest& request) {
  double least = kUnknownError;
  if (!request.withErrors()) return least;
  for (const auto& [batch, size] : store.measurements(request))
    for (const Measurement& m : size.kernels)
      if (m.workspaceBytes <= request.limitBytes) least = std::min(least, m.error);
  return least;
}

/// Whether the plan runs nothing but the kernel of the parts, and as often or more often.
bool isSameInMoreParts(const Plan& plan, const Plan& parts) {
  const Kernel kernel = parts.steps.front().kernel;
  return plan.microBatches() >= parts.microBatches() &&
         std::all_of(plan.steps.begin(), plan.steps.end(), [&](const Plan::Step& step) {
           return step.kernel == kernel;
         });
}

/// Parts with copies of outputs in the output, which no measured plan has, stay unless it takes
/// less time than they do, as far as their times are known. The largest part's is not: within the
/// limit it can't be timed.
PlanAnswer besideParts(const MeasurementStore& store,
                       const PlanRequest& request,
                       PlanAnswer found) {
  if (!found.plan || !found.plan->measured || !request.lacksWorkspace || !request.suitsEngines)
    return found;
  auto parts = store.read(request, [&](const Known*, const KnownQuestion* asked) {
    return asked != nullptr ? asked->unmeasuredFor(request) : nullptr;
  });
  if (!parts || !parts->borrows()) return found;
  if (!isSameInMoreParts(*found.plan, *parts)) {
    const double ms = partsMs(*parts, store.measurements(request));
    if (ms == 0 || ms > longestMs(*found.plan, true)) return found;
  }
  found.plan = std::move(parts);
  found.isFinal = false;  // where cuDNN refuses them, another call finds the measured plan
  return found;
}

}  // namespace

PlanAnswer Planner::answer(const PlanRequest& request, Measuring measuring) {
  if (const auto frozen = frozenAnswer(request, measuring)) return *frozen;
  PlanAnswer found = besideOwn(request, answerMeasured(request, measuring));
  found = besideParts(store_, request, std::move(found));
  if (!found.plan && !found.isFinal) found.plan = ownUnmeasured(request, measuring);
  return found;
}

void Planner::preferOwn(const PlanRequest& request, Kernel own) {
  logInfo("{} N={}: {} is faster than its plan when both run in turns",
          request.problem.text(),
          request.problem.batch(),
          toText(request.problem.operation, own));
  store_.update(request, [&](Known& known, KnownQuestion&) {
    known.preferred.insert({request.problem.batch(), own});
  });
}

PlanAnswer Planner::besideOwn(const PlanRequest& request, PlanAnswer found) const {
  if (!request.runsOwn()) return found;
  const int batch = request.problem.batch();
  std::optional<Measurement> own;
  bool isTried = false, isPreferred = false, isAnswered = false;
  store_.read(request, [&](const Known* known, const KnownQuestion* asked) {
    if (known == nullptr) return;
    isAnswered = asked != nullptr && asked->isAnswered();
    isTried = known->hasTried(batch, request.own->kernel);
    isPreferred = known->preferred.count({batch, request.own->kernel}) > 0;
    if (const auto* const m = findKernel(known->measurements, batch, request.own->kernel)) own = *m;
  });
  found.isFinal = found.isFinal && isTried;
  if (!found.plan) return found;
  const double planMs = longestMs(*found.plan, request.suitsEngines);
  if (own && !isPreferred && gainsOver(request, planMs, found.plan->workspaceBytes, *own))
    return found;
  found.ownIsBest = own.has_value() && isAnswered;
  found.plan = nullptr;
  return found;
}

PlanAnswer Planner::answerMeasured(const PlanRequest& request, Measuring measuring) {
  if (measuring != Measuring::kNever && request.settings->benchmarkShare == kMeasureAlways)
    measuring = Measuring::kNow;
  if (const auto known = knownAnswer(request, measuring)) return *known;
  if (const auto meanwhile = answerMeanwhile(request, measuring)) return *meanwhile;
  const PlanningTime time(statistics_.planningMicroseconds);
  if (measuring != Measuring::kNever) measurer_.measureIfDue(request, measuring);
  PlanAnswer found = makePlan(request, measuring);
  found.isOngoing = isOngoing(request);
  return found;
}

std::optional<PlanAnswer> Planner::answerMeanwhile(const PlanRequest& request,
                                                   Measuring measuring) {
  if (!BackgroundPlans::mayServe(request, measuring) || !runsWithoutPlan(store_, request))
    return std::nullopt;
  PlanAnswer none;
  const auto isToLoad = [&] {
    return store_.read(request, [&](const Known* known, const KnownQuestion*) {
      return known == nullptr || known->mayLoad(request.settings->databasePath);
    });
  };
  if (!isToLoad()) {
    // The call measures its slice itself.
    const PlanningTime time(statistics_.planningMicroseconds);
    measurer_.measureIfDue(request, measuring);
    const auto kept = store_.read(request, [&](const Known*, const KnownQuestion* asked) {
      const KnownPlan* const plan = asked != nullptr ? asked->find(request) : nullptr;
      return plan != nullptr ? std::optional<PlanAnswer>(*plan) : std::nullopt;
    });
    PlanAnswer now = kept.value_or(none);
    now.isOngoing = isOngoing(request);
    if (kept || now.isOngoing || !store_.answers(request)) return now;
  }
  const auto make = [this](const PlanRequest& wanted) {
    static_cast<void>(answer(wanted, Measuring::kIfKnown));
  };
  if (!background_.begin(request, make)) return std::nullopt;
  none.isOngoing = true;  // the next call asks again
  return none;
}

bool Planner::isOngoing(const PlanRequest& request) const {
  return store_.read(request, [](const Known*, const KnownQuestion* asked) {
    return asked != nullptr && asked->isOngoing;
  });
}

std::optional<std::shared_ptr<const Plan>> Planner::planWithoutMeasuring(
    const PlanRequest& request) {
  if (const auto frozen = frozenAnswer(request, Measuring::kWhenItPays)) return frozen->plan;
  if (!store_.answers(request)) return std::nullopt;
  return answer(request, Measuring::kNever).plan;
}

bool Planner::knows(const PlanRequest& request) {
  return store_.load(request) || store_.answers(request);
}

std::optional<PlanAnswer> Planner::knownAnswer(const PlanRequest& request, Measuring measuring) {
  const bool isNew = store_.read(
      request, [](const Known*, const KnownQuestion* asked) { return asked == nullptr; });
  if (measuring == Measuring::kNever && isNew) return PlanAnswer{};
  return store_.update(
      request, [&](const Known& problem, KnownQuestion& asked) -> std::optional<PlanAnswer> {
        if (measuring == Measuring::kWhenItPays) measurer_.addCalls(request, asked);
        if (measurer_.mustMeasure(request, measuring, problem, asked)) return std::nullopt;
        const bool mayLoad =
            measuring != Measuring::kNever && problem.mayLoad(request.settings->databasePath);
        if (mayLoad && problem.wasLocked()) return std::nullopt;
        const auto said = [&](PlanAnswer answer) {
          answer.isOngoing = asked.isOngoing;
          return answer;
        };
        if (const KnownPlan* const known = asked.find(request)) return said(*known);
        // The database may hold the answer. If it can't, an unmeasured question has no plan.
        if (!asked.isAnswered() && !asked.isIncomplete() && !mayLoad) return said({});
        return std::nullopt;
      });
}

PlanAnswer Planner::makePlan(const PlanRequest& request, Measuring measuring) {
  KnownPlan made;
  const std::size_t limitBytes = request.limitBytes;
  const bool mayMeasure = request.settings->benchmarkShare > 0;
  store_.read(request, [&](const Known*, const KnownQuestion* asked) {
    if (asked == nullptr) return;
    made.isFromOtherLimit = asked->answers(limitBytes) && !asked->answersClosely(limitBytes);
    const bool isLooked = asked->isOfLook && request.lacksWorkspace;
    made.isFinal =
        asked->isComplete(limitBytes) && !((made.isFromOtherLimit || isLooked) && mayMeasure);
  });
  PlanChooser chooser(store_, measurer_, checks_, request, measuring, store_.measurements(request));
  made.plan = chooser.plan();
  made.isFinal = made.isFinal && chooser.isChecked();
  made.deterministic = request.deterministic;
  made.borrows = request.mayBorrow();
  made.suitsEngines = request.suitsEngines;
  made.replay = request.replay();
  made.maxError = request.settings->maxError;
  made.highBytes = request.limitBytes;
  made.lowBytes = made.plan ? std::max(made.plan->workspaceBytes, made.plan->algorithmBytes) : 0;
  made.ownIsBest = chooser.ownIsAsFast();
  if (made.ownIsBest || chooser.isLeftToCalls()) made.beside = request.own->kernel;
  made.calls = request.calls;
  made.isForQueries = request.mayTellLess;
  if (chooser.isLeftToCalls()) made.isFinal = false;
  const auto [kept, isNew] = keep(request, made, chooser.isChecked());
  if (isNew && kept.ownIsBest)
    logInfo("{} N={}: nothing is faster than {}",
            Late{[&] { return request.problem.text(); }},
            request.problem.batch(),
            Late{[&] { return toText(request.problem.operation, request.own->kernel); }});
  else if (isNew && !made.beside)
    logAnswer(request, kept.plan.get());
  if (isNew && kept.plan) ++statistics_.plans;
  return kept;
}

/// Keeps one plan for all threads, and an equal former plan rather than the new one. Second:
/// whether the plan is new. A plan that is not checked yet is not kept as an answer: a request that
/// may check it makes it again.
std::pair<PlanAnswer, bool> Planner::keep(const PlanRequest& request,
                                          KnownPlan made,
                                          bool isChecked) {
  return store_.update(request, [&](const Known&, KnownQuestion& asked) {
    using Kept = std::pair<PlanAnswer, bool>;
    if (const KnownPlan* const other = asked.find(request)) return Kept(*other, false);
    bool isNew = true;
    const auto isSame = [&](const KnownPlan& former) {
      if (former.maxError != made.maxError) return false;
      // Two answers without a plan are one line of the log, even if only one was to be
      // deterministic.
      if (!former.plan && !made.plan)
        return former.highBytes == made.highBytes && former.beside == made.beside;
      return former.replay == made.replay && isSamePlan(former.plan.get(), made.plan.get());
    };
    for (const auto* list : {&asked.plans, &asked.formerPlans})
      for (const KnownPlan& former : *list)
        if (isNew && isSame(former)) {
          // The same plan for more calls than before is no new one.
          if (!made.plan || made.plan->runs <= former.plan->runs) made.plan = former.plan;
          isNew = false;
        }
    std::vector<KnownPlan>& all = isChecked ? asked.plans : asked.formerPlans;
    if (!isChecked && !isNew) return Kept(made, false);
    if (all.size() >= kMostPlans) all.erase(all.begin());
    all.push_back(made);
    return Kept(made, isNew);
  });
}

Measurements Planner::measurements(const PlanRequest& request, Measuring measuring) {
  const PlanningTime time(statistics_.planningMicroseconds);
  Measurements measurements = measurer_.measurements(request, measuring);
  PreparedKernels prepared(request.handle, request.problem);
  confirmAll(store_, request, prepared, measurements);
  return measurements;
}

std::vector<Configuration> Planner::front(const PlanRequest& request,
                                          Measuring measuring,
                                          const std::vector<std::size_t>& limits) {
  const PlanningTime time(statistics_.planningMicroseconds);
  if (request.frozen != nullptr && !takesHints(request, machines_, store_)) {
    auto frozen = request.frozen->front(request, machines_);
    keepFront(frozen);
    if (!frozen.empty() || request.settings->plansStrict) return frozen;
  }
  for (const std::size_t bytes : limits) measurer_.measurements(request.within(bytes), measuring);
  Measurements measurements = measurer_.measurements(request, measuring);
  return PlanChooser(store_, measurer_, checks_, request, measuring, std::move(measurements))
      .front();
}

std::optional<PlanAnswer> Planner::frozenAnswer(const PlanRequest& request, Measuring measuring) {
  if (request.frozen == nullptr) return std::nullopt;
  const PlanningTime time(statistics_.planningMicroseconds);
  const bool isHint = takesHints(request, machines_, store_);
  // They are used as they are where nothing will confirm them.
  if (isHint && (measuring == Measuring::kNow || request.settings->benchmarkShare > 0 ||
                 store_.answers(request)))
    return std::nullopt;
  FrozenPlans::Found found = request.frozen->plan(request, machines_);
  auto outcome = KernelChecks::Outcome::kPassed;
  if (found.plan) outcome = checks_.check(request, *found.plan, measuring);
  if (outcome == KernelChecks::Outcome::kFailed) found = {};
  if (!found.plan && !request.settings->plansStrict) return std::nullopt;
  if (found.isNew) {
    ++statistics_.plans;
    logAnswer(request, found.plan.get());
  }
  return PlanAnswer{found.plan, !isHint && outcome != KernelChecks::Outcome::kPutOff};
}

void Planner::savePlans(const std::string& path) const {
  std::vector<FrozenPlan> plans = usedFrozenPlans();
  const auto add = [&](auto isTaken) {
    store_.readAll([&](int machine, const KnownQuestion& asked) {
      for (const auto* list : {&asked.plans, &asked.formerPlans})
        for (const KnownPlan& known : *list)
          if (known.plan && isTaken(known))
            plans.push_back(toFrozen(known, asked.key, machines_.key(machine)));
    });
  };
  // If two plans differ in replay alone, the one that holds both ways is written: it comes first.
  add([](const KnownPlan& known) { return known.replay == Replay::kWhereRepeated; });
  add([](const KnownPlan& known) { return known.replay != Replay::kWhereRepeated; });
  const auto key = [](const FrozenPlan& plan) {
    return std::tuple_cat(std::tie(plan.device,
                                   plan.cudaVersion,
                                   plan.cudnnVersion,
                                   plan.problem,
                                   plan.miniBatch,
                                   plan.limitBytes,
                                   plan.deterministic,
                                   plan.policy,
                                   plan.kernels),
                          std::make_tuple(plan.plan.borrows()));
  };
  std::stable_sort(plans.begin(), plans.end(), [&](const FrozenPlan& a, const FrozenPlan& b) {
    return key(a) < key(b);
  });
  plans.erase(
      std::unique(plans.begin(),
                  plans.end(),
                  [&](const FrozenPlan& a, const FrozenPlan& b) { return key(a) == key(b); }),
      plans.end());
  writeFrozenPlans(path, plans);
}

void Planner::logAnswer(const PlanRequest& request, const Plan* plan) const {
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
  const double least = leastErrorWithin(store_, request);
  if (least < kUnknownError && least * kErrorSpread > maxError) {
    logWarn(
        "no known kernel for {} at batch {} within {} bytes of workspace has an error of at most "
        "{:.3g} (UCUDNN_MAX_ERROR); the most accurate has {:.3g}: left to cuDNN",
        request.problem.text(),
        request.problem.batch(),
        request.limitBytes,
        maxError,
        least * kErrorSpread);
    return;
  }
  std::string why;
  store_.read(request, [&](const Known*, const KnownQuestion* asked) {
    if (asked != nullptr) why = asked->why;
  });
  logInfo("no kernel is known for {} at batch {} within {} bytes of workspace: left to cuDNN{}{}",
          request.problem.text(),
          request.problem.batch(),
          request.limitBytes,
          why.empty() ? " (a larger limit may help)" : ": ",
          why);
}

Planner& planner() noexcept {
  static Planner& instance = *new Planner;
  return instance;
}

}  // namespace ucudnn
