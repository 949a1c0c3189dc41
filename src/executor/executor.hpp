// Runs a plan: one cuDNN call for each micro-batch, on the handle's stream.
#pragma once

#include "kernels/fitting.hpp"
#include "kernels/kernel.hpp"
#include "plan/call.hpp"
#include "plan/plan.hpp"

namespace ucudnn {

/// How far a call has come.
struct PlanRun {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  int done = 0;  ///< samples that were enqueued before an error: the first ones
};

/// Enqueues the plan's micro-batches one after another. They share the call's workspace, except
/// those that borrow its output. Synchronizes nothing and allocates nothing, so a call can be
/// captured in a CUDA graph. Forward and backward data write disjoint slices. Backward filter adds
/// up: the first micro-batch uses the caller's beta, later ones use 1. REQUIRES: the call's
/// descriptors have the values of plan.problem; its workspace holds plan.workspaceBytes; it
/// overwrites its output if steps borrow.
PlanRun runPlan(cudnnHandle_t handle, const Plan& plan, const ConvolutionCall& call) noexcept;

/// Whether cuDNN may have enqueued something before it returned the error. If not, it has refused
/// the call on the host.
bool mayHaveRun(cudnnStatus_t status) noexcept;

/// Whether the call gives the right result although some of the plan's micro-batches have run,
/// because it does not read what they have written.
bool isRepeatable(const Problem& problem, const ConvolutionCall& call) noexcept;

/// Runs the samples of a call after the first `done`, which have run, by algorithms that fit the
/// workspace; undivided if one does. REQUIRES: as for runPlan; the problem may be split.
cudnnStatus_t runRest(cudnnHandle_t handle,
                      const Problem& problem,
                      const ConvolutionCall& call,
                      int done,
                      Determinism determinism) noexcept;

/// Runs a client's execution plan as it is.
cudnnStatus_t runExecution(cudnnHandle_t handle, const ClientExecution& execution) noexcept;

/// Runs the call as it is, by cuDNN alone: by the client's execution plan, if there is one that
/// fits.
cudnnStatus_t runNative(cudnnHandle_t handle,
                        Operation operation,
                        const ConvolutionCall& call) noexcept;

}  // namespace ucudnn
