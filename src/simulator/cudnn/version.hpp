// The version of cuDNN that is simulated, and what is newer.
#pragma once

#include <cstddef>

#include "cudnn_names.h"

namespace ucudnn::simulator {

/// As cudnnGetVersion tells it: that of the headers, or UCUDNN_SIMULATOR_CUDNN_VERSION. A value
/// that is not understood ends the process with status 2.
std::size_t simulatedVersion();

/// Whether the simulated version has it.
bool isKnown(cudnnBackendAttributeName_t name);
bool isKnown(cudnnBackendDescriptorType_t type);

}  // namespace ucudnn::simulator
