#include "context/workspace_region.hpp"

#include <algorithm>
#include <unordered_map>

namespace ucudnn {
namespace {

Event makeOrderingEvent() {
  cudaEvent_t event = nullptr;
  UCUDNN_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return Event(event);
}

std::uint64_t idOf(cudaStream_t stream) {
#if CUDART_VERSION >= 12000
  unsigned long long id = 0;
  UCUDNN_CHECK_CUDA(cudaStreamGetId(stream, &id));
  return id;
#else
  // Before CUDA 12 a stream has no id of its own; the per-thread default stream is told apart by
  // the address of something that each thread has.
  static thread_local char mark = 0;
  if (stream == cudaStreamPerThread) return reinterpret_cast<std::uintptr_t>(&mark);
  return reinterpret_cast<std::uintptr_t>(stream);
#endif
}

/// The ids of streams by their handles, as they were last asked for. A handle may be given to
/// another stream when its own has been destroyed; every call outside a capture asks again.
struct StreamIds {
  std::mutex mutex;  ///< guards `byHandle`
  std::unordered_map<cudaStream_t, std::uint64_t> byHandle;
};

StreamIds& streamIds() {
  static StreamIds& instance =
      *new StreamIds;  // never destroyed: handles are used in static destructors
  return instance;
}

/// Asks for the id and remembers it.
std::uint64_t askId(cudaStream_t stream) {
  static thread_local CallStream last;
  const std::uint64_t id = idOf(stream);
  if (last.stream == stream && last.id == id) return id;
  StreamIds& ids = streamIds();
  const std::lock_guard lock(ids.mutex);
  ids.byHandle[stream] = id;
  last = {stream, id, false};
  return id;
}

/// The id of a stream that is being captured: it cannot be asked for, for that would void the
/// capture. A stream that has never been seen gets one that no stream has, so that it is taken for
/// another than all others.
std::uint64_t rememberedId(cudaStream_t stream) {
  constexpr std::uint64_t kUnseen = std::uint64_t{1} << 63;
  StreamIds& ids = streamIds();
  const std::lock_guard lock(ids.mutex);
  const auto known = ids.byHandle.find(stream);
  return known != ids.byHandle.end() ? known->second
                                     : kUnseen | reinterpret_cast<std::uintptr_t>(stream);
}

}  // namespace

CallStream streamOf(cudnnHandle_t handle) {
  CallStream call;
  UCUDNN_CHECK_CUDNN(cudnnGetStream(handle, &call.stream));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  // The legacy default stream cannot be asked while another stream is captured, and is never
  // captured itself; but nothing may wait for it then either.
  if (cudaStreamIsCapturing(call.stream, &status) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    call.capturing = true;
  } else {
    call.capturing = status != cudaStreamCaptureStatusNone;
  }
  call.id = call.capturing ? rememberedId(call.stream) : askId(call.stream);
  return call;
}

WorkspaceRegion::WorkspaceRegion(char* memory,
                                 std::size_t bytes,
                                 std::atomic<std::uint64_t>& uses,
                                 std::vector<std::shared_ptr<WorkspaceRegion>> predecessors)
    : memory_(memory),
      bytes_(bytes),
      uses_(uses),
      event_(makeOrderingEvent()),
      predecessors_(std::move(predecessors)),
      lastUse_(uses.load(std::memory_order_relaxed)) {}

/// A predecessor is retired: what it says does not change any more.
bool WorkspaceRegion::waitForEarlierUses(const CallStream& stream) noexcept {
  for (const auto& earlier : predecessors_)
    if (earlier->lastStream_ && *earlier->lastStream_ != stream.id &&
        cudaStreamWaitEvent(stream.stream, earlier->event_.get(), 0) != cudaSuccess)
      return false;
  predecessors_.clear();
  return !lastStream_ || *lastStream_ == stream.id ||
         cudaStreamWaitEvent(stream.stream, event_.get(), 0) == cudaSuccess;
}

/// Whether the uses on other streams are over: a capture cannot wait for them.
bool WorkspaceRegion::isQuietFor(const CallStream& stream) const noexcept {
  const auto isOver = [&](const WorkspaceRegion& region) {
    return !region.lastStream_ || *region.lastStream_ == stream.id || !region.isBusy();
  };
  return isOver(*this) && std::all_of(predecessors_.begin(),
                                      predecessors_.end(),
                                      [&](const auto& earlier) { return isOver(*earlier); });
}

WorkspaceRegion::Turn WorkspaceRegion::begin(const CallStream& stream,
                                             std::unique_lock<std::mutex>& lock) noexcept {
  lock = std::unique_lock(mutex_);
  if (retired_) return Turn::kRetired;
  if (boundTo_ && *boundTo_ != stream.id) return Turn::kUnavailable;
  if (stream.capturing) {
    if (!isQuietFor(stream)) return Turn::kUnavailable;
    predecessors_.clear();
    boundTo_ = stream.id;
    return Turn::kReady;
  }
  if (waitForEarlierUses(stream)) return Turn::kReady;
  static_cast<void>(cudaGetLastError());
  return Turn::kUnavailable;
}

void WorkspaceRegion::end(const CallStream& stream) noexcept {
  lastUse_ = uses_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (stream.capturing) return;
  lastStream_ = stream.id;
  if (cudaEventRecord(event_.get(), stream.stream) == cudaSuccess) return;
  // Nobody could wait for it: so it is waited for here.
  static_cast<void>(cudaGetLastError());
  static_cast<void>(cudaStreamSynchronize(stream.stream));
}

bool WorkspaceRegion::retire(const std::vector<std::shared_ptr<WorkspaceRegion>>& regions) {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& region : regions) {
    locks.emplace_back(region->mutex_);
    if (region->boundTo_) return false;
  }
  for (const auto& region : regions) region->retired_ = true;
  return true;
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

bool WorkspaceRegion::isBound() const {
  const std::lock_guard lock(mutex_);
  return boundTo_.has_value();
}

std::uint64_t WorkspaceRegion::lastUse() const {
  const std::lock_guard lock(mutex_);
  return lastUse_;
}

}  // namespace ucudnn
