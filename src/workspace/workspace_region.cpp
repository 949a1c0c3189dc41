#include "workspace/workspace_region.hpp"

namespace ucudnn {
namespace {

Event makeOrderingEvent() {
  cudaEvent_t event = nullptr;
  UCUDNN_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return Event(event);
}

}  // namespace

WorkspaceRegion::WorkspaceRegion(char* memory,
                                 std::size_t bytes,
                                 std::atomic<std::uint64_t>* uses,
                                 std::uint64_t capture,
                                 std::vector<std::shared_ptr<WorkspaceRegion>> predecessors)
    : memory_(memory),
      bytes_(bytes),
      uses_(uses),
      capture_(capture),
      event_(makeOrderingEvent()),
      lastUse_(uses != nullptr ? uses->load(std::memory_order_relaxed) : 0),
      predecessors_(std::move(predecessors)) {}

/// Predecessors are retired, so their state does not change any more. Within a capture the wait is
/// an edge of the graph; a stream that waits for itself adds none.
bool WorkspaceRegion::waitForEarlierUses(const CallStream& stream) noexcept {
  for (const auto& earlier : predecessors_)
    if (earlier->lastStream_ && *earlier->lastStream_ != stream.id &&
        cudaStreamWaitEvent(stream.stream, earlier->event_.get(), 0) != cudaSuccess)
      return false;
  predecessors_.clear();
  if (!lastStream_ || (!stream.capturing && *lastStream_ == stream.id)) return true;
  return cudaStreamWaitEvent(stream.stream, event_.get(), 0) == cudaSuccess;
}

WorkspaceRegion::Turn WorkspaceRegion::begin(const CallStream& stream,
                                             std::unique_lock<LongForkMutex>& lock) noexcept {
  if (stream.capturing != (capture_ != 0) || stream.capture != capture_) return Turn::kUnavailable;
  lock = std::unique_lock(mutex_);
  if (retired_) return Turn::kRetired;
  if (waitForEarlierUses(stream)) return Turn::kReady;
  static_cast<void>(cudaGetLastError());
  return Turn::kUnavailable;
}

void WorkspaceRegion::end(const CallStream& stream) noexcept {
  if (uses_ != nullptr)
    lastUse_.store(uses_->fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  lastStream_ = stream.id;
  if (cudaEventRecord(event_.get(), stream.stream) == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  // No other stream could wait for this use, so the host does. A capture that cannot record is
  // void.
  if (!stream.capturing) static_cast<void>(cudaStreamSynchronize(stream.stream));
}

void WorkspaceRegion::retire() {
  const std::lock_guard lock(mutex_);
  retired_ = true;
}

bool WorkspaceRegion::isBusy() const noexcept {
  if (!lastStream_) return false;
  try {
    const RelaxedCapture relaxed;
    const cudaError_t state = cudaEventQuery(event_.get());
    if (state != cudaSuccess) static_cast<void>(cudaGetLastError());
    return state != cudaSuccess;
  } catch (const std::exception&) {  // nobody knows
    return true;
  }
}

}  // namespace ucudnn
