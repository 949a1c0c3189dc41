// Which machine and which versions a result is of.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cache/database.hpp"

namespace ucudnn::tool {

/// The versions of μ-cuDNN, cuDNN, the CUDA runtime and the driver; needs no device.
nlohmann::ordered_json describeVersions();

/// A device's properties. Throws DeviceError.
nlohmann::ordered_json describeDevice(int device);

/// `machine` of a report: device, versions, date, host, command. Throws DeviceError.
nlohmann::ordered_json describeMachine(int device, const std::string& command);

/// The key under which the library stores what it measures on a device. Throws DeviceError.
MachineKey machineKey(int device);

}  // namespace ucudnn::tool
