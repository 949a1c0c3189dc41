// What runs until a problem is measured, where the call's own kernel lacks workspace.
#pragma once

#include <memory>
#include <optional>

#include "planner/kernel_checks.hpp"
#include "planner/measurement_store.hpp"
#include "planner/request.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// That kernel on parts of the batch, or whatever fits. Thread-safe.
class UnmeasuredPlans {
 public:
  UnmeasuredPlans(MeasurementStore& store, KernelChecks& checks, Statistics& statistics)
      : store_(store), checks_(checks), statistics_(statistics) {}

  /// As Planner::ownUnmeasured. Throws Error.
  std::shared_ptr<const Plan> ownKernelInParts(const PlanRequest& request, Measuring measuring);
  /// As Planner::anyThatFits. Throws Error.
  std::shared_ptr<const Plan> anyThatFits(const PlanRequest& request);

 private:
  /// Empty: it has not been looked for.
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
