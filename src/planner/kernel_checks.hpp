// Kernels are checked before a plan of them runs for a client.
#pragma once

#include <vector>

#include "benchmark/kernel_check.hpp"
#include "plan/plan.hpp"
#include "planner/measurement_store.hpp"
#include "planner/request.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// Checks each kernel once for a problem and a batch size. A database that has noted the check
/// spares it on later starts. Thread-safe.
class KernelChecks {
 public:
  KernelChecks(MeasurementStore& store, Statistics& statistics)
      : store_(store), statistics_(statistics) {}

  enum class Outcome {
    kPassed,
    kPutOff,  ///< now nothing may be run or allocated: the plan must be checked later
    kFailed   ///< a kernel of it is barred from now on: the store has forgotten it
  };
  /// Checks what the plan runs (benchmark/kernel_check.hpp). For want of memory, and where cuDNN
  /// refuses to run a kernel, a plan passes unchecked: a program that has no memory left must not
  /// be slower for it.
  Outcome check(const PlanRequest& request, const Plan& plan, Measuring measuring);
  /// Checks the plan's kernels once more, because some are right the first times only.
  Outcome checkAgain(const PlanRequest& request, const Plan& plan);

 private:
  enum class Known { kNothing, kRight, kWrong };
  struct Purpose {
    Measuring measuring;
    bool isAgain;
  };
  using Steps = std::vector<const Plan::Step*>;
  Outcome check(const PlanRequest& request, const Plan& plan, Purpose purpose, KernelSet& right);
  bool addOpen(const PlanRequest& request, const Plan& plan, Purpose purpose, Steps& open) const;
  Outcome note(const PlanRequest& request,
               const Plan::Step& step,
               const KernelVerdict& verdict,
               KernelSet& right);
  Known known(const PlanRequest& request, const Plan::Step& step) const;

  MeasurementStore& store_;
  Statistics& statistics_;
  KnownOutputs knownOutputs_;
};

}  // namespace ucudnn
