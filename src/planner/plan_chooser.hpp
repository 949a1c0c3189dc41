// Chooses among what has been measured for one request.
#pragma once

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
  /// known whether a plan is faster than what cuDNN would run. Throws Error.
  std::shared_ptr<const Plan> plan();
  /// Whether the kernels of that plan have passed their checks, or will never be checked.
  bool isChecked() const noexcept { return isChecked_; }

  /// The Pareto front under the limit. Throws Error.
  std::vector<Configuration> front();

 private:
  using Chosen = std::shared_ptr<const Plan>;

  std::optional<Chosen> tryPlan();
  std::optional<Chosen> tryPair(const PlanRequest& request);
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
  bool isChecked_ = true;
};

}  // namespace ucudnn
