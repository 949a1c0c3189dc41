// Kernels are checked before a plan of them runs for a client.
#pragma once

#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "benchmark/kernel_check.hpp"
#include "plan/plan.hpp"
#include "planner/measurement_store.hpp"
#include "planner/request.hpp"
#include "support/fork.hpp"
#include "support/statistics.hpp"

namespace ucudnn {

/// A problem's kin: those that differ from it in nothing but the batch, the image's size and the
/// strides, and whose image and strides have the same factors of two. One sample, an odd number and
/// an even number are no kin. Kernels that are wrong are so for a type, a filter, groups, odd or
/// unaligned sizes.
Problem kinOf(const Problem& problem) noexcept;

/// Checks each kernel once for a problem and a batch size. A database that has noted the check
/// spares it on later starts. An unmeasured plan's kernel may also be of a kind (kindOf) that has
/// passed for a problem's kin, or be the program's own, if its part and the whole are kin: such
/// plans serve programs whose sizes change with each call, and whose first step must not wait.
/// Thread-safe.
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
  /// Kinds of kernels that passed for a problem's kin, in this process.
  class Kin {
   public:
    /// `repeats`: with equal bits, too.
    bool has(const Problem& problem, Kernel kernel, bool repeats) const;
    void add(const Problem& problem, Kernel kernel, bool repeats);

   private:
    mutable ForkMutex mutex_;
    std::map<std::pair<Kernel, bool>, std::unordered_set<Problem, ProblemHash>> right_;
  };

  enum class Known { kNothing, kRight, kWrong };
  struct Purpose {
    Measuring measuring;
    bool isAgain;
  };
  using Steps = std::vector<const Plan::Step*>;
  /// Kernels that have passed, and what they were checked for.
  struct Passed {
    KernelSet right, repeated;
  };
  Outcome check(const PlanRequest& request, const Plan& plan, Purpose purpose, Passed& passed);
  bool addOpen(const PlanRequest& request, const Plan& plan, Purpose purpose, Steps& open) const;
  Outcome note(const PlanRequest& request,
               const Plan::Step& step,
               const KernelVerdict& verdict,
               Passed& passed);
  Known known(const PlanRequest& request, const Plan& plan, const Plan::Step& step) const;

  MeasurementStore& store_;
  Statistics& statistics_;
  KnownOutputs knownOutputs_;
  Kin kin_;
};

}  // namespace ucudnn
