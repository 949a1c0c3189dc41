// From the optimizer's configuration to a plan that is ready to run.
#pragma once

#include <memory>

#include "benchmark/measurement.hpp"
#include "cuda/error.hpp"
#include "optimizer/configuration.hpp"
#include "plan/plan.hpp"
#include "planner/configuration_times.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// A kernel that cuDNN names, but can't make ready to run.
class RefusedKernel : public Error {
 public:
  RefusedKernel(const Error& error, int ofBatch, Kernel refused)
      : Error(error), batch(ofBatch), kernel(refused) {}
  int batch;
  Kernel kernel;
};

/// Builds the kernels. A query names no algorithm that is not deterministic where only those are
/// asked for. `enqueued`: what runs where the call is not replayed; null: the same.
/// REQUIRES: the configuration comes from `candidates` of the same request and pace. Throws
/// RefusedKernel, or another Error.
std::shared_ptr<const Plan> buildPlan(PreparedKernels& kernels,
                                      const PlanRequest& request,
                                      const Configuration& configuration,
                                      Pace pace,
                                      const Measurements& measurements,
                                      std::shared_ptr<const Plan> enqueued = nullptr);

/// Chooses what a query names as the plan's algorithm: the fastest undivided one that is as
/// deterministic as the plan (naming a deterministic algorithm at the call asks for a deterministic
/// plan) and runs within the plan's own workspace, or else needs the least.
void nameAlgorithm(Plan& plan, const PlanRequest& request, const Measurements& measurements);

/// The plan with one for calls that suit no engine: a query's answer holds for both.
std::shared_ptr<Plan> withGeneral(const Plan& plan, std::shared_ptr<const Plan> general);

/// The same plan, for all calls. Null: its engines need more workspace to add, or it borrows.
/// Throws Error.
std::shared_ptr<const Plan> forAllCalls(PreparedKernels& kernels, const Plan& plan);

}  // namespace ucudnn
