// The normalized L2 distance of two arrays on the device.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>

namespace ucudnn {

/// ||a - b|| / ||b|| over `elements` elements of a cudnnDataType_t, by cuDNN's tensor operations; 0
/// when both are all zero. `b` is overwritten with a - b. Waits for the device. Throws Error.
double normalizedDistance(
    cudnnHandle_t handle, std::int32_t dataType, const void* a, void* b, std::size_t elements);

}  // namespace ucudnn
