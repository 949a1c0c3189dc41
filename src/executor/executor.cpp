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

cudnnStatus_t runNative(cudnnHandle_t handle,
                        Operation operation,
                        const ConvolutionCall& call) noexcept {
  return nativeConvolution(
      handle, operation, call.descriptors, call.algorithm, call.pointers, call.fused);
}

}  // namespace ucudnn
