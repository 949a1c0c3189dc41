// The device that a handle belongs to.
#include "context/context.hpp"
#include "support/log.hpp"

namespace ucudnn {

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

/// Nothing that is remembered of the handle holds on another device but what the client has said:
/// its settings, and the limits that its queries named.
void Context::moveTo(int device) {
  replaceSnapshot(device, now_->settings, Plans::kKept);
  noteThread();
  checkedPlans_.clear();
  substitutes_.clear();
}

}  // namespace ucudnn
