#include "benchmark/kernel_timer.hpp"

#include "kernels/factor.hpp"

namespace ucudnn {

KernelTimer::KernelTimer(cudnnHandle_t handle,
                         const Problem& problem,
                         const TensorBuffers& buffers,
                         int bufferBatch)
    : handle_(handle), problem_(problem), buffers_(buffers), bufferBatch_(bufferBatch) {
  for (int i = 0; i <= kMaximumSamples; ++i) events_.push_back(makeEvent());
  UCUDNN_CHECK_CUDNN(cudnnGetStream(handle, &stream_));
  if (problem.operation != Operation::kBiasActivationForward) return;
  Problem::Sizes sizes{1, problem.ySizes[1], 1, 1, 1};
  Problem::Sizes strides{problem.ySizes[1], 1, 1, 1, 1};
  biasDescriptor_ = makeOwned<TensorDescriptor>(cudnnCreateTensorDescriptor);
  UCUDNN_CHECK_CUDNN(cudnnSetTensorNdDescriptor(biasDescriptor_.get(),
                                                static_cast<cudnnDataType_t>(problem.yType),
                                                problem.dimensions,
                                                sizes.data(),
                                                strides.data()));
  activation_ = makeOwned<ActivationDescriptor>(cudnnCreateActivationDescriptor);
  UCUDNN_CHECK_CUDNN(
      cudnnSetActivationDescriptor(activation_.get(),
                                   static_cast<cudnnActivationMode_t>(problem.activation),
                                   CUDNN_NOT_PROPAGATE_NAN,
                                   0.0));
  const std::size_t bytes =
      static_cast<std::size_t>(problem.ySizes[1]) * elementBytes(problem.yType);
  bias_ = DeviceBuffer(bytes);
  UCUDNN_CHECK_CUDA(cudaMemsetAsync(bias_.get(), 0, bytes, stream_));
}

cudnnStatus_t KernelTimer::enqueue(const ConvolutionDescriptors& descriptors,
                                   int batch,
                                   const KernelOffer& offer,
                                   int call) {
  const std::size_t microBatches = static_cast<std::size_t>(bufferBatch_ / batch);
  const std::size_t slice = static_cast<std::size_t>(call) % microBatches;
  const std::size_t sample = slice * static_cast<std::size_t>(batch);
  const bool accumulates = problem_.operation == Operation::kBackwardFilter && slice > 0;
  const bool addsZ = problem_.operation == Operation::kBiasActivationForward && problem_.addsZ != 0;

  ConvolutionPointers pointers;
  pointers.alpha = Factor::one(problem_).get();
  pointers.beta = (accumulates || addsZ ? Factor::one(problem_) : Factor::zero(problem_)).get();
  pointers.x = static_cast<char*>(buffers_.x) + sample * problem_.xBatchStrideBytes();
  pointers.w = buffers_.w;
  pointers.y = static_cast<char*>(buffers_.y) + sample * problem_.yBatchStrideBytes();
  pointers.workspace = offer.workspaceBytes > 0 ? buffers_.workspace : nullptr;
  pointers.workspaceBytes = offer.workspaceBytes;
  const BiasActivation fused{
      descriptors.y, pointers.y, biasDescriptor_.get(), bias_.get(), activation_.get()};
  return nativeConvolution(
      handle_, problem_.operation, descriptors, offer.kernel.algorithm, pointers, &fused);
}

std::vector<double> KernelTimer::time(const ConvolutionDescriptors& descriptors,
                                      int batch,
                                      const KernelOffer& offer,
                                      Schedule schedule) {
  int call = 0;
  const auto run = [&](int calls) {
    for (int i = 0; i < calls; ++i, ++call)
      if (enqueue(descriptors, batch, offer, call) != CUDNN_STATUS_SUCCESS) return false;
    return true;
  };
  bool accepted = run(schedule.warmUps);
  call = 0;
  for (int sample = 0; sample < schedule.samples && accepted; ++sample) {
    UCUDNN_CHECK_CUDA(cudaEventRecord(events_[static_cast<std::size_t>(sample)].get(), stream_));
    accepted = run(schedule.calls);
  }
  const Event& last = events_[static_cast<std::size_t>(schedule.samples)];
  UCUDNN_CHECK_CUDA(cudaEventRecord(last.get(), stream_));
  UCUDNN_CHECK_CUDA(cudaEventSynchronize(last.get()));
  std::vector<double> samples;
  if (!accepted) return samples;
  for (std::size_t i = 0; i < static_cast<std::size_t>(schedule.samples); ++i) {
    float elapsedMs = 0;
    UCUDNN_CHECK_CUDA(cudaEventElapsedTime(&elapsedMs, events_[i].get(), events_[i + 1].get()));
    samples.push_back(static_cast<double>(elapsedMs) / schedule.calls);
  }
  return samples;
}

}  // namespace ucudnn
