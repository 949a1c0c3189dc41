// The GPUs that can be simulated, and the ones that this process has.
#pragma once

#include <vector>

#include "simulator/runtime.hpp"

namespace ucudnn::simulator {

/// The devices that UCUDNN_SIMULATOR_DEVICES names, in its order.
const std::vector<DeviceModel>& devices();

/// The values that cudaGetDeviceProperties and cudaDeviceGetAttribute return for a device.
cudaDeviceProp deviceProperties(int device);

}  // namespace ucudnn::simulator
