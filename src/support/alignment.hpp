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

/// From 256 MiB on a multiple of a sixteenth of the power of two below: a client's allocator can
/// serve sizes that differ by little from one block. Where each is a little larger than the last,
/// it would take a block for each, as PyTorch's does for 864, 866 and 872 MiB. Less is not worth
/// it: 64 MiB would miss a block that a tensor of 63.4 has left, and PyTorch rounds to 2 anyway.
constexpr std::size_t roundUpToStep(std::size_t bytes) noexcept {
  constexpr std::size_t kSteps = 16;
  std::size_t step = std::size_t{16} << 20;
  if (bytes <= kSteps * step) return roundUpToAlignment(bytes);
  while (bytes / 2 / kSteps >= step) step *= 2;
  return (bytes + step - 1) / step * step;
}

constexpr std::size_t roundDownToAlignment(std::size_t bytes) noexcept {
  return bytes / kMemoryAlignment * kMemoryAlignment;
}

}  // namespace ucudnn
