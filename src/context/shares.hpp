// The shares of a mini-batch for the network of a handle.
#pragma once

#include <optional>
#include <vector>

#include "context/context.hpp"

namespace ucudnn {

/// As ucudnnGetShares. Empty: the handle was not asked about a convolution, or the devices can't
/// run the convolutions. Throws Error; BadSetting if there is no such device. REQUIRES:
/// Context::useDevice; batch >= 1; a device.
std::optional<std::vector<int>> sharesOf(const Context& context,
                                         int batch,
                                         const std::vector<int>& devices);

}  // namespace ucudnn
