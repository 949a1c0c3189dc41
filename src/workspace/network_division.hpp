// `divide`: chooses the segment of a total that each convolution of a network gets.
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
  PlanRequest request;               ///< the convolution's own; its limit is the total
  std::size_t bytes = 0;             ///< 0: the convolution needs none
  std::shared_ptr<const Plan> plan;  ///< within these bytes
};

/// The best division of the total among convolutions, whose `convolution` and `request` are given.
/// Measures them within limitsToMeasure; leaves out any that can't be measured. Empty, with a
/// warning, if there is no division. REQUIRES: no lock is held; one thread at a time for a network.
std::optional<std::vector<Segment>> divideNetwork(std::vector<Segment> network,
                                                  std::size_t totalBytes);

}  // namespace ucudnn
