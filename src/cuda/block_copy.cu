// The kernels of block_copy.hpp. Tensors are copied by way of shared memory, so that neighbouring
// threads read and write neighbours: a thread block copies a row of blocks of one sample.
#include "cuda/block_copy.hpp"
#include "cuda/copies_at_once.cuh"
#include "cuda/filter_taps.cuh"
#include "cuda/pair_tile.cuh"
#include "cuda/pixel_tile.cuh"
#include "cuda/plane_line.cuh"
#include "cuda/quad_tile.cuh"
#include "cuda/tile_move.cuh"

using ucudnn::BlockCopy;
using ucudnn::FilterCopy;
using ucudnn::PixelCopies;

namespace {

using namespace ucudnn::block_copy;

// Numbers that a thread reads before it writes the first: memory answers late.
constexpr int kBatch = 4;
constexpr int kLines = 2;
// Thread blocks on a multiprocessor at a time. With fewer, which have more registers, an H200
// copies slower.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kResident = 4;
#else
constexpr int kResident = 6;
#endif

/// Each kernel begins so. From compute capability 9.0 on it may start before the kernel before it
/// has ended (dependent_launch.hpp), and touches no memory until that has.
__device__ void waitForInputs() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// The part that a thread block copies by way of shared memory: some channels of a row of blocks,
/// and as many of the blocks as fit at a time, in turns with the others of its row. One number more
/// in each block lets threads that write to neighbouring blocks use different banks.
template <typename Number>
struct Tile {
  const BlockCopy& copy;
  Number* memory;
  int sample, row;   ///< of blocks
  int channel;       ///< the first
  int lines;         ///< a line is a row of a channel
  int pixels;        ///< numbers of a block that are copied here
  int inTile, most;  ///< and with the zeros behind them; and blocks at a time
  int nextPixel;

  __device__ Tile(const BlockCopy& whole, Number* shared, int rows) : copy(whole), memory(shared) {
    sample = static_cast<int>(blockIdx.x) / rows;
    row = static_cast<int>(blockIdx.x) - sample * rows;
    const int channels =
        (copy.channels + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
    channel = static_cast<int>(blockIdx.y) * channels;
    lines = max(0, min(channels, copy.channels - channel)) * copy.rows;
    pixels = lines * copy.columns;
    const bool isLast = lines > 0 && channel + channels >= copy.channels;
    inTile = isLast ? copy.numbers - channel * copy.rows * copy.columns : pixels;
    most = kTile / (inTile + 1);
    nextPixel = static_cast<int>(copy.strides[3]);
  }

  /// A thread has the same number, a pixel's or a zero, of several blocks from `first` on.
  template <typename Move>
  __device__ void forBlocks(int first, int blocks, Move move) const {
    const int together = kThreads / inTile;
    const int thread = static_cast<int>(threadIdx.y * kLanes + threadIdx.x);
    const int block = thread / inTile;
    const int number = thread - block * inTile;
    if (block >= together) return;
    const std::int64_t begin =
        ((static_cast<std::int64_t>(sample) * copy.down + row) * copy.across + first + block) *
            copy.numbers +
        channel * copy.rows * copy.columns + number;
    Number* blocked = static_cast<Number*>(copy.blocks) + begin;
    Number* place = memory + block * (inTile + 1) + number;
    for (int left = blocks - block; left > 0; left -= kBatch * together) {
      move(blocked, place, together, left, number < pixels);
      blocked += kBatch * together * copy.numbers;
      place += kBatch * together * (inTile + 1);
    }
  }

  __device__ void readBlocks(int first, int blocks) const {
    forBlocks(first, blocks, [&](const Number* from, Number* to, int together, int left, bool) {
      Number numbers[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        numbers[i] = i * together < left ? from[i * together * copy.numbers] : Number{};
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (i * together < left) to[i * together * (inTile + 1)] = numbers[i];
    });
  }

  __device__ void writeBlocks(int first, int blocks) const {
    forBlocks(
        first, blocks, [&](Number* to, const Number* from, int together, int left, bool isPixel) {
#pragma unroll
          for (int i = 0; i < kBatch; ++i)
            if (i * together < left)
              to[i * together * copy.numbers] =
                  isPixel ? from[i * together * (inTile + 1)] : Number{};
        });
  }

  /// Null: beyond the tensor, or there is no such line.
  __device__ Number* line(int line) const {
    const int behind = line / copy.rows;
    const int y = (row - behind) * copy.rows + line - copy.padY;
    if (line >= lines || y < 0 || y >= copy.height) return nullptr;
    return static_cast<Number*>(copy.tensor) + sample * copy.strides[0] +
           (channel + behind) * copy.strides[1] + y * copy.strides[2];
  }

  /// A warp has some lines at a time. A thread has a column of several blocks of each line.
  template <typename Move>
  __device__ void forPixels(int first, int blocks, Move move) const {
    const int together = kLanes / copy.columns;
    const int block = static_cast<int>(threadIdx.x) / copy.columns;
    const int column = static_cast<int>(threadIdx.x) - block * copy.columns;
    if (block >= together) return;
    const int x = (first + block) * copy.columns + column - copy.padX;
    for (int i = static_cast<int>(threadIdx.y); i < lines; i += kLines * kWarps) {
      Number* line[kLines];
#pragma unroll
      for (int j = 0; j < kLines; ++j) line[j] = this->line(i + j * kWarps);
      Number* const place = memory + block * (inTile + 1) + i * copy.columns + column;
      for (int done = 0; done < blocks - block; done += kBatch * together)
        move(line,
             lines - i,
             x + done * copy.columns,
             place + done * (inTile + 1),
             together,
             blocks - block - done);
    }
  }

  __device__ void readPixels(int first, int blocks) const {
    forPixels(first,
              blocks,
              [&](Number* const* line, int linesLeft, int x, Number* to, int together, int left) {
                Number numbers[kLines][kBatch];
#pragma unroll
                for (int i = 0; i < kLines; ++i)
#pragma unroll
                  for (int j = 0; j < kBatch; ++j) {
                    const int at = x + j * together * copy.columns;
                    numbers[i][j] =
                        line[i] != nullptr && isInside(at) ? line[i][at * nextPixel] : Number{};
                  }
#pragma unroll
                for (int i = 0; i < kLines; ++i)
#pragma unroll
                  for (int j = 0; j < kBatch; ++j)
                    if (j * together < left && i * kWarps < linesLeft)
                      to[i * kWarps * copy.columns + j * together * (inTile + 1)] = numbers[i][j];
              });
  }

  /// `known` of the blocks are in memory; the others are 0.
  __device__ void writePixels(int first, int blocks, int known) const {
    forPixels(first,
              blocks,
              [&](Number* const* line, int, int x, const Number* from, int together, int left) {
                Number numbers[kLines][kBatch];
                if (isSum())
#pragma unroll
                  for (int i = 0; i < kLines; ++i)
#pragma unroll
                    for (int j = 0; j < kBatch; ++j) {
                      const int at = x + j * together * copy.columns;
                      const bool isPixel =
                          j * together < left && line[i] != nullptr && isInside(at);
                      numbers[i][j] = isPixel ? line[i][at * nextPixel] : Number{};
                    }
#pragma unroll
                for (int i = 0; i < kLines; ++i)
#pragma unroll
                  for (int j = 0; j < kBatch; ++j) {
                    const int at = x + j * together * copy.columns;
                    if (j * together >= left || line[i] == nullptr || !isInside(at)) continue;
                    const bool isKnown = j * together < left + known - blocks;
                    if (!isKnown && copy.adds != 0) continue;
                    Number number{};
                    if (isKnown)
                      number = from[i * kWarps * copy.columns + j * together * (inTile + 1)];
                    if (isSum()) number = static_cast<Number>(numbers[i][j] + number);
                    line[i][at * nextPixel] = number;
                  }
              });
  }

  __device__ bool isSum() const {
    return sizeof(Number) == sizeof(float) && copy.adds != 0;
  }

  __device__ bool isInside(int x) const {
    return x >= 0 && x < copy.width;
  }
};

template <typename Number>
__device__ void copyToBlocks(const BlockCopy& copy, Number* memory) {
  const Tile<Number> tile(copy, memory, copy.down);
  if (tile.lines == 0) return;
  const int step = static_cast<int>(gridDim.z) * tile.most;
  for (int first = static_cast<int>(blockIdx.z) * tile.most; first < copy.across; first += step) {
    const int blocks = min(tile.most, copy.across - first);
    tile.readPixels(first, blocks);
    __syncthreads();
    tile.writeBlocks(first, blocks);
    __syncthreads();
  }
}

/// If the tensor is higher or wider than the blocks, it is as if more blocks of 0 followed.
template <typename Number>
__device__ void copyFromBlocks(const BlockCopy& copy, Number* memory) {
  const Tile<Number> tile(copy, memory, (copy.height + copy.padY + copy.rows - 1) / copy.rows);
  if (tile.lines == 0) return;
  const int across = (copy.width + copy.padX + copy.columns - 1) / copy.columns;
  const int step = static_cast<int>(gridDim.z) * tile.most;
  for (int first = static_cast<int>(blockIdx.z) * tile.most; first < across; first += step) {
    const int known = tile.row < copy.down ? max(0, min(tile.most, copy.across - first)) : 0;
    tile.readBlocks(first, known);
    __syncthreads();
    tile.writePixels(first, min(tile.most, across - first), known);
    __syncthreads();
  }
}

// Numbers of two bytes are only copied, so their type makes no difference.
using Half = std::uint16_t;

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kThreads, kResident) ucudnnToBlocks(const BlockCopy copy) {
  waitForInputs();
  __shared__ float memory[kTile];
  copyToBlocks(copy, memory);
}
__global__ void __launch_bounds__(kThreads, kResident) ucudnnToBlocks16(const BlockCopy copy) {
  waitForInputs();
  __shared__ Half memory[kTile];
  copyToBlocks(copy, memory);
}
__global__ void __launch_bounds__(kThreads, kResident) ucudnnFromBlocks(const BlockCopy copy) {
  waitForInputs();
  __shared__ float memory[kTile];
  copyFromBlocks(copy, memory);
}
__global__ void __launch_bounds__(kThreads, kResident) ucudnnFromBlocks16(const BlockCopy copy) {
  waitForInputs();
  __shared__ Half memory[kTile];
  copyFromBlocks(copy, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnQuadsToBlocks(const BlockCopy copy) {
  waitForInputs();
  __shared__ Quad memory[QuadTile::kQuads];
  moveTile(QuadTile(copy, memory), true);
}
__global__ void __launch_bounds__(kThreads) ucudnnQuadsFromBlocks(const BlockCopy copy) {
  waitForInputs();
  __shared__ Quad memory[QuadTile::kQuads];
  moveTile(QuadTile(copy, memory), false);
}
__global__ void __launch_bounds__(kThreads) ucudnnPixelsToBlocks(const BlockCopy copy) {
  waitForInputs();
  __shared__ float memory[PixelTile<float, kFewPixels>::kNumbers];
  copyPixels(copy, true, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnPixelsToBlocks16(const BlockCopy copy) {
  waitForInputs();
  __shared__ Half memory[PixelTile<Half, kFewPixels>::kNumbers];
  copyPixels(copy, true, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnPixelsFromBlocks(const BlockCopy copy) {
  waitForInputs();
  __shared__ float memory[PixelTile<float, kFewPixels>::kNumbers];
  copyPixels(copy, false, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnPixelsFromBlocks16(const BlockCopy copy) {
  waitForInputs();
  __shared__ Half memory[PixelTile<Half, kFewPixels>::kNumbers];
  copyPixels(copy, false, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnPairsToBlocks16(const BlockCopy copy) {
  waitForInputs();
  __shared__ std::uint32_t memory[PairTile<64>::kWords];
  copyPairs(copy, true, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnPairsFromBlocks16(const BlockCopy copy) {
  waitForInputs();
  __shared__ std::uint32_t memory[PairTile<64>::kWords];
  copyPairs(copy, false, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnPixels(const PixelCopies all) {
  waitForInputs();
  __shared__ float memory[PixelTile<float, kFewPixels>::kNumbers];
  copyPixels(all, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnPixels16(const PixelCopies all) {
  waitForInputs();
  __shared__ Half memory[PixelTile<Half, kFewPixels>::kNumbers];
  copyPixels(all, memory);
}
__global__ void __launch_bounds__(kThreads) ucudnnPairs16(const PixelCopies all) {
  waitForInputs();
  __shared__ std::uint32_t memory[PairTile<64>::kWords];
  copyPairs(all, memory);
}
__global__ void ucudnnFiltersToBlocks(const FilterCopy copy) {
  waitForInputs();
  copyFiltersToBlocks<float>(copy);
}
__global__ void ucudnnFiltersToBlocks16(const FilterCopy copy) {
  waitForInputs();
  copyFiltersToBlocks<Half>(copy);
}
__global__ void ucudnnFiltersFromBlocks(const FilterCopy copy) {
  waitForInputs();
  copyFiltersFromBlocks<float>(copy);
}
__global__ void ucudnnFiltersFromBlocks16(const FilterCopy copy) {
  waitForInputs();
  copyFiltersFromBlocks<Half>(copy);
}
__global__ void ucudnnFiltersFromFloats16(const FilterCopy copy) {
  waitForInputs();
  roundFilters(copy);
}

__global__ void __launch_bounds__(kThreads) ucudnnToPlanes(const BlockCopy copy) {
  waitForInputs();
  copyToPlanes(copy);
}
__global__ void __launch_bounds__(kThreads) ucudnnFromPlanes(const BlockCopy copy) {
  waitForInputs();
  copyFromPlanes(copy);
}

}  // extern "C"
