// The machine's captures.
#include <algorithm>
#include <memory>
#include <utility>

#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/machine.hpp"

namespace ucudnn::simulator {

namespace {

bool prohibitsUnsafeCalls(const Capture& capture, const ThreadState& thread) {
  if (capture.mode == cudaStreamCaptureModeRelaxed) return false;
  if (thread.captureMode == cudaStreamCaptureModeRelaxed) return false;
  if (capture.thread == thread.id) return true;
  return thread.captureMode == cudaStreamCaptureModeGlobal &&
         capture.mode == cudaStreamCaptureModeGlobal;
}

void joinTips(std::vector<std::size_t>& tips, const std::vector<std::size_t>& more) {
  for (const std::size_t tip : more) {
    if (std::find(tips.begin(), tips.end(), tip) == tips.end()) tips.push_back(tip);
  }
}

}  // namespace

cudaError_t Machine::checkUnsafeCallLocked() {
  cudaError_t error = cudaSuccess;
  for (const std::shared_ptr<Capture>& capture : captures_) {
    if (!prohibitsUnsafeCalls(*capture, thisThread())) continue;
    capture->invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

cudaError_t Machine::checkUnsafeCall() {
  const std::lock_guard<std::mutex> lock(state_);
  return checkUnsafeCallLocked();
}

cudaError_t unsafeCall() {
  return Machine::instance().checkUnsafeCall();
}

// The legacy stream waits for blocking streams, and what is captured can't be waited for.
cudaError_t Machine::checkImplicit(const Stream& stream) {
  if (!stream.legacy) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  forEachStream(stream.device, [&](Stream& other) {
    if (!other.blocking() || !other.capturing) return;
    other.capturing->capture->invalid = true;
    error = cudaErrorStreamCaptureImplicit;
  });
  return error;
}

cudaError_t Machine::beginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Turn turn(*this, handle);
  if (turn.stream == nullptr) return cudaErrorInvalidResourceHandle;
  Stream& stream = *turn.stream;
  if (stream.legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream.capturing) return cudaErrorIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->id = ++lastCaptureId_;
  capture->origin = stream.id;
  capture->mode = mode;
  capture->thread = thisThread().id;
  captures_.push_back(capture);
  stream.capturing = CapturePoint{std::move(capture), {}, {}};
  return cudaSuccess;
}

cudaError_t Machine::record(Stream& stream, Work work) {
  CapturePoint& point = *stream.capturing;
  Capture& capture = *point.capture;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  point.order.advance(stream.id);
  capture.log.add(stream.id, point.order, work);
  capture.nodes.push_back({std::move(work), point.tips});
  point.tips = {capture.nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t Machine::waitCaptured(Stream& stream, const CapturePoint& point) {
  Capture& capture = *point.capture;
  if (capture.ended) return cudaErrorStreamCaptureIsolation;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream.legacy) {
    capture.invalid = true;
    return cudaErrorStreamCaptureImplicit;
  }
  if (!stream.capturing) {
    stream.capturing = point;
    return cudaSuccess;
  }
  if (stream.capturing->capture != point.capture) {
    stream.capturing->capture->invalid = capture.invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  joinTips(stream.capturing->tips, point.tips);
  stream.capturing->order.join(point.order);
  return cudaSuccess;
}

void Machine::finishCapture(Capture& capture) {
  capture.ended = true;
  for (int number = 0; number < static_cast<int>(devices_.size()); ++number) {
    forEachStream(number, [&](Stream& stream) {
      if (stream.capturing && stream.capturing->capture.get() == &capture) stream.capturing.reset();
    });
  }
  captures_.erase(std::remove_if(captures_.begin(),
                                 captures_.end(),
                                 [&](const auto& other) { return other.get() == &capture; }),
                  captures_.end());
}

cudaError_t Machine::endCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  Turn turn(*this, handle);
  if (turn.stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (!turn.stream->capturing) return cudaErrorIllegalState;
  const CapturePoint end = *turn.stream->capturing;
  Capture& capture = *end.capture;
  if (capture.origin != turn.stream->id) return cudaErrorStreamCaptureUnmatched;
  if (capture.mode != cudaStreamCaptureModeRelaxed && capture.thread != thisThread().id) {
    return cudaErrorStreamCaptureWrongThread;
  }
  bool joined = true;
  for (int number = 0; number < static_cast<int>(devices_.size()); ++number) {
    forEachStream(number, [&](const Stream& stream) {
      if (!stream.capturing || stream.capturing->capture.get() != &capture) return;
      joined = joined && end.order.covers(stream.capturing->order);
    });
  }
  finishCapture(capture);
  if (capture.invalid || !joined) {
    if (capture.graph != nullptr) eraseGraph(capture.graph);
    return capture.invalid ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
  }
  auto nodes = std::make_shared<const GraphNodes>(std::move(capture.nodes));
  if (capture.into != nullptr) {
    Graph* const extended = graphs_.find(capture.into);
    if (extended == nullptr) return cudaErrorInvalidValue;
    extended->nodes = std::move(nodes);
    nameNodes(capture.into, *extended);
    *graph = capture.into;
    return cudaSuccess;
  }
  if (capture.graph == nullptr)
    capture.graph =
        graphs_.add(std::make_unique<Graph>(Graph{std::move(nodes), turn.stream->device}));
  else
    graphs_.find(capture.graph)->nodes = std::move(nodes);
  *graph = capture.graph;
  countHandle("graph", 1);
  return cudaSuccess;
}

cudaError_t Machine::captureInfo(cudaStream_t handle, CaptureInfo* info, With with) {
  const std::lock_guard<std::mutex> lock(state_);
  Stream* const stream = findStream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  // Asking the legacy stream is an error too, but CUDA leaves the capture valid.
  if (stream->legacy) {
    bool blocked = false;
    forEachStream(stream->device, [&](const Stream& other) {
      blocked = blocked || (other.blocking() && other.capturing);
    });
    if (blocked) return cudaErrorStreamCaptureImplicit;
  }
  *info = {};
  if (!stream->capturing) return cudaSuccess;
  Capture& capture = *stream->capturing->capture;
  info->status =
      capture.invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  info->id = capture.id;
  if (with == With::kStatus || capture.invalid) return cudaSuccess;
  if (capture.into == nullptr && capture.graph == nullptr)
    capture.graph = graphs_.add(
        std::make_unique<Graph>(Graph{std::make_shared<const GraphNodes>(), stream->device}));
  info->graph = capture.into != nullptr ? capture.into : capture.graph;
  return cudaSuccess;
}

}  // namespace ucudnn::simulator
