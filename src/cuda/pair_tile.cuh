// Copies of numbers of two bytes channels last, and back, two neighbouring pixels at a time: a part
// of block_copy.cu, whose kernels use them. A PixelTile's threads would read two bytes each, and
// write eight.
#pragma once

#include "cuda/block_copy.hpp"
#include "cuda/tile_move.cuh"

namespace {

/// Eight channels of a pixel, which are written at once.
struct alignas(16) Eight {
  std::uint32_t pairs[4];
};

/// A tile of a sample: kPixels pixels of kChannels channels, some of which are zeros around the
/// tensor. In memory a word is two pixels of a channel. One word more in a line lets threads that
/// have neighbouring channels use different banks.
template <int kMostChannels>
struct PairTile {
  static constexpr int kThreads = ucudnn::block_copy::kThreads;
  static constexpr int kChannels = kMostChannels;
  static constexpr int kPixels = ucudnn::block_copy::kPairNumbers / kChannels;
  static constexpr int kPairs = kPixels / 2;
  static constexpr int kLine = kPairs + 1;
  static constexpr int kWords = kChannels * kLine;
  static constexpr int kMoves = kChannels * kPairs / kThreads;
  static constexpr int kStep = kThreads / kPairs;  ///< from a thread's channel to its next
  static constexpr int kEights = kChannels / 8;

  const ucudnn::BlockCopy& copy;
  std::uint32_t* memory;
  int pixels;             ///< from the tile's first to the blocks' last
  int channels, filled;   ///< of the tensor, and with the zeros behind them
  int pair, channel;      ///< this thread's first
  int eightsPair, eight;  ///< and what it has of the blocks: eight channels of a pair
  bool isInside;          ///< whether its pair is the tensor's
  std::uint16_t* number;  ///< its first, in the tensor
  std::uint16_t* block;   ///< its first eight, in the blocks

  __device__ PairTile(
      const ucudnn::BlockCopy& whole, std::uint32_t* shared, int tile, int channelTile, int sample)
      : copy(whole), memory(shared) {
    const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    const int all = copy.down * copy.across, first = tile * kPixels;
    const int firstChannel = channelTile * kChannels;
    pixels = all - first;
    channels = min(kChannels, copy.channels - firstChannel);
    filled = min(kChannels, copy.numbers - firstChannel);
    pair = thread % kPairs;
    channel = thread / kPairs;
    eight = thread % kEights;
    eightsPair = thread / kEights;
    const int at = first + 2 * pair;
    const int row = copy.down == 1 ? 0 : at / copy.across;
    const int y = row - copy.padY, x = at - row * copy.across - copy.padX;
    isInside = 2 * pair < pixels && y >= 0 && y < copy.height && x >= 0 && x < copy.width;
    number = static_cast<std::uint16_t*>(copy.tensor) + sample * copy.strides[0] +
             (firstChannel + channel) * copy.strides[1] + y * copy.strides[2] + x;
    block = static_cast<std::uint16_t*>(copy.blocks) +
            (static_cast<std::int64_t>(sample) * all + first + 2 * eightsPair) * copy.numbers +
            firstChannel + 8 * eight;
  }

  __device__ bool hasPair(int move) const { return isInside && channel + move * kStep < channels; }
  __device__ std::uint32_t& pairOf(int move) const {
    return *reinterpret_cast<std::uint32_t*>(number + move * kStep * copy.strides[1]);
  }
  __device__ std::uint32_t& placeOf(int move) const {
    return memory[(channel + move * kStep) * kLine + pair];
  }
  __device__ bool hasEight() const { return 8 * eight < filled && 2 * eightsPair < pixels; }
  __device__ Eight& eightOf(int pixel) const {
    return *reinterpret_cast<Eight*>(block + pixel * static_cast<std::int64_t>(copy.numbers));
  }
  __device__ std::uint32_t& wordOf(int inEight) const {
    return memory[(8 * eight + inEight) * kLine + eightsPair];
  }

  __device__ void readPixels() const {
    std::uint32_t words[kMoves];
#pragma unroll
    for (int i = 0; i < kMoves; ++i) words[i] = hasPair(i) ? pairOf(i) : 0;
#pragma unroll
    for (int i = 0; i < kMoves; ++i) placeOf(i) = words[i];
  }
  __device__ void writePixels() const {
#pragma unroll
    for (int i = 0; i < kMoves; ++i)
      if (hasPair(i)) pairOf(i) = placeOf(i);
  }
  __device__ void writeBlocks() const {
    if (!hasEight()) return;
    Eight left, right;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t a = wordOf(2 * i), b = wordOf(2 * i + 1);
      left.pairs[i] = (a & 0xFFFFU) | (b << 16);
      right.pairs[i] = (a >> 16) | (b & 0xFFFF0000U);
    }
    eightOf(0) = left;
    eightOf(1) = right;
  }
  __device__ void readBlocks() const {
    if (!hasEight()) return;
    const Eight left = eightOf(0), right = eightOf(1);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      wordOf(2 * i) = (left.pairs[i] & 0xFFFFU) | (right.pairs[i] << 16);
      wordOf(2 * i + 1) = (left.pairs[i] >> 16) | (right.pairs[i] & 0xFFFF0000U);
    }
  }
};

template <int kChannels>
__device__ void copyPairs(
    const ucudnn::BlockCopy& copy, bool toBlocks, std::uint32_t* memory, int x, int y, int z) {
  moveTile(PairTile<kChannels>(copy, memory, x, y, z), toBlocks);
}

/// In tiles of as few channels as there are.
__device__ inline void copyPairs(
    const ucudnn::BlockCopy& copy, bool toBlocks, std::uint32_t* memory, int x, int y, int z) {
  if (copy.numbers <= 16)
    copyPairs<16>(copy, toBlocks, memory, x, y, z);
  else if (copy.numbers <= 32)
    copyPairs<32>(copy, toBlocks, memory, x, y, z);
  else
    copyPairs<64>(copy, toBlocks, memory, x, y, z);
}

/// A launch's only copy.
__device__ inline void copyPairs(const ucudnn::BlockCopy& copy,
                                 bool toBlocks,
                                 std::uint32_t* memory) {
  copyPairs(copy,
            toBlocks,
            memory,
            static_cast<int>(blockIdx.x),
            static_cast<int>(blockIdx.y),
            static_cast<int>(blockIdx.z));
}

}  // namespace
