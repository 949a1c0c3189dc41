// Copies of tensors channels first to tensors channels last, which are blocks of one pixel, and
// back: a part of block_copy.cu, whose kernels use them. They are as fast as the memory: engines
// that make such copies themselves take longer for them (misc/RESULTS.md at 7ba7ca8). The blocks
// may be more than the tensor's pixels and channels: then zeros surround it.
#pragma once

#include "cuda/block_copy.hpp"
#include "cuda/tile_move.cuh"

namespace {

/// Read and written at once.
template <typename Number>
struct alignas(4 * sizeof(Number)) Four {
  Number numbers[4];
};

/// A tile of a sample: up to kPixels pixels, as wide as a row of threads, with up to kChannels
/// channels. A thread has one pixel of several channels. One number more in a line of memory lets
/// threads that have neighbouring channels use different banks.
template <typename Number, int kPixels>
struct PixelTile {
  static constexpr int kThreads = ucudnn::block_copy::kThreads;
  static constexpr int kChannels = ucudnn::block_copy::kTileNumbers / kPixels;
  static constexpr int kLine = kPixels + 1;
  static constexpr int kNumbers = kChannels * kLine;
  static constexpr int kMoves = kChannels * kPixels / kThreads;
  static constexpr int kFours = kChannels / 4;
  static constexpr int kStep = kThreads / kPixels;  ///< from a thread's channel to its next

  const ucudnn::BlockCopy& copy;
  Number* memory;
  int first, pixels;
  int channels, filled;  ///< of the tensor, and with the zeros behind them
  int pixel, channel;    ///< this thread's, of the tile
  bool isInside;         ///< whether its pixel is the tensor's
  Number* number;        ///< its first, in the tensor
  Number* four;          ///< its first four, in the blocks

  __device__ PixelTile(
      const ucudnn::BlockCopy& whole, Number* shared, int tile, int channelTile, int sampleTile)
      : copy(whole), memory(shared) {
    const int all = copy.down * copy.across;
    const auto sample = static_cast<std::int64_t>(sampleTile);
    const int firstChannel = channelTile * kChannels;
    first = tile * kPixels;
    pixels = min(kPixels, all - first);
    channels = min(kChannels, copy.channels - firstChannel);
    filled = min(kChannels, copy.numbers - firstChannel);
    const int index = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    pixel = index % kPixels;
    channel = index / kPixels;
    const int row = copy.down == 1 ? 0 : (first + pixel) / copy.across;
    const int y = row - copy.padY, x = first + pixel - row * copy.across - copy.padX;
    isInside = pixel < pixels && y >= 0 && y < copy.height && x >= 0 && x < copy.width;
    number = static_cast<Number*>(copy.tensor) + sample * copy.strides[0] +
             (firstChannel + channel) * copy.strides[1] + y * copy.strides[2] + x * copy.strides[3];
    four = static_cast<Number*>(copy.blocks) + (sample * all + first) * copy.numbers +
           firstChannel + 4 * (thread() % kFours);
  }

  __device__ int thread() const { return channel * kPixels + pixel; }
  __device__ bool hasPixel(int move) const { return isInside && channel + move * kStep < channels; }
  __device__ Number& pixelOf(int move) const { return number[move * kStep * copy.strides[1]]; }
  __device__ Number& placeOf(int move) const {
    return memory[(channel + move * kStep) * kLine + pixel];
  }

  // All are read before the first is written: memory answers late. So the second loop has no
  // condition that would join it to the first.
  __device__ void readPixels() const {
    Number numbers[kMoves];
#pragma unroll
    for (int i = 0; i < kMoves; ++i) numbers[i] = hasPixel(i) ? pixelOf(i) : Number{};
#pragma unroll
    for (int i = 0; i < kMoves; ++i) placeOf(i) = numbers[i];
  }
  __device__ void writePixels() const {
    const bool adds = sizeof(Number) == sizeof(float) && copy.adds != 0;
    Number numbers[kMoves];
#pragma unroll
    for (int i = 0; i < kMoves; ++i) numbers[i] = adds && hasPixel(i) ? pixelOf(i) : Number{};
#pragma unroll
    for (int i = 0; i < kMoves; ++i)
      if (hasPixel(i))
        pixelOf(i) = adds ? static_cast<Number>(numbers[i] + placeOf(i)) : placeOf(i);
  }

  /// Neighbouring threads have neighbouring channels of a pixel, four each.
  template <typename Move>
  __device__ void forFours(Move move) const {
    const int inTile = 4 * (thread() % kFours);
    if (inTile >= filled) return;
#pragma unroll
    for (int i = 0; i < kFours * kPixels / kThreads; ++i) {
      const int at = thread() / kFours + i * (kThreads / kFours);
      if (at < pixels)
        move(i,
             *reinterpret_cast<Four<Number>*>(four + std::int64_t{at} * copy.numbers),
             memory + inTile * kLine + at);
    }
  }

  __device__ void writeBlocks() const {
    forFours([](int, Four<Number>& block, const Number* place) {
      block = {place[0], place[kLine], place[2 * kLine], place[3 * kLine]};
    });
  }
  __device__ void readBlocks() const {
    Four<Number> blocks[kFours * kPixels / kThreads];
    forFours([&](int i, const Four<Number>& block, Number*) { blocks[i] = block; });
    forFours([&](int i, const Four<Number>&, Number* place) {
#pragma unroll
      for (int j = 0; j < 4; ++j) place[j * kLine] = blocks[i].numbers[j];
    });
  }
};

template <int kPixels, typename Number>
__device__ void copyTile(
    const ucudnn::BlockCopy& copy, bool toBlocks, Number* memory, int x, int y, int z) {
  moveTile(PixelTile<Number, kPixels>(copy, memory, x, y, z), toBlocks);
}
template <typename Number>
__device__ void copyTile(
    const ucudnn::BlockCopy& copy, bool toBlocks, Number* memory, int x, int y, int z) {
  using namespace ucudnn::block_copy;
  // As tileWidth in block_copy.cpp.
  if (copy.down * copy.across <= kFewPixels)
    copyTile<kFewPixels>(copy, toBlocks, memory, x, y, z);
  else if (copy.numbers <= kTileNumbers / (4 * kLanes))
    copyTile<4 * kLanes>(copy, toBlocks, memory, x, y, z);
  else if (copy.numbers <= kTileNumbers / (2 * kLanes))
    copyTile<2 * kLanes>(copy, toBlocks, memory, x, y, z);
  else
    copyTile<kLanes>(copy, toBlocks, memory, x, y, z);
}

/// A launch's only copy.
template <typename Number>
__device__ void copyPixels(const ucudnn::BlockCopy& copy, bool toBlocks, Number* memory) {
  copyTile(copy,
           toBlocks,
           memory,
           static_cast<int>(blockIdx.x),
           static_cast<int>(blockIdx.y),
           static_cast<int>(blockIdx.z));
}

}  // namespace
