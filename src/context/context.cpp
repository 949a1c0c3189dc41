#include "context/context.hpp"

#include <utility>

#include "support/log.hpp"

namespace ucudnn {

Context::Context(cudnnHandle_t handle, int device, Settings settings, Origin origin)
    : handle_(handle),
      origin_(origin),
      now_(std::make_shared<const Snapshot>(handle, device, std::move(settings), nullptr, false)) {
  noteThread();
}

Context::~Context() {
  if (now_->replays) now_->replays->forget(owner());
  captured_->freeGone();
}

void Context::setSettings(Settings settings, PlansFile file) {
  replaceSnapshot(now_->device, std::move(settings), file);
}

/// The former snapshot is destroyed with the last question that holds it.
void Context::replaceSnapshot(int device, Settings settings, PlansFile file) {
  std::shared_ptr<const Snapshot> other = std::make_shared<const Snapshot>(
      handle_, device, std::move(settings), now_.get(), file == PlansFile::kKept);
  {
    const std::lock_guard lock(exchanging_);
    now_.swap(other);
  }
  if (other->replays) other->replays->forget(owner());
  hotPlans_.clear();
  hostPlans_.clear();
  passPlans_.clear();
  defaultLimits_.clear();
}

std::shared_ptr<const Snapshot> Context::snapshot() const {
  const std::lock_guard lock(exchanging_);
  return now_;
}

void Context::retire() noexcept {
  const std::lock_guard lock(questions_);
  isRetired_ = true;
  if (now_->replays) now_->replays->forget(owner());
}

void Context::follow(const WorkspaceLimit& limit) {
  if (limitChanges_ == limit.changes) return;
  Settings settings = now_->settings;
  settings.workspaceLimitBytes = limit.bytes;
  setSettings(std::move(settings));
  limitChanges_ = limit.changes;
}

DeviceScope Context::useDevice() {
  if (origin_ == Origin::kAdopted) {
    int current = 0;
    UCUDNN_CHECK_CUDA(cudaGetDevice(&current));
    if (current != now_->device) moveTo(current);
  }
  return DeviceScope(now_->device);
}

bool Context::followDevice() noexcept {
  if (origin_ == Origin::kCreated) return true;
  try {
    const DeviceScope scope = useDevice();
    return true;
  } catch (const std::exception& error) {
    logInfo("a call is left to cuDNN: {}", error.what());
    return false;
  }
}

void* Context::allocate(std::size_t bytes) {
  const DeviceScope scope = useDevice();
  if (now_->staging) {
    const std::lock_guard lock(now_->staging->mutex());
    return now_->staging->allocate(bytes, settings().deviceMemoryBytes);
  }
  void* memory = nullptr;
  UCUDNN_CHECK_CUDA(cudaMalloc(&memory, bytes));
  return memory;
}

void Context::free(void* memory) {
  const DeviceScope scope = useDevice();
  if (now_->staging) {
    const std::lock_guard lock(now_->staging->mutex());
    return now_->staging->release(memory);
  }
  if (placeOf(memory) == Place::kDevice)
    UCUDNN_CHECK_CUDA(cudaFree(memory));
  else
    UCUDNN_CHECK_CUDA(cudaFreeHost(memory));
}

/// On another device only what the client has said holds: its settings, and the limits that its
/// queries named. Everything else about the handle is forgotten.
void Context::moveTo(int device) {
  replaceSnapshot(device, now_->settings, PlansFile::kKept);
  noteThread();
  checkedPlans_.clear();
  substitutes_.clear();
}

PlanQuestion::PlanQuestion(std::shared_ptr<Context> context)
    : context_(std::move(context)),
      lock_(context_->questions_),
      snapshot_(context_->isRetired_ ? nullptr : context_->snapshot()) {}

/// Another thread may set the handle's stream meanwhile, and destroy the one that it had.
bool PlanQuestion::isCapturing() const {
  const bool isOwn = context_->thread_.load(std::memory_order_relaxed) == snapshot_->threads.note();
  return isOwn && ucudnn::isCapturing(snapshot_->handle);
}

}  // namespace ucudnn
