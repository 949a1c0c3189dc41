#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/settings.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "simulator/beside.hpp"
#include "simulator/runtime/accounting.hpp"
#include "simulator/runtime/device_models.hpp"
#include "simulator/runtime/memory.hpp"

namespace ucudnn::simulator {

namespace {
thread_local bool isBesideOthers = false;
}

bool runsBesideOthers() {
  return isBesideOthers;
}

ThreadState& thisThread() {
  static std::atomic<std::uint64_t> lastId{0};
  static thread_local ThreadState state;
  if (state.id == 0) state.id = ++lastId;
  return state;
}

void execute(const Work& work) {
  if (!work.execute) return;
  thisThread().executing = true;
  work.execute();
  thisThread().executing = false;
}

void Moment::join(const Moment& other) {
  time = std::max(time, other.time);
  order.join(other.order);
}

Machine& Machine::instance() {
  static Machine* const machine = [] {
    auto* const made = new Machine;
    ::pthread_atfork([] { instance().lockAll(); },
                     [] { instance().unlockAll(); },
                     [] { instance().unlockAll(); });
    return made;
  }();
  return *machine;
}

/// In the order in which calls take them.
void Machine::lockAll() {
  for (const auto& each : devices_) each->execution.lock();
  state_.lock();
  Memory::instance().lock();
  Accounting::instance().lock();
}

void Machine::unlockAll() {
  Accounting::instance().unlock();
  Memory::instance().unlock();
  state_.unlock();
  for (const auto& each : devices_) each->execution.unlock();
}

Machine::Machine() {
  for (std::size_t i = 0; i < devices().size(); ++i) {
    devices_.push_back(std::make_unique<DeviceState>());
    devices_.back()->legacy =
        Stream{nextStreamId(), static_cast<int>(i), cudaStreamDefault, 0, true};
  }
}

Machine::Turn::Turn(Machine& machine, cudaStream_t handle) : state(machine.state_) {
  const Stream* found = machine.findStream(handle);
  if (found == nullptr) return;
  std::mutex& mutex = machine.device(found->device).execution;
  state.unlock();
  execution = std::unique_lock<std::mutex>(mutex);
  state.lock();
  stream = machine.findStream(handle);  // another thread may have destroyed it in between
}

Stream& Machine::perThreadStream() {
  const ThreadState& thread = thisThread();
  const auto key = std::make_pair(thread.id, thread.device);
  const auto found = perThread_.find(key);
  if (found != perThread_.end()) return found->second;
  const Stream stream = {nextStreamId(), thread.device, cudaStreamDefault, 0, false};
  return perThread_.emplace(key, stream).first->second;
}

Stream* Machine::findStream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &device(thisThread().device).legacy;
  if (handle == cudaStreamPerThread) return &perThreadStream();
  return streams_.find(handle);
}

void Machine::startWork(Stream& stream) {
  Moment& reached = stream.reached;
  reached.time = std::max(reached.time, thisThread().now);
  reached.order.join(hostOrder_);
  if (stream.legacy) {
    reached.join(device(stream.device).departed);
    forEachStream(stream.device, [&](const Stream& other) {
      if (other.blocking()) reached.join(other.reached);
    });
  } else if (stream.blocking()) {
    reached.join(device(stream.device).legacy.reached);
  }
}

/// Moves the stream's clock. A copy waits for those before it in its direction; within the device,
/// for the kernel under way.
void Machine::run(Stream& stream, const Work& work) {
  Ticks& time = stream.reached.time;
  DeviceState& state = device(stream.device);
  const Ticks duration = ticksFromMs(work.durationMs);
  if (work.engine == CopyEngine::kNone) {
    state.computed = {time, time + duration};
    time += duration;
  } else if (work.engine == CopyEngine::kMultiprocessors) {
    const Ticks launched = time + ticksFromMs(deviceModel(stream.device).launchMs);
    if (state.computed.first <= launched) time = std::max(time, state.computed.second);
    time += duration;
  } else {
    Ticks& copied = state.copied[static_cast<int>(work.engine)];
    time = copied = std::max(time, copied) + duration;
  }
}

cudaStream_t Machine::createStream(unsigned int flags, int priority) {
  countHandle("stream", 1);
  const std::lock_guard<std::mutex> lock(state_);
  return streams_.add(std::make_unique<Stream>(
      Stream{nextStreamId(), thisThread().device, flags, priority, false}));
}

cudaError_t Machine::destroyStream(cudaStream_t handle) {
  Turn turn(*this, handle);
  if (turn.stream == nullptr || streams_.find(handle) == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  Stream& stream = *turn.stream;
  if (stream.capturing) stream.capturing->capture->invalid = true;
  device(stream.device).departed.join(stream.reached);
  destroyed_.push_back(stream.id);
  streams_.erase(handle);
  countHandle("stream", -1);
  return cudaSuccess;
}

cudaError_t Machine::enqueue(cudaStream_t handle, Work work, From from) {
  Turn turn(*this, handle);
  if (turn.stream == nullptr) return cudaErrorInvalidResourceHandle;
  Stream& stream = *turn.stream;
  if (from == From::kCurrentDevice && stream.device != thisThread().device) {
    return cudaErrorInvalidResourceHandle;
  }
  if (stream.capturing) return record(stream, std::move(work));
  if (const cudaError_t error = checkImplicit(stream)) return error;
  thisThread().now += ticksFromMs(1e-3 * static_cast<double>(settings().callMicroseconds));
  startWork(stream);
  isBesideOthers = false;
  forEachStream(stream.device, [&](const Stream& other) {
    if (other.id != stream.id && other.reached.time > stream.reached.time) isBesideOthers = true;
  });
  run(stream, work);
  stream.reached.order.advance(stream.id);
  log_.add(stream.id, stream.reached.order, work);
  turn.state.unlock();
  execute(work);
  return cudaSuccess;
}

void Machine::hostWaits(const Moment& moment) {
  ThreadState& thread = thisThread();
  thread.now = std::max(thread.now, moment.time);
  hostOrder_.join(moment.order);
  log_.prune(hostOrder_);
  forgetDestroyedStreams();
}

void Machine::forgetDestroyedStreams() {
  const auto forget = [this](StreamId id) {
    if (log_.mentions(id)) return false;
    hostOrder_.forget(id);
    graphExecs_.forEach([id](GraphExec& exec) { exec.finished.order.forget(id); });
    for (auto& [when, references] : dropped_) when.order.forget(id);
    events_.forEach([id](Event& event) {
      if (event.recorded) event.recorded->order.forget(id);
    });
    for (int number = 0; number < static_cast<int>(devices_.size()); ++number) {
      device(number).departed.order.forget(id);
      forEachStream(number, [id](Stream& stream) { stream.reached.order.forget(id); });
    }
    return true;
  };
  destroyed_.erase(std::remove_if(destroyed_.begin(), destroyed_.end(), forget), destroyed_.end());
}

cudaError_t Machine::synchronizeStream(cudaStream_t handle) {
  {
    Turn turn(*this, handle);
    if (turn.stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (turn.stream->capturing) {
      turn.stream->capturing->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    if (const cudaError_t error = checkImplicit(*turn.stream)) return error;
    if (const cudaError_t error = checkUnsafeCallLocked()) return error;
    if (turn.stream->legacy) startWork(*turn.stream);
    hostWaits(turn.stream->reached);
  }
  Memory::instance().checkGuards();
  return cudaSuccess;
}

cudaError_t Machine::pollMoment(const Moment& moment) {
  ThreadState& thread = thisThread();
  const bool ready = moment.time <= thread.now;
  thread.now = std::max(thread.now, moment.time);
  if (!ready) return cudaErrorNotReady;
  hostWaits(moment);
  return cudaSuccess;
}

cudaError_t Machine::queryStream(cudaStream_t handle) {
  Turn turn(*this, handle);
  if (turn.stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (turn.stream->capturing) {
    turn.stream->capturing->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (const cudaError_t error = checkImplicit(*turn.stream)) return error;
  if (turn.stream->legacy) startWork(*turn.stream);
  return pollMoment(turn.stream->reached);
}

/// The driver refuses it during a capture, which is then void (seen on an H200, CUDA 13.0; the
/// manual is silent).
cudaError_t Machine::streamId(cudaStream_t handle, unsigned long long* id) {
  Turn turn(*this, handle);
  if (turn.stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (turn.stream->capturing) {
    turn.stream->capturing->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  *id = turn.stream->id;
  return cudaSuccess;
}

cudaError_t Machine::deviceSynchronize() {
  const int number = thisThread().device;
  {
    const std::lock_guard<std::mutex> executing(device(number).execution);
    const std::lock_guard<std::mutex> lock(state_);
    Moment all = device(number).departed;
    bool capturing = false;
    forEachStream(number, [&](Stream& stream) {
      all.join(stream.reached);
      if (!stream.capturing) return;
      stream.capturing->capture->invalid = true;
      capturing = true;
    });
    if (capturing) return cudaErrorStreamCaptureUnsupported;
    if (const cudaError_t error = checkUnsafeCallLocked()) return error;
    hostWaits(all);
  }
  Memory::instance().checkGuards();
  return cudaSuccess;
}

void Machine::waitForDevice() {
  const int number = thisThread().device;
  {
    const std::lock_guard<std::mutex> executing(device(number).execution);
    const std::lock_guard<std::mutex> lock(state_);
    Moment all = device(number).departed;
    forEachStream(number, [&](const Stream& stream) { all.join(stream.reached); });
    hostWaits(all);
  }
  Memory::instance().checkGuards();
}

cudaError_t Machine::deviceReset() {
  if (const cudaError_t error = deviceSynchronize()) return error;
  const int number = thisThread().device;
  const std::lock_guard<std::mutex> executing(device(number).execution);
  const std::lock_guard<std::mutex> lock(state_);
  Memory::instance().releaseDevice(number);
  countHandle("stream", -streams_.eraseIf([&](const Stream& stream) {
    if (stream.device != number) return false;
    destroyed_.push_back(stream.id);
    return true;
  }));
  countHandle("event",
              -events_.eraseIf([&](const Event& event) { return event.device == number; }));
  return cudaSuccess;
}

cudaError_t Machine::enablePeer(int peer) {
  const int current = thisThread().device;
  const std::lock_guard<std::mutex> lock(state_);
  return peers_.emplace(current, peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}

cudaError_t Machine::disablePeer(int peer) {
  const int current = thisThread().device;
  const std::lock_guard<std::mutex> lock(state_);
  return peers_.erase({current, peer}) != 0 ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
}

bool Machine::reachesPeer(int from, int peer) {
  const std::lock_guard<std::mutex> lock(state_);
  return from == peer || peers_.count({from, peer}) != 0;
}

cudaError_t enqueue(cudaStream_t stream, Work work) {
  return Machine::instance().enqueue(stream, std::move(work), Machine::From::kCurrentDevice);
}

}  // namespace ucudnn::simulator
