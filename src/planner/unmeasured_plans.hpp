// Plans that run until a problem is measured, if the call's own kernel lacks workspace.
#pragma once

#include <memory>
#include <optional>

#include "planner/kernel_checks.hpp"
#include "planner/measurement_store.hpp"
#include "planner/request.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// Runs that kernel on parts of the batch, with copies of ours or in blocks where that is faster,
/// or any kernel that fits. Thread-safe.
class UnmeasuredPlans {
 public:
  UnmeasuredPlans(MeasurementStore& store, KernelChecks& checks, Statistics& statistics)
      : store_(store), checks_(checks), statistics_(statistics) {}

  /// See Planner::ownUnmeasured. Throws Error.
  std::shared_ptr<const Plan> ownKernelInParts(const PlanRequest& request, Measuring measuring);
  /// See Planner::anyThatFits. Throws Error.
  std::shared_ptr<const Plan> anyThatFits(const PlanRequest& request);

 private:
  /// Empty if it has not been looked for.
  std::optional<std::shared_ptr<const Plan>> known(const PlanRequest& request,
                                                   UnmeasuredPlan::Kind kind) const;
  std::shared_ptr<const Plan> keep(const PlanRequest& request,
                                   UnmeasuredPlan::Kind kind,
                                   std::shared_ptr<const Plan> plan);

  MeasurementStore& store_;
  KernelChecks& checks_;
  Statistics& statistics_;
};

}  // namespace ucudnn
