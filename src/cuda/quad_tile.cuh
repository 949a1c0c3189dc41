// Copies of blocks of two by two pixels and back: a part of block_copy.cu, whose kernels use them.
// A block's four numbers of a channel are moved at once. So ResNet-18's first forward pass takes an
// H200 0.74 ms within 64 MiB; by a Tile's copies it took 0.85 (misc/RESULTS.md at 7ba7ca8).
#pragma once

#include "cuda/block_copy.hpp"

namespace {

/// Read and written at once.
struct alignas(8) Pair {
  float left, right;
};
struct alignas(16) Quad {
  Pair upper, lower;
};

/// A tile of a row of blocks: kLanes blocks with kLanes channels. One quad more in a line of memory
/// lets threads that write to neighbouring lines use different banks.
struct QuadTile {
  static constexpr int kLanes = ucudnn::block_copy::kLanes, kWarps = ucudnn::block_copy::kWarps;
  static constexpr int kQuads = kLanes * (kLanes + 1);

  const ucudnn::BlockCopy& copy;
  Quad* memory;
  int sample, row, firstBlock, firstChannel;

  __device__ QuadTile(const ucudnn::BlockCopy& whole, Quad* shared) : copy(whole), memory(shared) {
    sample = static_cast<int>(blockIdx.x) / copy.down;
    row = static_cast<int>(blockIdx.x) - sample * copy.down;
    firstChannel = static_cast<int>(blockIdx.y) * kLanes;
    firstBlock = static_cast<int>(blockIdx.z) * kLanes;
  }

  /// Neighbouring threads have neighbouring channels of a block.
  template <typename Move>
  __device__ void forBlocks(Move move) const {
    const int lane = static_cast<int>(threadIdx.x), channel = firstChannel + lane;
    auto* const blocks =
        static_cast<Quad*>(copy.blocks) +
        (static_cast<std::int64_t>(sample) * copy.down + row) * copy.across * copy.channels;
#pragma unroll
    for (int i = 0; i < kLanes / kWarps; ++i) {
      const int line = static_cast<int>(threadIdx.y) + i * kWarps, block = firstBlock + line;
      if (block < copy.across && channel < copy.channels)
        move(blocks[static_cast<std::int64_t>(block) * copy.channels + channel],
             memory[line * (kLanes + 1) + lane]);
    }
  }

  /// Neighbouring threads have neighbouring blocks of a channel. The second pixel is null below the
  /// tensor.
  template <typename Move>
  __device__ void forPixels(Move move) const {
    const int lane = static_cast<int>(threadIdx.x), x = 2 * (firstBlock + lane);
    float* const tensor =
        static_cast<float*>(copy.tensor) + sample * copy.strides[0] + 2 * row * copy.strides[2] + x;
    const bool hasLower = 2 * row + 1 < copy.height;
#pragma unroll
    for (int i = 0; i < kLanes / kWarps; ++i) {
      const int line = static_cast<int>(threadIdx.y) + i * kWarps, channel = firstChannel + line;
      if (x >= copy.width || channel >= copy.channels) continue;
      float* const upper = tensor + channel * copy.strides[1];
      move(*reinterpret_cast<Pair*>(upper),
           hasLower ? reinterpret_cast<Pair*>(upper + copy.strides[2]) : nullptr,
           memory[lane * (kLanes + 1) + line]);
    }
  }

  __device__ void readPixels() const {
    forPixels([](const Pair& upper, const Pair* lower, Quad& quad) {
      quad = {upper, lower != nullptr ? *lower : Pair{}};
    });
  }
  __device__ void writeBlocks() const {
    forBlocks([](Quad& block, const Quad& quad) { block = quad; });
  }
  __device__ void readBlocks() const {
    forBlocks([](const Quad& block, Quad& quad) { quad = block; });
  }
  __device__ void writePixels() const {
    const bool adds = copy.adds != 0;
    forPixels([&](Pair& upper, Pair* lower, const Quad& quad) {
      upper = adds ? sum(upper, quad.upper) : quad.upper;
      if (lower != nullptr) *lower = adds ? sum(*lower, quad.lower) : quad.lower;
    });
  }

  __device__ static Pair sum(const Pair& a, const Pair& b) {
    return {a.left + b.left, a.right + b.right};
  }
};

}  // namespace
