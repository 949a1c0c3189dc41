// The granularity of device memory.
#pragma once

#include <cstddef>

namespace ucudnn {

/// What cudaMalloc's blocks are aligned to at least. Workspace sizes are reported as multiples of
/// it: clients round them down to 4 or 8 bytes, and up to 512 (misc/docs/CLIENTS.md, "At run time",
/// 12).
constexpr std::size_t kMemoryAlignment = 512;

constexpr std::size_t roundUpToAlignment(std::size_t bytes) noexcept {
  return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

/// What a client is told of `bytes` that a plan needs within the cap: sizes that differ by little
/// as one, which its allocator serves from one block. PyTorch's takes a new block for each size
/// that is a little larger than the last, as 864, 866 and 872 MiB, and splits blocks that tensors
/// need whole. Of a cap of at most 256 MiB more than half is told as the cap, but for what is
/// served from PyTorch's blocks of 20 MiB: up to 10. Else sizes from 256 MiB on are multiples of a
/// sixteenth of the power of two below. REQUIRES: no more than the cap, which is aligned.
constexpr std::size_t bytesToTell(std::size_t bytes, std::size_t capBytes) noexcept {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  constexpr std::size_t kSteps = 16;
  std::size_t step = 16 * kMebibyte;
  if (capBytes <= kSteps * step && bytes > capBytes / 2 && bytes > 10 * kMebibyte) return capBytes;
  if (bytes <= kSteps * step) return roundUpToAlignment(bytes);
  while (bytes / 2 / kSteps >= step) step *= 2;
  const std::size_t rounded = (bytes + step - 1) / step * step;
  return rounded < capBytes ? rounded : capBytes;
}

constexpr std::size_t roundDownToAlignment(std::size_t bytes) noexcept {
  return bytes / kMemoryAlignment * kMemoryAlignment;
}

}  // namespace ucudnn
