// Who may measure on a device.
#pragma once

#include <chrono>
#include <mutex>
#include <set>

#include "support/fork.hpp"

namespace ucudnn {

/// Threads measure one after another on a device, so as not to disturb each other's timings. It is
/// no lock: whoever has waited for kPatience goes ahead. What the holder measures may itself wait
/// for work that only the waiting thread enqueues (a collective operation of several devices).
/// Thread-safe.
class DeviceTurns {
 public:
  /// Longer than measuring one problem takes (0.1 s on an H200), shorter than a hang.
  static constexpr std::chrono::milliseconds kPatience{1000};

  /// True: the turn is taken, and must be given back by `end`.
  bool begin(int device, bool mayWait) {
    std::unique_lock lock(mutex_);
    const auto isFree = [&] { return busy_.count(device) == 0; };
    if (mayWait ? !changed_.wait_for(lock, kPatience, isFree) : !isFree()) return false;
    busy_.insert(device);
    return true;
  }

  void end(int device) {
    {
      const std::lock_guard lock(mutex_);
      busy_.erase(device);
    }
    changed_.notify_all();
  }

 private:
  ForkMutex mutex_;
  ForkCondition changed_;
  std::set<int> busy_;
};

/// A turn for as long as the object lives.
class DeviceTurn {
 public:
  DeviceTurn(DeviceTurns& turns, int device, bool mayWait)
      : turns_(turns), device_(device), taken_(turns.begin(device, mayWait)) {}
  ~DeviceTurn() {
    if (taken_) turns_.end(device_);
  }
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

  bool isTaken() const noexcept { return taken_; }

 private:
  DeviceTurns& turns_;
  const int device_;
  const bool taken_;
};

}  // namespace ucudnn
