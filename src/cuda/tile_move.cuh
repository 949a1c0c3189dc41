// The way of a tile's numbers through shared memory: a part of block_copy.cu.
#pragma once

namespace {

/// All threads of a thread block call it.
template <typename Tile>
__device__ void moveTile(const Tile& tile, bool toBlocks) {
  if (toBlocks)
    tile.readPixels();
  else
    tile.readBlocks();
  __syncthreads();
  if (toBlocks)
    tile.writeBlocks();
  else
    tile.writePixels();
}

}  // namespace
