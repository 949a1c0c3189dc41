#include "executor/executor.hpp"

#include <algorithm>

#include "kernels/fitting.hpp"
#include "kernels/slices.hpp"

namespace ucudnn {
namespace {

/// Builds an algorithm that fits the workspace with `*batch` samples. Halves `*batch` until one
/// does. Null if there is none.
std::shared_ptr<const BuiltKernel> buildWithin(cudnnHandle_t handle,
                                               const Problem& problem,
                                               const ConvolutionPointers& pointers,
                                               Determinism determinism,
                                               int* batch) {
  const std::size_t bytes = pointers.grantedBytes();
  for (; *batch > 0; *batch /= 2) {
    const Problem part = problem.withBatch(*batch);
    const auto descriptors = std::make_shared<const ProblemDescriptors>(part);
    if (const auto offer = algorithmThatFits(handle, part, descriptors->get(), bytes, determinism))
      return buildKernel(handle, part, descriptors, offer->kernel);
  }
  return nullptr;
}

}  // namespace

PlanRun runPlan(cudnnHandle_t handle, const Plan& plan, const ConvolutionCall& call) noexcept {
  if (plan.callersAlgorithm >= 0)
    return {nativeConvolution(handle,
                              plan.problem.operation,
                              call.descriptors,
                              plan.callersAlgorithm,
                              call.pointers,
                              call.fused)};
  PlanRun run;
  Slices slices(plan.problem, call.pointers, call.fused);
  for (const Plan::Step& step : plan.steps) {
    if (step.borrows)
      slices.borrow(step.workspaceBytes);
    else
      slices.giveBack();
    slices.placeOutputCopy(step.outputCopyBytes);
    int enqueued = 0;
    run.status = step.built->enqueueRun(handle, slices, step.batch, step.count, &enqueued);
    run.done += enqueued * step.batch;
    if (run.status != CUDNN_STATUS_SUCCESS) return run;
  }
  return run;
}

bool mayHaveRun(cudnnStatus_t status) noexcept {
#if CUDNN_VERSION >= 90000
  return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_EXECUTION_FAILED;
#else
  return status == CUDNN_STATUS_EXECUTION_FAILED || status == CUDNN_STATUS_MAPPING_ERROR;
#endif
}

bool isRepeatable(const Problem& problem, const ConvolutionCall& call) noexcept {
  if (call.fused != nullptr) return problem.addsZ == 0 || call.fused->z != call.pointers.y;
  return isZero(call.pointers.beta, problem);
}

cudnnStatus_t runRest(cudnnHandle_t handle,
                      const Problem& problem,
                      const ConvolutionCall& call,
                      int done,
                      Determinism determinism) noexcept {
  Slices slices(problem, call.pointers, call.fused);
  if (done > 0) slices.next(done);
  int left = problem.batch() - done;
  try {
    std::shared_ptr<const BuiltKernel> built;
    for (int batch = left; left > 0; left -= batch) {
      if (!built || batch > left) {
        batch = std::min(batch, left);
        built = buildWithin(handle, problem, slices.pointers(), determinism, &batch);
      }
      if (!built) return CUDNN_STATUS_NOT_SUPPORTED;
      const cudnnStatus_t status = built->enqueue(handle, slices.pointers(), slices.fused());
      if (status != CUDNN_STATUS_SUCCESS) return status;
      slices.next(batch);
    }
    return CUDNN_STATUS_SUCCESS;
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception&) {  // out of host memory
    return CUDNN_STATUS_ALLOC_FAILED;
  }
}

cudnnStatus_t runExecution(cudnnHandle_t handle, const ClientExecution& execution) noexcept {
#if UCUDNN_HAS_ENGINES
  return cudnn().backendExecute(handle, execution.plan, execution.pack);
#else
  static_cast<void>(handle);
  static_cast<void>(execution);
  return CUDNN_STATUS_NOT_SUPPORTED;
#endif
}

cudnnStatus_t runNative(cudnnHandle_t handle,
                        Operation operation,
                        const ConvolutionCall& call) noexcept {
  if (call.execution != nullptr && call.execution->fits(call.pointers))
    return runExecution(handle, *call.execution);
  if (call.execution != nullptr && (call.algorithm < 0 || !areThere(call.descriptors)))
    return CUDNN_STATUS_NOT_SUPPORTED;
  return nativeConvolution(
      handle, operation, call.descriptors, call.algorithm, call.pointers, call.fused);
}

}  // namespace ucudnn
