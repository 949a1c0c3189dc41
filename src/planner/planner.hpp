// The plan for a problem under a limit: measurements (remembered, else from the database, else from
// the benchmark), then the optimizer. One planner serves the whole process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/configuration.hpp"
#include "plan/plan.hpp"
#include "planner/background_plans.hpp"
#include "planner/confirmation.hpp"
#include "planner/kernel_checks.hpp"
#include "planner/machines.hpp"
#include "planner/measurement_store.hpp"
#include "planner/measurer.hpp"
#include "planner/request.hpp"
#include "planner/unmeasured_plans.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// Thread-safe.
///
///  1. A plan has been compared with the undivided kernels that were measured at the mini-batch
///     itself within the same limit; where none could be measured there is no plan.
///  2. What was left out for one question is decided anew for another: answers do not depend on the
///     order of questions.
///  3. A database is asked for times and errors alone, and only for possible ones
///     (measurement_rows.hpp): no plan and no answer holds a kernel that cuDNN has not confirmed,
///     at this or a larger size.
///  4. What a request's file of plans has (frozen_plans.hpp) is neither measured nor chosen.
class Planner {
 public:
  Planner() = default;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// The fastest plan within the limit that may be had so. A call that can do without gets none
  /// that is yet to be made, which another thread begins then. Throws Error.
  PlanAnswer answer(const PlanRequest& request, Measuring measuring);
  /// Until a plan is not being made any more that a call has begun.
  void waitFor(const PlanRequest& request) noexcept { background_.wait(request); }

  /// The client's own kernel on parts of the batch, where it lacks workspace: whatever has been
  /// measured. Null: it lacks none, or does not run so. Throws Error.
  std::shared_ptr<const Plan> ownUnmeasured(const PlanRequest& request, Measuring measuring) {
    return unmeasured_.ownKernelInParts(request, measuring);
  }

  /// The first kernel that cuDNN offers within the limit, for as many samples at a time as fit:
  /// where nothing else is known, and nothing can be measured. Null: there is none. Throws Error.
  std::shared_ptr<const Plan> anyThatFits(const PlanRequest& request) {
    return unmeasured_.anyThatFits(request);
  }

  /// The client's own kernel was faster than its plan, where both were called in turns: in this
  /// process nothing takes its place again.
  void preferOwn(const PlanRequest& request, Kernel own);

  /// Whether a plan's kernels pass their checks once more; else they are barred from now on. Throws
  /// Error.
  bool passesAgain(const PlanRequest& request, const Plan& plan) {
    return checks_.checkAgain(request, plan) != KernelChecks::Outcome::kFailed;
  }

  /// As `answer`, measured at once. Null where cuDNN offers nothing within the limit, or nothing
  /// could be measured, which has been warned of. Throws Error.
  std::shared_ptr<const Plan> plan(const PlanRequest& request) {
    return answer(request, Measuring::kNow).plan;
  }

  /// The same from measurements already taken: runs nothing on a device but checks of kernels, and
  /// these not during a capture. Empty: something has to be measured.
  std::optional<std::shared_ptr<const Plan>> planWithoutMeasuring(const PlanRequest& request);

  /// The kernels known at the mini-batch itself that need no more than the limit. Measures nothing.
  /// Throws Error.
  std::vector<Measurement> undivided(const PlanRequest& request) {
    return undividedKernels(store_, request);
  }

  /// Every kernel measured at the sizes of the policy. `measuring`: kNow measures what is missing;
  /// kNever answers only what has been asked before, else nothing. Throws Error.
  Measurements measurements(const PlanRequest& request, Measuring measuring = Measuring::kNow);

  /// The Pareto front under the limit, likewise; of what is measured within each of `limits` first.
  /// Throws Error.
  std::vector<Configuration> front(const PlanRequest& request,
                                   Measuring measuring = Measuring::kNow,
                                   const std::vector<std::size_t>& limits = {});

  /// Writes all plans that were made, and those of files that were used, to a file for
  /// UCUDNN_PLANS. Throws BadSetting: it can't be written.
  void savePlans(const std::string& path) const;

  /// Time in convolutions that handles ran by themselves, in ms: measuring may take a share of it.
  void addConvolutionTime(double timeMs) { measurer_.addTime(timeMs); }

  Machines& machines() noexcept { return machines_; }
  Statistics& statistics() noexcept { return statistics_; }

 private:
  /// Of the request's file of plans, if it has one. Empty: it is planned as usual.
  std::optional<PlanAnswer> frozenAnswer(const PlanRequest& request, Measuring measuring);
  /// Counts the call and takes what is known. Empty: something is to be measured or planned first.
  std::optional<PlanAnswer> knownAnswer(const PlanRequest& request, Measuring measuring);
  /// What a call goes on with that need not wait. Empty: it has to.
  std::optional<PlanAnswer> answerMeanwhile(const PlanRequest& request, Measuring measuring);
  bool isOngoing(const PlanRequest& request) const;
  /// From what has been measured, now or before.
  PlanAnswer answerMeasured(const PlanRequest& request, Measuring measuring);
  /// The answer to a client whose own kernel runs within the limit: a plan only where it is faster
  /// than that, as measured.
  PlanAnswer besideOwn(const PlanRequest& request, PlanAnswer found) const;
  PlanAnswer makePlan(const PlanRequest& request, Measuring measuring);
  std::pair<PlanAnswer, bool> keep(const PlanRequest& request, KnownPlan made, bool isChecked);
  double leastErrorWithin(const PlanRequest& request) const;
  void logAnswer(const PlanRequest& request, const Plan* plan) const;

  Machines machines_;
  Statistics statistics_;
  MeasurementStore store_{machines_, statistics_};
  Measurer measurer_{store_, statistics_};
  KernelChecks checks_{store_, statistics_};
  UnmeasuredPlans unmeasured_{store_, checks_, statistics_};
  BackgroundPlans background_;
};

/// The process's planner: never destroyed, since handles are used in static destructors.
Planner& planner() noexcept;

}  // namespace ucudnn
