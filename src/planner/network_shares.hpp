// The shares of a mini-batch for the convolutions of a network.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/request.hpp"

namespace ucudnn {

/// Convolutions of a network that are one problem.
struct AskedConvolution {
  Problem problem;  ///< of any batch size
  std::size_t limitBytes = 0;
  int count = 1;
};

struct SharingDevice {
  int device = 0;
  std::size_t capBytes = 0;  ///< the most workspace of a convolution there
};

/// The number of samples for each device, of `batch` in all, for which the slowest device's
/// convolutions take the shortest time. Measures each kind of device (a model with a cap) on the
/// first device of the kind. `like` is a request of the asking handle, which serves its own device.
/// Other devices get a handle for as long as this takes. Empty: the devices can't run the
/// convolutions. Throws Error. REQUIRES: a device; batch >= 1.
std::optional<std::vector<int>> networkShares(const PlanRequest& like,
                                              const std::vector<AskedConvolution>& network,
                                              const std::vector<SharingDevice>& devices,
                                              int batch);

}  // namespace ucudnn
