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

cudnnStatus_t KernelTimer::enqueue(const KernelCall& call, int index) {
  const std::size_t microBatches = static_cast<std::size_t>(bufferBatch_ / call.batch);
  const std::size_t slice = static_cast<std::size_t>(index) % microBatches;
  const std::size_t sample = slice * static_cast<std::size_t>(call.batch);
  const bool accumulates = problem_.operation == Operation::kBackwardFilter && slice > 0;
  const bool addsZ = problem_.operation == Operation::kBiasActivationForward && problem_.addsZ != 0;

  ConvolutionPointers pointers;
  pointers.alpha = Factor::one(problem_).get();
  pointers.beta = (accumulates || addsZ ? Factor::one(problem_) : Factor::zero(problem_)).get();
  pointers.x = static_cast<char*>(buffers_.x) + sample * problem_.xBatchStrideBytes();
  pointers.w = buffers_.w;
  pointers.y = static_cast<char*>(buffers_.y) + sample * problem_.yBatchStrideBytes();
  pointers.workspace = call.offer.workspaceBytes > 0 ? buffers_.workspace : nullptr;
  pointers.workspaceBytes = call.offer.workspaceBytes;
  const BiasActivation fused{
      call.descriptors.y, pointers.y, biasDescriptor_.get(), bias_.get(), activation_.get()};
  return nativeConvolution(
      handle_, problem_.operation, call.descriptors, call.offer.kernel.algorithm, pointers, &fused);
}

bool KernelTimer::enqueueAll(const KernelCall& call, int first, int calls) {
  for (int i = 0; i < calls; ++i)
    if (enqueue(call, first + i) != CUDNN_STATUS_SUCCESS) return false;
  return true;
}

void KernelTimer::record(int event) {
  UCUDNN_CHECK_CUDA(cudaEventRecord(events_[static_cast<std::size_t>(event)].get(), stream_));
}

void KernelTimer::waitFor(int event) {
  UCUDNN_CHECK_CUDA(cudaEventSynchronize(events_[static_cast<std::size_t>(event)].get()));
}

double KernelTimer::sampleMs(int sample, int calls) const {
  const auto begin = static_cast<std::size_t>(sample);
  float elapsedMs = 0;
  UCUDNN_CHECK_CUDA(
      cudaEventElapsedTime(&elapsedMs, events_[begin].get(), events_[begin + 1].get()));
  return static_cast<double>(elapsedMs) / calls;
}

std::vector<double> KernelTimer::time(const KernelCall& call, Schedule schedule) {
  bool accepted = enqueueAll(call, 0, schedule.warmUps);
  for (int sample = 0; sample < schedule.samples && accepted; ++sample) {
    record(sample);
    accepted = enqueueAll(call, sample * schedule.calls, schedule.calls);
  }
  record(schedule.samples);
  waitFor(schedule.samples);
  std::vector<double> samples;
  if (!accepted) return samples;
  for (int sample = 0; sample < schedule.samples; ++sample)
    samples.push_back(sampleMs(sample, schedule.calls));
  return samples;
}

std::optional<double> KernelTimer::timeBehind(const KernelCall& ahead,
                                              int aheadCalls,
                                              const KernelCall& call,
                                              int calls) {
  bool accepted = enqueueAll(ahead, 0, aheadCalls);
  record(0);
  accepted = enqueueAll(call, 0, calls) && accepted;
  record(1);
  waitFor(1);
  if (!accepted) return std::nullopt;
  return sampleMs(0, calls);
}

}  // namespace ucudnn
