#include "benchmark/kernel_timer.hpp"

#include <algorithm>

#include "benchmark/random_values.hpp"
#include "cuda/captured_calls.hpp"
#include "cuda/cudnn.hpp"
#include "kernels/factor.hpp"
#include "kernels/slices.hpp"
#include "problem/activation.hpp"
#include "problem/numbers.hpp"

namespace ucudnn {

KernelTimer::KernelTimer(cudnnHandle_t handle, const Problem& problem)
    : handle_(handle), problem_(problem) {
  for (int i = 0; i <= kMaximumSamples; ++i) events_.push_back(makeEvent());
  UCUDNN_CHECK_CUDNN(cudnn().getStream(handle, &stream_));
  if (problem.operation != Operation::kBiasActivationForward) return;
  Problem::Sizes sizes{1, problem.ySizes[1], 1, 1, 1};
  Problem::Sizes strides{problem.ySizes[1], 1, 1, 1, 1};
  biasDescriptor_ = makeOwned<TensorDescriptor>(cudnn().createTensorDescriptor);
  UCUDNN_CHECK_CUDNN(cudnn().setTensorNdDescriptor(biasDescriptor_.get(),
                                                   static_cast<cudnnDataType_t>(problem.yType),
                                                   problem.dimensions,
                                                   sizes.data(),
                                                   strides.data()));
  activation_ = makeOwned<ActivationDescriptor>(cudnn().createActivationDescriptor);
  UCUDNN_CHECK_CUDNN(cudnn().setActivationDescriptor(
      activation_.get(), modeOf(problem), nansOf(problem), activationValueOf(problem)));
}

cudnnStatus_t KernelTimer::enqueue(const PlacedCall& placed, int first, int calls, bool adds) {
  const TensorBuffers& buffers = placed.place.buffers;
  const bool addsZ = problem_.operation == Operation::kBiasActivationForward && problem_.addsZ != 0;
  ConvolutionPointers pointers;
  pointers.alpha = Factor::one(problem_).get();
  pointers.beta = (addsZ || adds ? Factor::one(problem_) : Factor::zero(problem_)).get();
  pointers.x = buffers.x;
  pointers.w = buffers.w;
  pointers.y = buffers.y;
  pointers.workspace = placed.workspaceBytes > 0 ? buffers.workspace : nullptr;
  pointers.workspaceBytes = placed.workspaceBytes;
  const BiasActivation fused{
      nullptr, placed.place.z, biasDescriptor_.get(), placed.place.bias, activation_.get()};
  const int all = placed.place.samples / placed.batch;
  auto status = CUDNN_STATUS_SUCCESS;
  for (int done = 0; done < calls && status == CUDNN_STATUS_SUCCESS;) {
    Slices slices(problem_, pointers, &fused);
    const int slice = (first + done) % all;
    if (slice > 0) slices.next(slice * placed.batch);
    const int run = std::min(calls - done, all - slice);
    int enqueued = 0;
    status = placed.kernel->enqueueRun(handle_, slices, placed.batch, run, &enqueued);
    done += run;
  }
  return status;
}

cudnnStatus_t KernelTimer::run(const PlacedCall& placed, bool adds) {
  return enqueue(placed, 0, 1, adds);
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

Timing KernelTimer::time(const PlacedCall& placed, Schedule schedule) {
  Timing timing;
  timing.status = enqueue(placed, 0, schedule.warmUps);
  for (int sample = 0; sample < schedule.samples && timing.status == CUDNN_STATUS_SUCCESS;
       ++sample) {
    record(sample);
    timing.status = enqueue(placed, sample * schedule.calls, schedule.calls);
  }
  record(schedule.samples);
  waitFor(schedule.samples);
  if (timing.status != CUDNN_STATUS_SUCCESS) return timing;
  for (int sample = 0; sample < schedule.samples; ++sample)
    timing.samples.push_back(sampleMs(sample, schedule.calls));
  return timing;
}

/// Fills the output with random values first: z may be in the same place, and a kernel that writes
/// nothing is then far off.
double KernelTimer::error(const PlacedCall& placed, const std::vector<ExactOutput>& exact) {
  const TensorBuffers& buffers = placed.place.buffers;
  const Problem part = problem_.withBatch(placed.batch);
  const bool isX = problem_.operation == Operation::kBackwardData;
  const bool isW = problem_.operation == Operation::kBackwardFilter;
  void* const output = isX ? buffers.x : isW ? buffers.w : buffers.y;
  const std::int32_t type = part.outputType();
  fillRandom(output, part.outputBytes(), RandomTensor::kY, type, stream_);
  if (enqueue(placed, 0, 1) != CUDNN_STATUS_SUCCESS) return kUnknownError;
  const std::size_t bytes = elementBytes(type);
  std::vector<char> result(exact.size() * bytes);
  for (std::size_t i = 0; i < exact.size(); ++i)
    UCUDNN_CHECK_CUDA(cudaMemcpyAsync(result.data() + i * bytes,
                                      advance(output, exact[i].offset * bytes),
                                      bytes,
                                      cudaMemcpyDeviceToHost,
                                      stream_));
  UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
  return normalizedError(exact, toDoubles(result.data(), exact.size(), type));
}

/// The host takes longest for the first launch. So the timed launches run behind a launch that is
/// not timed, or behind calls that take the device longer than a launch takes the host.
Timing KernelTimer::timeReplayed(const PlacedCall& placed, int calls, int samples, int ahead) {
  Timing timing;
  const auto captured = captureCalls(handle_, [&] { return enqueue(placed, 0, calls); });
  if (!captured) return timing;
  const GraphExec graph = instantiate(*captured);
  const auto launch = [&] { UCUDNN_CHECK_CUDA(cudaGraphLaunch(graph.get(), stream_)); };
  if (ahead > 0) {
    UCUDNN_CHECK_CUDA(cudaGraphUpload(graph.get(), stream_));
    timing.status = enqueue(placed, calls - ahead, ahead);
    if (timing.status != CUDNN_STATUS_SUCCESS) return timing;
  } else {
    launch();
  }
  for (int sample = 0; sample < samples; ++sample) {
    record(sample);
    launch();
  }
  record(samples);
  waitFor(samples);
  for (int sample = 0; sample < samples; ++sample)
    timing.samples.push_back(sampleMs(sample, calls));
  return timing;
}

}  // namespace ucudnn
