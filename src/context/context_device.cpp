// The device that a handle belongs to.
#include "context/context.hpp"
#include "support/log.hpp"

namespace ucudnn {

DeviceScope Context::useDevice() {
  if (origin_ == Origin::kAdopted) {
    int current = 0;
    UCUDNN_CHECK_CUDA(cudaGetDevice(&current));
    if (current != device_) moveTo(current);
  }
  return DeviceScope(device_);
}

bool Context::followDevice() noexcept {
  if (origin_ == Origin::kCreated) return true;
  try {
    const DeviceScope scope = useDevice();
    return true;
  } catch (const std::exception& error) {
    logWarn("a call is left to cuDNN: {}", error.what());
    return false;
  }
}

/// Nothing that is remembered of the handle holds on another device but what the client has said:
/// its settings, and the limits that its queries named.
void Context::moveTo(int device) {
  const int machine = planner().machines().ofDevice(device);
  const int formerDevice = device_;
  const int formerMachine = machine_;
  device_ = device;
  machine_ = machine;
  threads_ = &callingThreads(device);
  noteThread();
  try {
    setSettings(settings_);
  } catch (...) {
    device_ = formerDevice;
    machine_ = formerMachine;
    threads_ = &callingThreads(formerDevice);
    throw;
  }
  checkedPlans_.clear();
  substitutes_.clear();
  offers_.clear();
  ranked_.clear();
}

}  // namespace ucudnn
