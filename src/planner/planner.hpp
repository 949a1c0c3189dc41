// Plans problems under a limit: takes measurements (remembered, else from the database, else from
// the benchmark), then runs the optimizer. One planner serves the whole process.
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
/// 1. A plan has been compared with the undivided kernels that were measured at the mini-batch
///    itself within the same limit. If none could be measured, there is no plan.
/// 2. A kernel that was left out for one question is decided anew for another: answers do not
///    depend on the order of questions.
/// 3. Only times and errors are taken from a database, and only possible ones
///    (measurement_rows.hpp). cuDNN has confirmed each kernel of a plan or answer, at this or a
///    larger size.
/// 4. A plan of the request's file of plans (frozen_plans.hpp) is neither measured nor chosen, if
/// it
///    was made for this machine, or the settings allow no other.
class Planner {
 public:
  Planner() = default;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// The fastest plan within the limit that `measuring` allows. If the plan is yet to be made and
  /// the call can run without it, another thread begins to make it, and there is no plan now.
  /// Throws Error.
  PlanAnswer answer(const PlanRequest& request, Measuring measuring);
  /// Waits while another thread makes the request's plan.
  void waitFor(const PlanRequest& request) noexcept { background_.wait(request); }

  /// The client's own kernel on parts of the batch, or another that is likely to be faster within
  /// the limit, if the own one lacks workspace, whatever has been measured. Null if it lacks none,
  /// or nothing runs so. Throws Error.
  std::shared_ptr<const Plan> ownUnmeasured(const PlanRequest& request, Measuring measuring) {
    return unmeasured_.ownKernelInParts(request, measuring);
  }

  /// The first kernel that cuDNN offers within the limit, for as many samples at a time as fit.
  /// Used if nothing else is known and nothing can be measured. Null if there is none. Throws
  /// Error.
  std::shared_ptr<const Plan> anyThatFits(const PlanRequest& request) {
    return unmeasured_.anyThatFits(request);
  }

  /// The client's own kernel was faster than its plan when both were called in turns. In this
  /// process nothing replaces it again.
  void preferOwn(const PlanRequest& request, Kernel own);

  /// Whether a plan's kernels pass their checks once more; else they are barred from now on. Throws
  /// Error.
  bool passesAgain(const PlanRequest& request, const Plan& plan) {
    return checks_.checkAgain(request, plan) != KernelChecks::Outcome::kFailed;
  }

  /// As `answer`, but measured at once. Null if cuDNN offers nothing within the limit, or if
  /// nothing could be measured; a warning has said so. Throws Error.
  std::shared_ptr<const Plan> plan(const PlanRequest& request) {
    return answer(request, Measuring::kNow).plan;
  }

  /// The same from existing measurements: runs nothing on a device. Empty if something has to be
  /// measured.
  std::optional<std::shared_ptr<const Plan>> planWithoutMeasuring(const PlanRequest& request);

  /// Whether the request's question was answered before, perhaps by another process. Reads the
  /// database. Throws Error.
  bool knows(const PlanRequest& request);

  /// The kernels known at the mini-batch itself that need no more than the limit. Measures nothing.
  /// Throws Error.
  std::vector<Measurement> undivided(const PlanRequest& request) {
    return undividedKernels(store_, request);
  }

  /// Every kernel measured at the policy's sizes. `measuring`: kNow measures what is missing;
  /// kNever answers only questions that were asked before, else nothing. Throws Error.
  Measurements measurements(const PlanRequest& request, Measuring measuring = Measuring::kNow);

  /// The Pareto front under the limit; `measuring` as above. First measures within each of
  /// `limits`. Throws Error.
  std::vector<Configuration> front(const PlanRequest& request,
                                   Measuring measuring = Measuring::kNow,
                                   const std::vector<std::size_t>& limits = {});

  /// Writes all plans that were made, and the used ones of files, to a file for UCUDNN_PLANS.
  /// Throws BadSetting if it can't be written.
  void savePlans(const std::string& path) const;

  /// Adds time, in ms, of convolutions that handles ran by themselves. Measuring may take a share
  /// of it.
  void addConvolutionTime(double timeMs) { measurer_.addTime(timeMs); }

  Machines& machines() noexcept { return machines_; }
  Statistics& statistics() noexcept { return statistics_; }

 private:
  /// The answer of the request's file of plans, if it has one. Empty: the request is planned as
  /// usual.
  std::optional<PlanAnswer> frozenAnswer(const PlanRequest& request, Measuring measuring);
  /// Counts the call and takes what is known. Empty: something is to be measured or planned first.
  std::optional<PlanAnswer> knownAnswer(const PlanRequest& request, Measuring measuring);
  /// The answer for a call that need not wait. Empty if the call has to.
  std::optional<PlanAnswer> answerMeanwhile(const PlanRequest& request, Measuring measuring);
  bool isOngoing(const PlanRequest& request) const;
  /// The answer from measurements of now or before.
  PlanAnswer answerMeasured(const PlanRequest& request, Measuring measuring);
  /// The answer to a client whose own kernel runs within the limit: a plan only if it was measured
  /// to be faster.
  PlanAnswer besideOwn(const PlanRequest& request, PlanAnswer found) const;
  PlanAnswer makePlan(const PlanRequest& request, Measuring measuring);
  std::pair<PlanAnswer, bool> keep(const PlanRequest& request, KnownPlan made, bool isChecked);
  void logAnswer(const PlanRequest& request, const Plan* plan) const;

  Machines machines_;
  Statistics statistics_;
  MeasurementStore store_{machines_, statistics_};
  Measurer measurer_{store_, statistics_};
  KernelChecks checks_{store_, statistics_};
  UnmeasuredPlans unmeasured_{store_, checks_, statistics_};
  BackgroundPlans background_;
};

/// The process's planner. Never destroyed, because static destructors use handles.
Planner& planner() noexcept;

}  // namespace ucudnn
