// Threads that help with a benchmark on further devices, or do what would hold up a call.
#pragma once

#include <cudnn.h>

#include <functional>
#include <map>
#include <memory>

#include "support/fork.hpp"

namespace ucudnn {

/// Work that helpers may join for as long as it is open. Thread-safe.
class Invitation {
 public:
  /// `work` runs on a helper, with the helper's own handle. `isSetting`: a setting asks the device
  /// to help, so a warning is logged if it can't.
  explicit Invitation(std::function<void(cudnnHandle_t)> work, bool isSetting = true)
      : isSetting_(isSetting), work_(std::move(work)) {}

  bool isSetting() const noexcept { return isSetting_; }

  /// Called by a helper: works, unless the invitation has been closed.
  void accept(cudnnHandle_t handle) noexcept;
  /// Keeps others from joining, and waits for those who have joined.
  void close() noexcept;

 private:
  const bool isSetting_;
  std::function<void(cudnnHandle_t)> work_;
  ForkMutex mutex_;
  ForkCondition left_;
  bool open_ = true;
  int inside_ = 0;
};

class HelperDevice;

/// One thread for each device that has helped, with a cuDNN handle and a stream, kept until the
/// process or the library ends: a device's first handle takes longer than many a benchmark.
/// Thread-safe. Never destroyed; its threads are ended before CUDA is.
class HelperDevices {
 public:
  static HelperDevices& instance();

  /// The device joins when it is ready, if that is in time. Does nothing if a thread or a handle
  /// can't be made.
  void invite(int device, std::shared_ptr<Invitation> invitation) noexcept;
  /// Makes the device's handle in the background.
  void prepare(int device) noexcept;

 private:
  friend class HelperDevice;
  HelperDevices() = default;
  struct StopAtEnd;
  static void stopBeforeLoadedCode();
  void stop() noexcept;

  ForkMutex mutex_;
  bool stopped_ = false;
  std::map<int, std::unique_ptr<HelperDevice>> devices_;
};

}  // namespace ucudnn
