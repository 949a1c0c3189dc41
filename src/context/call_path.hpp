// Decides how a convolution call runs, and runs it.
#pragma once

#include "context/context.hpp"
#include "executor/executor.hpp"

namespace ucudnn {

/// The way of one call, from top to bottom. A step that can't run it hands it to the next.
///
/// 1. `run` hands a call on host memory to `HostCall`, and reads the problem. cuDNN runs problems
/// that μ-cuDNN doesn't know.
/// 2. `OwnedCall`, if μ-cuDNN owns the workspace.
/// 3. `runKnown`: the plan that the handle has at hand; now and then `runChecked`. If it has none,
///    `CallPlans` looks for one.
/// 4. `runPlan`: the plan's alternative for such calls, replayed or enqueued.
/// 5. `recover`, if cuDNN refuses a part of it.
/// 6. `descend`: the rungs of calls without a plan, which are a table.
class CallPath {
 public:
  /// Runs a convolution by its plan. Without one, or if it cannot be started, cuDNN runs the call
  /// as it is.
  static cudnnStatus_t run(Context& context,
                           Operation operation,
                           const ConvolutionCall& call,
                           LayerId layer) noexcept;

  /// The same for a call whose tensors are on the device.
  static cudnnStatus_t runOnDevice(Context& context,
                                   Operation operation,
                                   const ConvolutionCall& call,
                                   LayerId layer) noexcept;

  /// Leaves a client's plan to cuDNN if its last call was left, for a reason that still holds, and
  /// cuDNN runs it. Empty: everything must be looked up. `grantedBytes`: the workspace that the
  /// client was told.
  static std::optional<cudnnStatus_t> leaveAgain(Context& context,
                                                 const ClientExecution& execution,
                                                 std::size_t grantedBytes) noexcept;
  /// Runs a client's execution plan as it is.
  static cudnnStatus_t leave(Context& context, const ClientExecution& execution) noexcept;
  /// Notes a call for the trace and the report. `problem` is null if its graph is not understood.
  static void noteLeft(Context& context,
                       Operation operation,
                       const Problem* problem,
                       const ClientExecution& execution,
                       const char* why,
                       cudnnStatus_t status) noexcept;

  /// `call` has the workspace for a plan, `clients` the workspace for everything else. All must
  /// outlive the path.
  CallPath(Context& context,
           const HotPlans::Key& key,
           const ConvolutionCall& call,
           const ConvolutionCall& clients) noexcept
      : context_(context), key_(key), call_(call), clients_(clients) {}

  /// REQUIRES: this handle accepts the plan (CheckedPlans).
  cudnnStatus_t runPlan(const Plan& plan) noexcept;

  /// The rungs of a call without a plan.
  enum Rungs : unsigned {
    kAsItIs = 1,      ///< by the client's own kernel
    kSubstitute = 2,  ///< by another algorithm, if its own lacks workspace
    kOthersPlan = 4,  ///< by a plan that fits, made for another policy or limit
    kParts = 8,       ///< in parts, as was promised before a split could be measured
    kCudnn = kAsItIs | kSubstitute,
    kAll = kCudnn | kOthersPlan | kParts
  };
  /// Tries the rungs from top to bottom, the next one if cuDNN refuses one. `why`: the lack of a
  /// plan.
  cudnnStatus_t descend(Rungs rungs, const char* why) noexcept;

 private:
  static cudnnStatus_t runRead(Context& context,
                               const Problem* problem,
                               Operation operation,
                               const ConvolutionCall& call,
                               LayerId layer) noexcept;
  /// Runs the call by cuDNN alone.
  static cudnnStatus_t runNoted(Context& context,
                                Operation operation,
                                const ConvolutionCall& call,
                                const char* why) noexcept;
  static void tell(Context& context,
                   Operation operation,
                   const Problem* problem,
                   cudnnStatus_t status) noexcept;

  /// Changes if the handle moves to another device.
  const Snapshot& now() const noexcept { return *context_.now_; }
  cudnnStatus_t runKnown() noexcept;
  cudnnStatus_t runChecked(HotPlans::Entry& hot) noexcept;
  cudnnStatus_t runGeneral(const Plan& plan) noexcept;
  bool replay(const Plan& plan, bool* clientsGraph) noexcept;
  cudnnStatus_t enqueue(const Plan& plan) noexcept;
  cudnnStatus_t recover(const Plan& plan, const PlanRun& run) noexcept;
  void giveUp(const Plan& plan, cudnnStatus_t refusal) noexcept;
  void noteRun(const Plan& plan, bool replayed) noexcept;
  Determinism determinism() const noexcept;

  // These return true if the call has run, or failed for good. `status_` says which.
  bool runAsItIs() noexcept;
  bool runSubstitute() noexcept;
  bool runOthersPlan() noexcept;
  bool runParts() noexcept;

  Context& context_;
  const HotPlans::Key& key_;
  const ConvolutionCall& call_;
  const ConvolutionCall& clients_;
  const char* why_ = "";
  cudnnStatus_t status_ = CUDNN_STATUS_NOT_SUPPORTED;
};

}  // namespace ucudnn
