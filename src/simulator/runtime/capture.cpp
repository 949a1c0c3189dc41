// The machine's captures and graphs.
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
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  auto nodes = std::make_shared<const GraphNodes>(std::move(capture.nodes));
  *graph = graphs_.add(std::make_unique<Graph>(Graph{std::move(nodes)}));
  countHandle("graph", 1);
  return cudaSuccess;
}

cudaError_t Machine::captureInfo(cudaStream_t handle, CaptureInfo* info) {
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
  const Capture& capture = *stream->capturing->capture;
  info->status =
      capture.invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  info->id = capture.id;
  return cudaSuccess;
}

cudaError_t Machine::instantiate(cudaGraphExec_t* exec, cudaGraph_t handle) {
  const std::lock_guard<std::mutex> lock(state_);
  const Graph* const graph = graphs_.find(handle);
  if (graph == nullptr) return cudaErrorInvalidValue;
  *exec = graphExecs_.add(std::make_unique<GraphExec>(GraphExec{graph->nodes}));
  countHandle("graphExec", 1);
  return cudaSuccess;
}

cudaError_t Machine::launch(cudaGraphExec_t handle, cudaStream_t streamHandle) {
  Turn turn(*this, streamHandle);
  const GraphExec* const exec = graphExecs_.find(handle);
  if (exec == nullptr) return cudaErrorInvalidValue;
  if (turn.stream == nullptr) return cudaErrorInvalidResourceHandle;
  Stream& stream = *turn.stream;
  if (stream.capturing) {
    stream.capturing->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (const cudaError_t error = checkImplicit(stream)) return error;
  startWork(stream);
  stream.reached.order.advance(stream.id);
  const Ticks start = stream.reached.time;
  const std::shared_ptr<const GraphNodes> nodes = exec->nodes;
  std::vector<Ticks> ends;
  for (const GraphNode& node : *nodes) {
    Ticks ready = start;
    for (const std::size_t dependency : node.dependencies)
      ready = std::max(ready, ends[dependency]);
    ends.push_back(ready + ticksFromMs(node.work.durationMs));
    stream.reached.time = std::max(stream.reached.time, ends.back());
    log_.add(stream.id, stream.reached.order, node.work);
  }
  turn.state.unlock();
  for (const GraphNode& node : *nodes) execute(node.work);
  return cudaSuccess;
}

cudaError_t Machine::destroyGraph(cudaGraph_t graph) {
  const std::lock_guard<std::mutex> lock(state_);
  if (!graphs_.erase(graph)) return cudaErrorInvalidValue;
  countHandle("graph", -1);
  return cudaSuccess;
}

cudaError_t Machine::destroyGraphExec(cudaGraphExec_t exec) {
  const std::lock_guard<std::mutex> lock(state_);
  if (!graphExecs_.erase(exec)) return cudaErrorInvalidValue;
  countHandle("graphExec", -1);
  return cudaSuccess;
}

cudaError_t Machine::nodeCount(cudaGraph_t handle, std::size_t* count) {
  const std::lock_guard<std::mutex> lock(state_);
  const Graph* const graph = graphs_.find(handle);
  if (graph == nullptr) return cudaErrorInvalidValue;
  *count = graph->nodes->size();
  return cudaSuccess;
}

bool Machine::isGraphExec(cudaGraphExec_t exec) {
  const std::lock_guard<std::mutex> lock(state_);
  return graphExecs_.find(exec) != nullptr;
}

}  // namespace ucudnn::simulator
