// Logs each convolution's part of a layout.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>

#include "plan/plan.hpp"
#include "planner/request.hpp"
#include "support/fork.hpp"

namespace ucudnn {

/// Thread-safe; the lock is held for sums only.
class PlacementLog {
 public:
  /// Begins the sums of a new layout.
  void clear() {
    const std::lock_guard lock(mutex_);
    sums_ = {};
  }

  /// Logs a line for a convolution that has been placed with a plan (null: no line), unless it
  /// equals the `latest` line. Measures nothing, but asks cuDNN. Throws Error. REQUIRES: no lock is
  /// held.
  void add(const PlanRequest& request,
           long long layer,
           const Plan* plan,
           std::size_t totalBytes,
           std::string& latest);

 private:
  /// Sums over the convolutions that the layout has placed.
  struct Sums {
    std::size_t convolutions = 0, nativeBytes = 0;
    double timeMs = 0, nativeMs = 0;
  };
  ForkMutex mutex_;  ///< guards the sums and the latest lines
  Sums sums_;
};

}  // namespace ucudnn
