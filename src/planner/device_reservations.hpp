// Decides who may measure on a device.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <set>

#include "support/fork.hpp"

namespace ucudnn {

/// Threads measure one after another on a device, so that they don't disturb each other's timings.
/// It is no lock: a thread that has waited for kPatience goes ahead. The holder's measurement may
/// itself wait for work that only the waiting thread enqueues (a collective operation of several
/// devices). Thread-safe.
class DeviceReservations {
 public:
  /// Longer than measuring one problem takes (0.1 s on an H200), shorter than a hang.
  static constexpr std::chrono::milliseconds kPatience{1000};

  /// Reserves the device until the answer is destroyed, which this must outlive. Null if another
  /// thread has it.
  std::shared_ptr<const void> reserve(int device, bool mayWait) {
    {
      std::unique_lock lock(mutex_);
      const auto isFree = [&] { return reserved_.count(device) == 0; };
      if (mayWait ? !changed_.wait_for(lock, kPatience, isFree) : !isFree()) return nullptr;
      reserved_.insert(device);
    }
    return {this, [device](DeviceReservations* all) { all->release(device); }};
  }

 private:
  void release(int device) {
    {
      const std::lock_guard lock(mutex_);
      reserved_.erase(device);
    }
    changed_.notify_all();
  }

  ForkMutex mutex_;
  ForkCondition changed_;
  std::set<int> reserved_;
};

}  // namespace ucudnn
