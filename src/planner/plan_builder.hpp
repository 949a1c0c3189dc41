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

/// The same plan, for all calls. Null: its engines need more workspace to add, or it borrows.
/// Throws Error.
std::shared_ptr<const Plan> forAllCalls(PreparedKernels& kernels, const Plan& plan);

}  // namespace ucudnn
