#include "executor/executor.hpp"

#include "kernels/factor.hpp"

namespace ucudnn {
namespace {

const void* advance(const void* pointer, std::size_t bytes) noexcept {
  return static_cast<const char*>(pointer) + bytes;
}

/// Walks a call's pointers over the micro-batches.
class Slices {
 public:
  Slices(const Plan& plan, const ConvolutionCall& call) noexcept
      : problem_(plan.problem), pointers_(call.pointers) {
    if (call.fused != nullptr) fused_ = *call.fused;
  }

  const ConvolutionPointers& pointers() const noexcept { return pointers_; }

  /// The bias stays; z is cut as y is, and is described as y's micro-batch is.
  const BiasActivation* fused(cudnnTensorDescriptor_t zDescriptor) noexcept {
    fused_.zDescriptor = zDescriptor;
    return &fused_;
  }

  void next(int batch) noexcept {
    const auto samples = static_cast<std::size_t>(batch);
    pointers_.x = advance(pointers_.x, samples * problem_.xBatchStrideBytes());
    pointers_.y = advance(pointers_.y, samples * problem_.yBatchStrideBytes());
    if (fused_.z != nullptr) fused_.z = advance(fused_.z, samples * problem_.yBatchStrideBytes());
    if (problem_.operation == Operation::kBackwardFilter)
      pointers_.beta = Factor::one(problem_).get();
  }

 private:
  const Problem& problem_;
  ConvolutionPointers pointers_;
  BiasActivation fused_;
};

}  // namespace

cudnnStatus_t runPlan(cudnnHandle_t handle,
                      const Plan& plan,
                      const ConvolutionCall& call,
                      int* enqueued) noexcept {
  *enqueued = 0;
  if (plan.callersAlgorithm >= 0)
    return nativeConvolution(handle,
                             plan.problem.operation,
                             call.descriptors,
                             plan.callersAlgorithm,
                             call.pointers,
                             call.fused);
  Slices slices(plan, call);
  for (const Plan::Step& step : plan.steps) {
    const ConvolutionDescriptors descriptors = step.descriptors->get();
    for (int i = 0; i < step.count; ++i) {
      const cudnnStatus_t status = nativeConvolution(handle,
                                                     plan.problem.operation,
                                                     descriptors,
                                                     step.kernel.algorithm,
                                                     slices.pointers(),
                                                     slices.fused(descriptors.y));
      if (status != CUDNN_STATUS_SUCCESS) return status;
      ++*enqueued;
      slices.next(step.batch);
    }
  }
  return CUDNN_STATUS_SUCCESS;
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
  const void* const beta = call.pointers.beta;
  return problem.xType == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(beta) == 0
                                            : *static_cast<const float*>(beta) == 0;
}

cudnnStatus_t completePlan(cudnnHandle_t handle,
                           const Plan& plan,
                           const ConvolutionCall& call,
                           int enqueued,
                           Determinism determinism) noexcept {
  Slices slices(plan, call);
  int left = plan.problem.batch();
  for (const Plan::Step& step : plan.steps)
    for (int i = 0; i < step.count && enqueued > 0; ++i, --enqueued) {
      slices.next(step.batch);
      left -= step.batch;
    }
  try {
    const Problem rest = plan.problem.withBatch(left);
    const ProblemDescriptors owned(rest);
    const ConvolutionDescriptors descriptors = owned.get();
    const ConvolutionPointers& pointers = slices.pointers();
    const auto offer =
        algorithmThatFits(handle,
                          rest,
                          descriptors,
                          pointers.workspace != nullptr ? pointers.workspaceBytes : 0,
                          determinism);
    if (!offer) return CUDNN_STATUS_NOT_SUPPORTED;
    return nativeConvolution(handle,
                             rest.operation,
                             descriptors,
                             offer->kernel.algorithm,
                             pointers,
                             slices.fused(descriptors.y));
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception&) {  // out of host memory
    return CUDNN_STATUS_ALLOC_FAILED;
  }
}

cudnnStatus_t runNative(cudnnHandle_t handle,
                        Operation operation,
                        const ConvolutionCall& call) noexcept {
  return nativeConvolution(
      handle, operation, call.descriptors, call.algorithm, call.pointers, call.fused);
}

}  // namespace ucudnn
