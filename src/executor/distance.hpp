// The normalized L2 distance of two arrays on the device.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>

namespace ucudnn {

/// Elements that one cuDNN operation works on: its sizes are 32-bit, and partial sums of squares in
/// float stay exact enough when they are added up in double on the host.
constexpr std::size_t kDistanceChunk = std::size_t{1} << 22;

/// ||a - b|| / ||b|| over `elements` elements of a cudnnDataType_t, by cuDNN's tensor operations; 0
/// when both are all zero. Needs memory for one chunk. Waits for the device. Throws Error.
double normalizedDistance(cudnnHandle_t handle,
                          std::int32_t dataType,
                          const void* a,
                          const void* b,
                          std::size_t elements);

}  // namespace ucudnn
