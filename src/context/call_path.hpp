// What becomes of a convolution call.
#pragma once

#include "context/context.hpp"
#include "executor/executor.hpp"

namespace ucudnn {

/// The way of one call, from top to bottom: what can't run it hands it to what is below.
///
///  1. `run` reads the problem. What μ-cuDNN doesn't know is cuDNN's.
///  2. `OwnedCall`, where μ-cuDNN owns the workspace.
///  3. `runKnown`: the plan that the handle has at hand; now and then `runChecked`. `CallPlans`
///     looks for one that it doesn't have.
///  4. `runPlan`: of the plan's alternatives the one for such calls, replayed or enqueued.
///  5. `recover`, where cuDNN refuses a part of it.
///  6. `descend`: the rungs of calls without a plan, which are a table.
class CallPath {
 public:
  /// Runs a convolution: its plan, or, where there is none or it cannot be started, cuDNN as it is.
  static cudnnStatus_t run(Context& context,
                           Operation operation,
                           const ConvolutionCall& call,
                           LayerId layer) noexcept;

  /// Leaves a client's plan to cuDNN if its last call was, for a reason that still holds, and cuDNN
  /// runs it. Empty: all is to be looked up. `grantedBytes`: what the client was told.
  static std::optional<cudnnStatus_t> leaveAgain(Context& context,
                                                 const ClientExecution& execution,
                                                 std::size_t grantedBytes) noexcept;
  /// Runs a client's execution plan as it is.
  static cudnnStatus_t leave(Context& context, const ClientExecution& execution) noexcept;
  /// For the trace and the report. `problem`: null where its graph is not understood.
  static void noteLeft(Context& context,
                       Operation operation,
                       const Problem* problem,
                       const ClientExecution& execution,
                       const char* why,
                       cudnnStatus_t status) noexcept;

  /// `call` with the workspace that a plan has; `clients` with the one that others have. All must
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
    kSubstitute = 2,  ///< by another algorithm, where its own lacks workspace
    kOthersPlan = 4,  ///< by a plan that fits, made for another policy or limit
    kParts = 8,       ///< what was promised of a split before it could be measured
    kCudnn = kAsItIs | kSubstitute,
    kAll = kCudnn | kOthersPlan | kParts
  };
  /// Tries them from top to bottom, the next where cuDNN refuses one. `why`: there is no plan.
  cudnnStatus_t descend(Rungs rungs, const char* why) noexcept;

 private:
  static cudnnStatus_t runRead(Context& context,
                               const Problem* problem,
                               Operation operation,
                               const ConvolutionCall& call,
                               LayerId layer) noexcept;
  /// By cuDNN alone.
  static cudnnStatus_t runNoted(Context& context,
                                Operation operation,
                                const ConvolutionCall& call,
                                const char* why) noexcept;
  static void tell(Context& context,
                   Operation operation,
                   const Problem* problem,
                   cudnnStatus_t status) noexcept;

  /// It changes where the handle moves to another device.
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

  // True: the call has run, or failed for good. `status_` says which.
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
