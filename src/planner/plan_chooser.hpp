// Chooses among what has been measured for one request.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "optimizer/configuration.hpp"
#include "plan/plan.hpp"
#include "planner/configuration_times.hpp"
#include "planner/kernel_checks.hpp"
#include "planner/measurement_store.hpp"
#include "planner/measurer.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// Drops points that are no faster than an earlier one, which needs no more workspace.
void keepFront(std::vector<Configuration>& front);

/// Whether a plan of that time and workspace replaces the client's own kernel. It does if it takes
/// less time, by more than timings differ. If the client is yet to be told how much workspace it
/// needs, it also does if it takes no more time in so much less workspace that it matters. The own
/// kernel's time is the device's, because a host that runs ahead must not lose. REQUIRES: the
/// request names its own kernel.
bool gainsOver(const PlanRequest& request,
               double planMs,
               std::size_t workspaceBytes,
               const Measurement& own) noexcept;

/// Chooses the fastest configuration that is no less accurate than what cuDNN itself would run.
/// cuDNN is asked to confirm chosen kernels only. If it denies one, the choice is made again
/// without it. Not thread-safe.
class PlanChooser {
 public:
  /// Chooses among `measurements`, which `store` has about the request. `measuring` says what
  /// `measurer` may measure besides. REQUIRES: the references outlive it.
  PlanChooser(MeasurementStore& store,
              Measurer& measurer,
              KernelChecks& checks,
              const PlanRequest& request,
              Measuring measuring,
              Measurements measurements)
      : store_(store),
        measurer_(measurer),
        checks_(checks),
        request_(request),
        measuring_(measuring),
        measurements_(std::move(measurements)),
        prepared_(request.handle, request.problem) {}

  /// The plan, with all that it runs or names ready to run. Null if nothing fits, or if it is not
  /// known whether a plan is faster than what cuDNN would run, or if the client's own kernel is as
  /// fast. Throws Error.
  std::shared_ptr<const Plan> plan();
  /// Whether there is no plan because the client's own kernel is as fast. Nothing was built then.
  bool ownIsAsFast() const noexcept { return ownIsAsFast_; }
  /// Whether there is no plan yet, because it would only hold up a question for workspace.
  bool isLeftToCalls() const noexcept { return isLeftToCalls_; }
  /// Whether the kernels of that plan have passed their checks, or will never be checked.
  bool isChecked() const noexcept { return isChecked_; }

  /// The Pareto front under the limit. Throws Error.
  std::vector<Configuration> front();

 private:
  using Chosen = std::shared_ptr<const Plan>;
  /// What a plan's calls run: those that are replayed, and, if that differs, those that are not.
  struct Pair {
    Configuration main;
    Pace pace;
    std::optional<Configuration> enqueued;

    std::size_t workspaceBytes() const noexcept {
      return std::max(main.workspaceBytes, enqueued ? enqueued->workspaceBytes : 0);
    }
  };

  std::optional<Chosen> tryPlan();
  std::optional<Pair> choosePair(const PlanRequest& request);
  bool losesToOwn(const Pair& pair) const;
  bool mayBeLeftToCalls(const Pair& pair) const;
  std::optional<Chosen> tryPair(const PlanRequest& request, const std::optional<Pair>& pair);
  std::optional<std::vector<Configuration>> tryFront();
  std::optional<Configuration> choose(const PlanRequest& request, Pace pace);
  bool passes(const Plan& plan);
  bool confirm(const PlanRequest& request, const std::vector<Configuration>& configurations);
  bool knowsOwnChoice();
  bool isTooInaccurate(const Configuration& configuration);
  bool picksInaccurate();
  std::optional<bool> ranksInaccurateFirst();
  bool fastestIsInaccurate(const PlanRequest& whole);

  MeasurementStore& store_;
  Measurer& measurer_;
  KernelChecks& checks_;
  const PlanRequest& request_;
  const Measuring measuring_;
  Measurements measurements_;
  PreparedKernels prepared_;
  std::optional<bool> picksInaccurate_;
  bool isChecked_ = true, ownIsAsFast_ = false, isLeftToCalls_ = false;
};

}  // namespace ucudnn
