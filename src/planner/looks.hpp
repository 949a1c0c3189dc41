// Which few kernels of a problem are timed before all others.
#pragma once

#include <optional>
#include <vector>

#include "benchmark/benchmark.hpp"
#include "planner/measurement_store.hpp"
#include "planner/request.hpp"

namespace ucudnn {

struct PlannedLook : Look {
  std::vector<int> sizes;  ///< ascending, the mini-batch included
};

/// The look for a problem of which nothing is measured. It has the kernels of another machine's
/// plans for it, or of a similar problem's plans; and, if the call runs in parts, their kernel, the
/// client's own and the first that cuDNN names, at the parts' sizes. Empty if neither is known. A
/// look without kernels says that those plans run by the client's own one. REQUIRES: the store's
/// lock.
std::optional<PlannedLook> lookAt(const MeasurementStore& store,
                                  const PlanRequest& request,
                                  const KnownQuestion& asked);

}  // namespace ucudnn
