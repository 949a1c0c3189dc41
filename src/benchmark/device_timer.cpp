#include "benchmark/device_timer.hpp"

#include <algorithm>
#include <cmath>

#include "benchmark/timing_limits.hpp"
#include "cuda/cudnn.hpp"
#include "kernels/engines.hpp"
#include "support/host_clock.hpp"

namespace ucudnn {
namespace {

bool isEngine(const TimingTask& task) noexcept {
  return task.call.offer.kernel.source == kEngines;
}

}  // namespace

DeviceTimer::DeviceTimer(cudnnHandle_t handle,
                         const BenchmarkRequest& request,
                         const TensorBuffers* buffers,
                         const Question& question)
    : handle_(handle), request_(request), buffers_(buffers), question_(question) {}

bool DeviceTimer::isReady(const KernelCall& call) {
  const KernelOffer& offer = call.offer;
  if (!request_.worksAside || !offer.compiled || built_.count({call.batch, offer.kernel}) != 0)
    return true;
  if (!background_)
    background_.emplace(request_.problem.withBatch(call.batch), offer.kernel, offer.calls);
  return background_->isOf(call.batch, offer.kernel, offer.calls) && background_->isDone();
}

/// Takes the kernel that another thread has built. Throws Error as building does.
void DeviceTimer::takeBuilt(const KernelCall& call) {
  const KernelOffer& offer = call.offer;
  if (!background_ || !background_->isOf(call.batch, offer.kernel, offer.calls) ||
      !background_->isDone())
    return;
  BackgroundBuild build = *std::move(background_);
  background_.reset();
  built_[{call.batch, offer.kernel}] = build.kernel();
}

void DeviceTimer::prepare() {
  if (timer_) return;
  UCUDNN_CHECK_CUDNN(cudnn().getStream(handle_, &stream_));
  const double beginMs = hostMs();
  UCUDNN_CHECK_CUDA(cudaStreamSynchronize(stream_));
  waitedMs_ += hostMs() - beginMs;
  begin_ = makeEvent();
  UCUDNN_CHECK_CUDA(cudaEventRecord(begin_.get(), stream_));
  if (buffers_ != nullptr) memory_.emplace(request_.problem, *buffers_, request_.room.sampleBytes);
  timer_.emplace(handle_, request_.problem);
}

bool DeviceTimer::mayTakeMemoryFor(const KernelCall& call) const {
  const Problem part = request_.problem.withBatch(call.batch);
  const std::size_t heldBytes = memory_ ? memory_->scratchBytes() : 0;
  return scratchBytesOf(part, call.offer.workspaceBytes, request_.hasZBesideY()) <=
         request_.memory.bytes(heldBytes);
}

void DeviceTimer::takeMemory(std::size_t workspaceBytes) {
  workspaceBytes_ = workspaceBytes;
  memory_.reset();
  memory_.emplace(
      request_.problem, workspaceBytes, request_.memory, request_.hasZBesideY(), stream_);
}

double DeviceTimer::finish() noexcept {
  built_.clear();
  return pause();
}

/// A kernel that was built with another handle is dropped.
void DeviceTimer::resume(cudnnHandle_t handle, const TensorBuffers* buffers) noexcept {
  if (handle != handle_) built_.clear();
  handle_ = handle;
  buffers_ = buffers;
}

double DeviceTimer::pause() noexcept {
  timer_.reset();
  memory_.reset();
  const Event begin = std::move(begin_);
  if (begin == nullptr) return 0;
  try {
    const Event end = makeEvent();
    float spentMs = 0;
    UCUDNN_CHECK_CUDA(cudaEventRecord(end.get(), stream_));
    UCUDNN_CHECK_CUDA(cudaEventSynchronize(end.get()));
    UCUDNN_CHECK_CUDA(cudaEventElapsedTime(&spentMs, begin.get(), end.get()));
    return static_cast<double>(spentMs);
  } catch (const Error&) {  // the wall time is known all the same
    return 0;
  }
}

std::optional<PlacedCall> DeviceTimer::place(const TimingTask& task) {
  const KernelCall& call = task.call;
  // A variant may need more workspace than all that cuDNN offers.
  if (buffers_ == nullptr && (!memory_ || call.offer.workspaceBytes > workspaceBytes_)) {
    if (!mayTakeMemoryFor(call)) return std::nullopt;
    takeMemory(std::max(call.offer.workspaceBytes, memory_ ? 0 : question_.largestWorkspace()));
  }
  const auto place = memory_->place(call.batch, call.offer.workspaceBytes);
  if (!place) return std::nullopt;
  return PlacedCall{build(task), call.batch, call.offer.workspaceBytes, *place};
}

std::shared_ptr<const BuiltKernel> DeviceTimer::build(const TimingTask& task) {
  const KernelCall& call = task.call;
  const auto known = built_.find({call.batch, call.offer.kernel});
  if (known != built_.end()) return known->second;
  auto kernel = buildKernel(handle_,
                            request_.problem.withBatch(call.batch),
                            call.descriptors,
                            call.offer.kernel,
                            call.offer.calls);
  const bool mayBeTimedAgain =
      task.how == TimingTask::How::kQuick || task.how == TimingTask::How::kGlance;
  if (mayBeTimedAgain) built_[{call.batch, call.offer.kernel}] = kernel;
  return kernel;
}

TimingOutcome::Status DeviceTimer::statusOf(cudnnStatus_t status) const {
  using Status = TimingOutcome::Status;
  if (status == CUDNN_STATUS_SUCCESS) return Status::kTimed;
  // A failure says nothing about the kernel if the caller has not handed over a tensor.
  const bool isWhole = buffers_ == nullptr ||
                       (buffers_->x != nullptr && buffers_->w != nullptr && buffers_->y != nullptr);
  if (isWhole && isRefusal(status)) return Status::kRefused;
  static_cast<void>(cudaGetLastError());  // not for the client to find
  return Status::kFailed;
}

TimingOutcome DeviceTimer::run(const TimingTask& task) {
  takeBuilt(task.call);
  const auto placed = place(task);
  if (!placed) return {TimingOutcome::Status::kNoMemory};
  using How = TimingTask::How;
  const Timing timing = timeAs(task, *placed);
  TimingOutcome outcome{statusOf(timing.status)};
  if (outcome.status != TimingOutcome::Status::kTimed) return outcome;
  outcome.timeMs = outcome.deviceMs = timing.samples.front();
  if (task.how == How::kQuick || task.how == How::kCareful) timeReplayed(task, *placed, outcome);
  if (task.withError) outcome.error = error(*placed);
  return outcome;
}

Timing DeviceTimer::timeAs(const TimingTask& task, const PlacedCall& placed) {
  switch (task.how) {
    case TimingTask::How::kGlance:
      return glance(task, placed);
    case TimingTask::How::kQuick:
      return quickTime(task, placed);
    default:
      return carefulTime(task, placed);
  }
}

double DeviceTimer::error(const PlacedCall& placed) {
  const auto [exact, isNew] = exact_.try_emplace(placed.batch);
  if (isNew) exact->second = exactOutputs(request_.problem.withBatch(placed.batch));
  // A few outputs may happen to be closer than the type's rounding promises.
  return std::max(timer_->error(placed, exact->second), leastError(request_.problem.outputType()));
}

/// Takes so many calls that the gaps between them and the events don't count. A call before them
/// may load the kernel's code, also for a long kernel: loading takes as much as a variant gains.
/// REQUIRES: an expected time.
Timing DeviceTimer::glance(const TimingTask& task, const PlacedCall& placed) {
  const double calls = std::ceil(kSampleMs / task.expectedMs);
  return timer_->time(placed, {1, static_cast<int>(std::min(calls, kMostGlanced)), 1});
}

/// Times one call. The first call of a kernel may load or compile it. So the timing is repeated if
/// no other size gives an expected time, or if the time is far beyond it. For a short call the
/// better of two counts: a hiccup of the host would otherwise leave the kernel out here and at
/// other sizes.
Timing DeviceTimer::quickTime(const TimingTask& task, const PlacedCall& placed) {
  const double expected = task.expectedMs;
  const auto fastest = [&](bool twice, int warmUps) {
    Timing timing = timer_->time(placed, {twice ? 2 : 1, 1, warmUps});
    if (!timing.samples.empty())
      timing.samples = {*std::min_element(timing.samples.begin(), timing.samples.end())};
    return timing;
  };
  const bool isFast = request_.tuning == Tuning::kFast;
  const bool isWhole = task.call.batch == request_.problem.batch();
  const bool isShort = expected > 0 && expected < kTakenTwiceMs;
  const double longMs = isWhole && !(isFast && isEngine(task)) ? kLongWholeMs
                        : isFast                               ? kLongFastMs
                                                               : kLongMs;
  Timing first = fastest(isShort, expected > longMs ? 0 : 1);
  if (first.samples.empty()) return first;
  const double firstMs = first.samples.front();
  // Twice the expected time: kernels scale with the batch at worst, so code must have been loaded
  // meanwhile.
  const bool isBelieved =
      expected > 0 ? firstMs < 2 * expected : isFast && firstMs >= kTakenTwiceMs;
  if (isBelieved) return first;
  Timing second = fastest(expected > 0 && firstMs < kTakenTwiceMs, 1);
  if (!second.samples.empty()) second.samples.front() = std::min(firstMs, second.samples.front());
  return second;
}

/// Takes samples until the task's limits are met.
Timing DeviceTimer::carefulTime(const TimingTask& task, const PlacedCall& placed) {
  StopRule rule(task.limits);
  const double pacedMs = isEngine(task) ? kHostPacedEngineMs : kHostPacedMs;
  while (!rule.done()) {
    const double callMs = std::max(rule.count() == 0 ? task.expectedMs : rule.median(), 1e-4);
    KernelTimer::Schedule schedule;
    schedule.samples = callMs >= rule.budgetMs() ? 1 : rule.minimumSamples();
    const double sampleMs = callMs < pacedMs ? kHostPacedSampleMs : kSampleMs;
    schedule.calls = static_cast<int>(std::ceil(std::min(sampleMs / callMs, 100.0)));
    Timing timing = timer_->time(placed, schedule);
    if (timing.samples.empty()) return timing;
    for (const double sample : timing.samples) rule.add(sample, sample * schedule.calls);
  }
  return {CUDNN_STATUS_SUCCESS, {rule.median()}};
}

/// Finds out what the device needs if the calls are replayed. For calls so long that it makes no
/// difference, this is `timeMs`.
void DeviceTimer::timeReplayed(const TimingTask& task,
                               const PlacedCall& placed,
                               TimingOutcome& outcome) {
  const double timeMs = outcome.timeMs;
  const bool isQuick = task.how == TimingTask::How::kQuick;
  const double hostPacedMs = isEngine(task) ? kCoversLaunchMs : kShortMs;
  if (timeMs >= (isQuick ? hostPacedMs : kReplayMattersMs)) return;
  const double leastMs = isQuick ? withoutGap(timeMs) : timeMs;
  const bool isPaced = leastMs < (isEngine(task) ? kHostPacedEngineMs : kShortMs);
  const int ahead = isPaced ? 0 : static_cast<int>(std::ceil(kCoversLaunchMs / leastMs));
  const bool isWhole = !isQuick && timeMs < kShortMs;
  const int calls =
      isWhole ? std::clamp(placed.place.samples / placed.batch, kFewReplayed, kMostReplayed)
              : kFewReplayed;
  outcome.isReplayTimed = false;
  if (!request_.replays) return;
  try {
    const int samples = isQuick || request_.tuning == Tuning::kFast ? 1 : 2;
    const Timing timing = timer_->timeReplayed(placed, calls, samples, ahead);
    if (timing.samples.empty()) return;
    const double fastest = *std::min_element(timing.samples.begin(), timing.samples.end());
    outcome.deviceMs = std::min(timeMs, std::max(fastest - kReplayMs / calls, fastest / 2));
    outcome.isReplayTimed = true;
  } catch (const OutOfMemory&) {
    outcome.lacksMemory = true;
  } catch (const Error&) {  // it can't be captured, so it is never replayed
    outcome.isReplayTimed = true;
  }
}

}  // namespace ucudnn
