// Several copies, and a sum, by one launch: a part of block_copy.cu, whose kernels use them.
#pragma once

#include "cuda/block_copy.hpp"
#include "cuda/pair_tile.cuh"
#include "cuda/pixel_tile.cuh"
#include "cuda/wide_sum.cuh"

namespace {

/// Each copy's tiles come behind those of the one before. `copyTile(copy, toBlocks, x, y, z)` makes
/// a tile of a copy. With constant indices the copies stay where arguments are.
template <typename CopyTile>
__device__ void copyAtOnce(const ucudnn::PixelCopies& all, CopyTile copyTile) {
  const auto copyOne = [&](int which, int index) {
    const int rest = index / all.pixelTiles[which];
    copyTile(all.copies[which],
             all.toBlocks[which] != 0,
             index - rest * all.pixelTiles[which],
             rest % all.channelTiles[which],
             rest / all.channelTiles[which]);
  };
  const int first = static_cast<int>(blockIdx.x), second = first - all.tiles[0];
  const int third = second - all.tiles[1];
  if (second < 0)
    copyOne(0, first);
  else if (third < 0)
    copyOne(1, second);
  else
    copyOne(2, third);
}

/// The sum's tiles come behind the copies'. Whether this thread block had one.
__device__ inline bool makesSum(const ucudnn::PixelCopies& all) {
  const int sumTile = static_cast<int>(blockIdx.x) - all.tiles[0] - all.tiles[1] - all.tiles[2];
  if (sumTile >= 0) addUp(all.sum, sumTile);
  return sumTile >= 0;
}

/// Only numbers of two bytes have a sum.
template <typename Number>
__device__ void copyPixels(const ucudnn::PixelCopies& all, Number* memory) {
  if (sizeof(Number) == sizeof(std::uint16_t) && makesSum(all)) return;
  copyAtOnce(all, [&](const ucudnn::BlockCopy& copy, bool toBlocks, int x, int y, int z) {
    copyTile(copy, toBlocks, memory, x, y, z);
  });
}

__device__ inline void copyPairs(const ucudnn::PixelCopies& all, std::uint32_t* memory) {
  if (makesSum(all)) return;
  copyAtOnce(all, [&](const ucudnn::BlockCopy& copy, bool toBlocks, int x, int y, int z) {
    copyPairs(copy, toBlocks, memory, x, y, z);
  });
}

}  // namespace
