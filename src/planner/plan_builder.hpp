// Makes a plan that is ready to run from the optimizer's configuration.
#pragma once

#include <memory>

#include "benchmark/measurement.hpp"
#include "cuda/error.hpp"
#include "optimizer/configuration.hpp"
#include "plan/plan.hpp"
#include "planner/configuration_times.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// A kernel that cuDNN names but can't make ready to run.
class RefusedKernel : public Error {
 public:
  RefusedKernel(const Error& error, int ofBatch, Kernel refused)
      : Error(error), batch(ofBatch), kernel(refused) {}
  int batch;
  Kernel kernel;
};

/// Builds the kernels. If the request asks for determinism, queries are told of a deterministic
/// algorithm or none. `enqueued`: the plan for calls that are not replayed; null: the same one.
/// REQUIRES: the configuration comes from `candidates` of the same request and pace. Throws
/// RefusedKernel, or another Error.
std::shared_ptr<const Plan> buildPlan(PreparedKernels& kernels,
                                      const PlanRequest& request,
                                      const Configuration& configuration,
                                      Pace pace,
                                      const Measurements& measurements,
                                      std::shared_ptr<const Plan> enqueued = nullptr);

/// Chooses the algorithm that a query names for the plan. It is as deterministic as the plan,
/// because naming a deterministic algorithm at the call asks for a deterministic plan. Among those
/// it is the fastest undivided one that runs within the plan's own workspace, or else the one that
/// needs the least.
void nameAlgorithm(Plan& plan, const PlanRequest& request, const Measurements& measurements);

/// The plan, with `general` for calls that suit no engine. A query's answer holds for both.
std::shared_ptr<Plan> withGeneral(const Plan& plan, std::shared_ptr<const Plan> general);

/// The same plan, for all calls. Null if its engines need more workspace to add, or if it borrows.
/// Throws Error.
std::shared_ptr<const Plan> forAllCalls(PreparedKernels& kernels, const Plan& plan);

}  // namespace ucudnn
