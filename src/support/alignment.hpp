// The granularity of device memory.
#pragma once

#include <cstddef>

namespace ucudnn {

/// What cudaMalloc's blocks are aligned to at least. Workspace sizes are reported as multiples of
/// it: clients round them down to 4 or 8 bytes, and up to 512 (misc/CLIENTS.md, "At run time", 12).
constexpr std::size_t kMemoryAlignment = 512;

constexpr std::size_t roundUpToAlignment(std::size_t bytes) noexcept {
  return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

constexpr std::size_t roundDownToAlignment(std::size_t bytes) noexcept {
  return bytes / kMemoryAlignment * kMemoryAlignment;
}

}  // namespace ucudnn
