// What a layout gives each convolution, for the log.
#pragma once

#include <cstddef>
#include <string>

#include "plan/plan.hpp"
#include "planner/request.hpp"

namespace ucudnn {

/// Not thread-safe.
class LayoutReport {
 public:
  /// A new layout begins.
  void clear() { sums_ = {}; }

  /// A line for a convolution that has been placed with a plan (null: none, no line), unless it
  /// says what its `latest` line said. Says what is known: measures nothing. Throws Error.
  void add(const PlanRequest& request,
           long long layer,
           const Plan* plan,
           std::size_t totalBytes,
           std::string& latest);

 private:
  /// Over the convolutions that the layout has placed.
  struct Sums {
    std::size_t convolutions = 0, nativeBytes = 0;
    double timeMs = 0, nativeMs = 0;
  };
  Sums sums_;
};

}  // namespace ucudnn
