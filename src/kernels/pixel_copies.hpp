// Helpers for the copies of pixels to blocks (blocks.hpp) and to planes (planes.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#include "cuda/block_copy.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Whether the product is a 32-bit number.
inline bool fitsInt32(std::int64_t a, std::int64_t b, std::int64_t c = 1) noexcept {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return a <= kMost / b / c;
}

inline std::int64_t dividedUp(std::int64_t value, std::int64_t by) noexcept {
  return (value + by - 1) / by;
}

/// A convolution along one spatial dimension, in blocks: a block of y is `times` pixels, and one of
/// x those that they step over. In 64 bits, because sizes may be the largest of 32.
struct BlockLine {
  std::int64_t step, inBlock;  ///< pixels of x
  std::int64_t x, w, y;        ///< in blocks

  BlockLine(const Problem& problem, std::size_t spatial, int times) noexcept
      : step(problem.strides[spatial]), inBlock(step * times) {
    w = dividedUp(problem.wSizes[2 + spatial] + inBlock - step, inBlock);
    y = dividedUp(problem.ySizes[2 + spatial], times);
    x = y + w - 1;
  }
};

/// Strides of packed sizes, of four dimensions.
inline Problem::Strides channelsLast(const Problem::Sizes& sizes) noexcept {
  const std::int64_t pixel = sizes[1], row = pixel * sizes[3];
  return {row * sizes[2], 1, row, pixel};
}
inline Problem::Strides channelsFirst(const Problem::Sizes& sizes) noexcept {
  const std::int64_t row = sizes[3], image = row * sizes[2];
  return {image * sizes[1], image, row, 1};
}

/// The copy of a tensor whose pixels become those of a tensor of `blocked` sizes. The caller sets
/// the other members.
template <typename Strides>
BlockCopy copyOf(const Problem::Sizes& sizes,
                 const Strides& strides,
                 const Problem::Sizes& blocked,
                 std::size_t numberBytes) noexcept {
  BlockCopy copy{};
  copy.numberBytes = static_cast<std::int32_t>(numberBytes);
  std::copy_n(strides.begin(), std::size(copy.strides), copy.strides);
  copy.samples = sizes[0];
  copy.channels = sizes[1];
  copy.height = sizes[2];
  copy.width = sizes[3];
  copy.down = blocked[2];
  copy.across = blocked[3];
  copy.numbers = blocked[1];
  return copy;
}

/// The copy from `tensor` to `blocks` or back.
inline BlockCopy between(BlockCopy copy, const void* tensor, const void* blocks) noexcept {
  copy.tensor = const_cast<void*>(tensor);
  copy.blocks = const_cast<void*>(blocks);
  return copy;
}
/// The copy, set to add or to overwrite.
inline BlockCopy adding(BlockCopy copy, bool adds) noexcept {
  copy.adds = adds ? 1 : 0;
  return copy;
}

/// The status of a list of copies, the last of which writes the client's output. Takes a failure
/// off the runtime's last-error slot. The status is none after which a kernel may have run
/// (mayHaveRun): a refused copy has written nothing, so the call may yet succeed another way, even
/// if it adds.
inline cudnnStatus_t statusOf(cudaError_t error) noexcept {
  if (error == cudaSuccess) return CUDNN_STATUS_SUCCESS;
  static_cast<void>(cudaGetLastError());
  return CUDNN_STATUS_INTERNAL_ERROR;
}

}  // namespace ucudnn
