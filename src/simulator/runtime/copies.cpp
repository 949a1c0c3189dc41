#include "simulator/runtime/copies.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simulator/runtime/device_models.hpp"
#include "simulator/runtime/machine.hpp"
#include "simulator/runtime/memory.hpp"

namespace ucudnn::simulator {

namespace {

// The driver copies pageable memory to pinned memory of its own first.
constexpr double kPageableGigabytesPerSecond = 10;
// What each row of a pitched copy takes over the link beside its bytes.
constexpr double kRowMs = 1.4e-4;
// With arithmetic off nobody looks at device memory, and touching it would cost more than all else.
constexpr std::size_t kSkippedFromWhenOff = std::size_t{1} << 20;

bool isDeviceMemory(const std::optional<Block>& block) {
  return block && block->kind == MemoryKind::kDevice;
}

bool within(const Block& block, const void* pointer, std::size_t bytes) {
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(pointer) - block.base);
  return bytes <= block.bytes - offset;
}

std::size_t extent(std::size_t width, std::size_t height, std::size_t pitch) {
  return width == 0 || height == 0 ? 0 : (height - 1) * pitch + width;
}

/// Whether the pointer may stand where `kind` says device (or host) memory. Pinned memory may stand
/// anywhere.
bool mayStand(const std::optional<Block>& block, bool wantsDevice) {
  if (wantsDevice) return block.has_value();
  return !block || block->kind != MemoryKind::kDevice;
}

/// A range beyond its allocation: real hardware copies it as long as the pages are mapped.
bool inRange(const std::optional<Block>& block,
             const void* pointer,
             std::size_t bytes,
             const char* what) {
  if (!block || within(*block, pointer, bytes)) return true;
  reportViolation(std::string(what) +
                  " beyond the end of its allocation: " + std::to_string(bytes) + " bytes");
  return false;
}

/// Where a copy goes.
struct Route {
  bool toDevice, fromDevice, pageable;

  CopyEngine engine() const {
    if (toDevice == fromDevice) return toDevice ? CopyEngine::kMultiprocessors : CopyEngine::kNone;
    return toDevice ? CopyEngine::kToDevice : CopyEngine::kToHost;
  }
};

Access access(const void* base, const CopyShape& shape, std::size_t pitch, bool write) {
  if (shape.height == 1 || shape.width == pitch)
    return {base, extent(shape.width, shape.height, pitch), write};
  return {base, shape.width, write, shape.height, pitch};
}

bool isCapturing(cudaStream_t stream) {
  CaptureInfo info;
  return Machine::instance().captureInfo(stream, &info) == cudaSuccess &&
         info.status != cudaStreamCaptureStatusNone;
}

double copyMs(int device, std::size_t bytes, std::size_t rows, Route route) {
  const DeviceModel& model = deviceModel(device);
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  // On the device each byte is read and written.
  const double seconds =
      route.toDevice && route.fromDevice ? 2 * gigabytes / model.memoryGigabytesPerSecond
      : route.pageable
          ? gigabytes / std::min(kPageableGigabytesPerSecond, model.linkGigabytesPerSecond)
          : gigabytes / model.linkGigabytesPerSecond;
  const bool isOnDevice = route.toDevice && route.fromDevice;
  return model.launchMs + seconds * 1e3 + (isOnDevice ? 0 : static_cast<double>(rows) * kRowMs);
}

cudaError_t enqueueCopy(cudaStream_t stream, Work work, bool wait) {
  Machine& machine = Machine::instance();
  if (wait) {
    if (const cudaError_t error = machine.checkUnsafeCall()) return error;
  }
  const cudaError_t error = machine.enqueue(stream, std::move(work), Machine::From::kAnyDevice);
  if (error != cudaSuccess || !wait) return error;
  return machine.synchronizeStream(stream);
}

bool directionFits(cudaMemcpyKind kind,
                   const std::optional<Block>& target,
                   const std::optional<Block>& source) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return mayStand(target, false) && mayStand(source, false);
    case cudaMemcpyHostToDevice:
      return mayStand(target, true) && mayStand(source, false);
    case cudaMemcpyDeviceToHost:
      return mayStand(target, false) && mayStand(source, true);
    case cudaMemcpyDeviceToDevice:
      return mayStand(target, true) && mayStand(source, true);
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

}  // namespace

cudaError_t copy(void* target,
                 const void* source,
                 CopyShape shape,
                 cudaMemcpyKind kind,
                 cudaStream_t stream,
                 Wait wait) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  const std::size_t written = extent(shape.width, shape.height, shape.targetPitch);
  const std::size_t read = extent(shape.width, shape.height, shape.sourcePitch);
  if (written == 0) return cudaSuccess;
  if (target == nullptr || source == nullptr) return cudaErrorInvalidValue;
  const std::optional<Block> to = Memory::instance().find(target);
  const std::optional<Block> from = Memory::instance().find(source);
  if (!directionFits(kind, to, from)) return cudaErrorInvalidValue;
  if (!inRange(to, target, written, "a copy's target") ||
      !inRange(from, source, read, "a copy's source")) {
    return cudaErrorInvalidValue;
  }
  const Route route = {isDeviceMemory(to), isDeviceMemory(from), !to || !from};
  const bool onDevice = route.toDevice && route.fromDevice;
  const int device = isDeviceMemory(to) ? to->device : thisThread().device;
  const std::size_t bytes = shape.width * shape.height;
  const bool skipped = (route.toDevice || route.fromDevice) && bytes >= kSkippedFromWhenOff;
  const auto run = [=] {
    if (skipped && !isAnythingComputed()) return;
    for (std::size_t row = 0; row < shape.height; ++row) {
      std::memmove(static_cast<char*>(target) + row * shape.targetPitch,
                   static_cast<const char*>(source) + row * shape.sourcePitch,
                   shape.width);
    }
  };
  Work work = {"copy", copyMs(device, bytes, shape.height, route), run, {}};
  work.engine = route.engine();
  if (to) work.accesses.push_back(access(target, shape, shape.targetPitch, true));
  if (from) work.accesses.push_back(access(source, shape, shape.sourcePitch, false));
  // Between device memory even cudaMemcpy returns at once, and a copy to pageable memory returns
  // when it is done (CUDA: "API synchronization behavior").
  const bool waits = wait == Wait::kHost ? !onDevice : !to && !isCapturing(stream);
  return enqueueCopy(stream, std::move(work), waits);
}

cudaError_t fill(void* target, int value, FillShape shape, cudaStream_t stream, Wait wait) {
  const std::size_t bytes = shape.width * shape.height;
  if (bytes == 0) return cudaSuccess;
  const std::size_t written = extent(shape.width, shape.height, shape.pitch);
  const std::optional<Block> block = Memory::instance().find(target);
  if (!block) return cudaErrorInvalidValue;
  if (!inRange(block, target, written, "a fill's target")) return cudaErrorInvalidValue;
  const bool skipped = isDeviceMemory(block) && bytes >= kSkippedFromWhenOff;
  const auto run = [=] {
    if (skipped && !isAnythingComputed()) return;
    for (std::size_t row = 0; row < shape.height; ++row)
      std::memset(static_cast<char*>(target) + row * shape.pitch, value, shape.width);
  };
  const DeviceModel& model = deviceModel(block->device);
  const double writingMs = static_cast<double>(bytes) / 1e6 / model.memoryGigabytesPerSecond;
  const CopyShape rows = {shape.width, shape.height, shape.pitch, shape.pitch};
  Work work = {"fill", model.launchMs + writingMs, run, {access(target, rows, shape.pitch, true)}};
  work.filledWith = value & 0xff;
  // cudaMemset is asynchronous unless the target is pinned host memory.
  return enqueueCopy(stream, std::move(work), wait == Wait::kHost && !isDeviceMemory(block));
}

}  // namespace ucudnn::simulator
