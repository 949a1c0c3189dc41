#include "benchmark/kernel_timer.hpp"

#include "kernels/factor.hpp"

namespace ucudnn {

KernelTimer::KernelTimer(cudnnHandle_t handle,
                         const Problem& problem,
                         const TensorBuffers& buffers,
                         int bufferBatch)
    : handle_(handle),
      problem_(problem),
      buffers_(buffers),
      bufferBatch_(bufferBatch),
      start_(makeEvent()),
      stop_(makeEvent()) {
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

std::optional<double> KernelTimer::time(const ConvolutionDescriptors& descriptors,
                                        int batch,
                                        const KernelOffer& offer,
                                        int calls,
                                        bool primed) {
  if (primed && enqueue(descriptors, batch, offer, 0) != CUDNN_STATUS_SUCCESS) return std::nullopt;
  UCUDNN_CHECK_CUDA(cudaEventRecord(start_.get(), stream_));
  for (int call = 0; call < calls; ++call)
    if (enqueue(descriptors, batch, offer, call) != CUDNN_STATUS_SUCCESS) {
      UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));  // the buffers are about to be reused
      return std::nullopt;
    }
  UCUDNN_CHECK_CUDA(cudaEventRecord(stop_.get(), stream_));
  UCUDNN_CHECK_CUDA(cudaEventSynchronize(stop_.get()));
  float elapsedMs = 0;
  UCUDNN_CHECK_CUDA(cudaEventElapsedTime(&elapsedMs, start_.get(), stop_.get()));
  return elapsedMs;
}

}  // namespace ucudnn
