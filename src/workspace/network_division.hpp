// `divide`: which segment of a total each convolution of a network gets.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "planner/request.hpp"
#include "workspace/network.hpp"

namespace ucudnn {

struct Segment {
  std::shared_ptr<NetworkConvolution> convolution;
  PlanRequest request;               ///< the convolution's own, whose limit is the total
  std::size_t bytes = 0;             ///< 0: it needs none
  std::shared_ptr<const Plan> plan;  ///< within these bytes
};

/// The best division of the total among convolutions, of which `convolution` and `request` are
/// given. Measures them within limitsToMeasure. One that can't be measured is left out. Empty, with
/// a warning: there is no division. REQUIRES: no lock; one thread at a time for a network.
std::optional<std::vector<Segment>> divideNetwork(std::vector<Segment> network,
                                                  std::size_t totalBytes);

}  // namespace ucudnn
