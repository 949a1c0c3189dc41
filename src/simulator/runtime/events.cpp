// The machine's events.
#include <memory>

#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/memory.hpp"

namespace ucudnn::simulator {

namespace {

/// An event of a capture stands for nothing that runs: asking for it voids the capture.
cudaError_t refuseCaptured(const CapturePoint& point) {
  point.capture->invalid = true;
  return cudaErrorCapturedEvent;
}

}  // namespace

cudaEvent_t Machine::createEvent(unsigned int flags) {
  countHandle("event", 1);
  const std::lock_guard<std::mutex> lock(state_);
  return events_.add(std::make_unique<Event>(Event{thisThread().device, flags}));
}

cudaError_t Machine::destroyEvent(cudaEvent_t event) {
  const std::lock_guard<std::mutex> lock(state_);
  if (!events_.erase(event)) return cudaErrorInvalidResourceHandle;
  countHandle("event", -1);
  return cudaSuccess;
}

cudaError_t Machine::recordEvent(cudaEvent_t handle, cudaStream_t streamHandle) {
  Turn turn(*this, streamHandle);
  Event* const event = events_.find(handle);
  if (turn.stream == nullptr || event == nullptr) return cudaErrorInvalidResourceHandle;
  Stream& stream = *turn.stream;
  if (event->device != stream.device) return cudaErrorInvalidResourceHandle;
  if (stream.capturing) {
    if (stream.capturing->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    event->captured = *stream.capturing;
    event->recorded.reset();
    return cudaSuccess;
  }
  if (const cudaError_t error = checkImplicit(stream)) return error;
  startWork(stream);
  event->captured.reset();
  event->recorded = stream.reached;
  return cudaSuccess;
}

cudaError_t Machine::waitEvent(cudaStream_t streamHandle, cudaEvent_t handle) {
  Turn turn(*this, streamHandle);
  const Event* const event = events_.find(handle);
  if (turn.stream == nullptr || event == nullptr) return cudaErrorInvalidResourceHandle;
  Stream& stream = *turn.stream;
  if (event->captured) return waitCaptured(stream, *event->captured);
  if (const cudaError_t error = checkImplicit(stream)) return error;
  if (!event->recorded) return cudaSuccess;
  if (stream.capturing) {
    stream.capturing->capture->invalid = true;
    return cudaErrorStreamCaptureIsolation;
  }
  startWork(stream);
  stream.reached.join(*event->recorded);
  return cudaSuccess;
}

cudaError_t Machine::synchronizeEvent(cudaEvent_t handle) {
  {
    const std::lock_guard<std::mutex> lock(state_);
    const Event* const event = events_.find(handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->captured) return refuseCaptured(*event->captured);
    if (const cudaError_t error = checkUnsafeCallLocked()) return error;
    if (event->recorded) hostWaits(*event->recorded);
  }
  Memory::instance().checkGuards();
  return cudaSuccess;
}

cudaError_t Machine::queryEvent(cudaEvent_t handle) {
  const std::lock_guard<std::mutex> lock(state_);
  const Event* const event = events_.find(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->captured) return refuseCaptured(*event->captured);
  if (const cudaError_t error = checkUnsafeCallLocked()) return error;
  return event->recorded ? pollMoment(*event->recorded) : cudaSuccess;
}

cudaError_t Machine::elapsedTime(float* ms, cudaEvent_t startHandle, cudaEvent_t endHandle) {
  const std::lock_guard<std::mutex> lock(state_);
  const Event* const start = events_.find(startHandle);
  const Event* const end = events_.find(endHandle);
  if (start == nullptr || end == nullptr) return cudaErrorInvalidResourceHandle;
  if (start->captured || end->captured) return cudaErrorCapturedEvent;
  const bool timed = ((start->flags | end->flags) & cudaEventDisableTiming) == 0;
  if (!timed || !start->recorded || !end->recorded || start->device != end->device) {
    return cudaErrorInvalidResourceHandle;
  }
  const Ticks now = thisThread().now;
  if (start->recorded->time > now || end->recorded->time > now) return cudaErrorNotReady;
  *ms = static_cast<float>(msFromTicks(end->recorded->time - start->recorded->time));
  return cudaSuccess;
}

}  // namespace ucudnn::simulator
