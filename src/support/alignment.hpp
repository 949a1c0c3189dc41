// How device memory is aligned.
#pragma once

#include <cstddef>

namespace ucudnn {

/// Least alignment of cudaMalloc's blocks. Reported workspace sizes are multiples of it, because
/// clients round them down to 4 or 8 bytes, and up to 512 (misc/docs/CLIENTS.md, "At run time",
/// 12).
constexpr std::size_t kMemoryAlignment = 512;
/// The alignment in bytes of a call's x, w, y, z and workspace for which engines are built.
constexpr std::size_t kEngineAlignment = 16;

constexpr std::size_t roundUpToAlignment(std::size_t bytes) noexcept {
  return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

/// The size that a client is told if a plan needs `bytes` within the cap. Similar sizes are told as
/// one, so that the client's allocator serves them from one block. PyTorch's allocator takes a new
/// block for each size that is a little larger than the last, such as 864, 866 and 872 MiB, and
/// splits blocks that tensors need whole.
///
/// Sizes above 32 MiB are rounded up to a multiple of 32 MiB, or of a sixteenth of the power of two
/// below if that is more. REQUIRES: `bytes` is at most the cap, and the cap is aligned.
constexpr std::size_t bytesToTell(std::size_t bytes, std::size_t capBytes) noexcept {
  constexpr std::size_t kSteps = 16;
  std::size_t step = std::size_t{32} << 20;
  if (bytes <= step) return roundUpToAlignment(bytes);
  while (bytes / 2 / kSteps >= step) step *= 2;
  const std::size_t rounded = (bytes + step - 1) / step * step;
  return rounded < capBytes ? rounded : capBytes;
}

constexpr std::size_t roundDownToAlignment(std::size_t bytes) noexcept {
  return bytes / kMemoryAlignment * kMemoryAlignment;
}

}  // namespace ucudnn
