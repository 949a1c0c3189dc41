// The normalized L2 distance of two arrays on the device.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>

namespace ucudnn {

/// Elements that are on the host at a time. Those of both arrays take 16 MiB as doubles.
constexpr std::size_t kDistanceChunk = std::size_t{1} << 20;

/// ||a - b|| / ||b|| over `elements` elements of a cudnnDataType_t, computed on the host; 0 if both
/// are all zero. Waits for the handle's stream. Throws Error.
double normalizedDistance(cudnnHandle_t handle,
                          std::int32_t dataType,
                          const void* a,
                          const void* b,
                          std::size_t elements);

}  // namespace ucudnn
