// The kernels of block_copy.hpp. Tensors are copied by way of shared memory, so that neighbouring
// threads read and write neighbours: a thread block copies a row of blocks of one sample. Filters
// are small: a thread copies a number.
#include "cuda/block_copy.hpp"

using ucudnn::BlockCopy;
using ucudnn::FilterCopy;

namespace {

using namespace ucudnn::block_copy;

// So many numbers a thread reads before it writes the first: memory answers late.
constexpr int kBatch = 4;
constexpr int kLines = 2;
// Thread blocks on a multiprocessor at a time: of more registers for fewer an H200 copies slower.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kResident = 4;
#else
constexpr int kResident = 6;
#endif

/// What a thread block copies by way of shared memory: some channels of a row of blocks, and of
/// these as many as fit at a time. One number more in each block lets threads that write to
/// neighbouring blocks use different banks.
struct Tile {
  const BlockCopy& copy;
  float* memory;
  int sample, row;            ///< of blocks
  int channel;                ///< the first
  int lines;                  ///< a line is a row of a channel
  int inBlock, inTile, most;  ///< numbers of a block, those of them here, and blocks at a time
  int nextPixel;

  __device__ Tile(const BlockCopy& whole, float* shared, int rows) : copy(whole), memory(shared) {
    sample = static_cast<int>(blockIdx.x) / rows;
    row = static_cast<int>(blockIdx.x) - sample * rows;
    const int channels =
        (copy.channels + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
    channel = static_cast<int>(blockIdx.y) * channels;
    lines = max(0, min(channels, copy.channels - channel)) * copy.rows;
    inBlock = copy.channels * copy.rows * copy.columns;
    inTile = lines * copy.columns;
    most = kTile / (inTile + 1);
    nextPixel = static_cast<int>(copy.strides[3]);
  }

  /// A thread has the same number of several blocks: of those from `first` on.
  template <typename Move>
  __device__ void forBlocks(int first, int blocks, Move move) const {
    const int together = kThreads / inTile;
    const int thread = static_cast<int>(threadIdx.y * kLanes + threadIdx.x);
    const int block = thread / inTile;
    const int number = thread - block * inTile;
    if (block >= together) return;
    const std::int64_t begin =
        ((static_cast<std::int64_t>(sample) * copy.down + row) * copy.across + first + block) *
            inBlock +
        channel * copy.rows * copy.columns + number;
    float* blocked = copy.blocks + begin;
    float* place = memory + block * (inTile + 1) + number;
    for (int left = blocks - block; left > 0; left -= kBatch * together) {
      move(blocked, place, together, left);
      blocked += kBatch * together * inBlock;
      place += kBatch * together * (inTile + 1);
    }
  }

  __device__ void readBlocks(int first, int blocks) const {
    forBlocks(first, blocks, [&](const float* from, float* to, int together, int left) {
      float numbers[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        numbers[i] = i * together < left ? from[i * together * inBlock] : 0.0F;
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (i * together < left) to[i * together * (inTile + 1)] = numbers[i];
    });
  }

  __device__ void writeBlocks(int first, int blocks) const {
    forBlocks(first, blocks, [&](float* to, const float* from, int together, int left) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (i * together < left) to[i * together * inBlock] = from[i * together * (inTile + 1)];
    });
  }

  /// Null: beyond the tensor, or none.
  __device__ float* line(int line) const {
    const int behind = line / copy.rows;
    const int y = (row - behind) * copy.rows + line - copy.padY;
    if (line >= lines || y < 0 || y >= copy.height) return nullptr;
    return copy.tensor + sample * copy.strides[0] + (channel + behind) * copy.strides[1] +
           y * copy.strides[2];
  }

  /// A warp has some lines at a time, and a thread a column of several blocks of each.
  template <typename Move>
  __device__ void forPixels(int first, int blocks, Move move) const {
    const int together = kLanes / copy.columns;
    const int block = static_cast<int>(threadIdx.x) / copy.columns;
    const int column = static_cast<int>(threadIdx.x) - block * copy.columns;
    if (block >= together) return;
    const int x = (first + block) * copy.columns + column - copy.padX;
    for (int i = static_cast<int>(threadIdx.y); i < lines; i += kLines * kWarps) {
      float* line[kLines];
#pragma unroll
      for (int j = 0; j < kLines; ++j) line[j] = this->line(i + j * kWarps);
      float* const place = memory + block * (inTile + 1) + i * copy.columns + column;
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
              [&](float* const* line, int linesLeft, int x, float* to, int together, int left) {
                float numbers[kLines][kBatch];
#pragma unroll
                for (int i = 0; i < kLines; ++i)
#pragma unroll
                  for (int j = 0; j < kBatch; ++j) {
                    const int at = x + j * together * copy.columns;
                    numbers[i][j] =
                        line[i] != nullptr && isInside(at) ? line[i][at * nextPixel] : 0.0F;
                  }
#pragma unroll
                for (int i = 0; i < kLines; ++i)
#pragma unroll
                  for (int j = 0; j < kBatch; ++j)
                    if (j * together < left && i * kWarps < linesLeft)
                      to[i * kWarps * copy.columns + j * together * (inTile + 1)] = numbers[i][j];
              });
  }

  /// Of the blocks `known` are in memory; others are 0.
  __device__ void writePixels(int first, int blocks, int known) const {
    forPixels(
        first,
        blocks,
        [&](float* const* line, int, int x, const float* from, int together, int left) {
          float numbers[kLines][kBatch];
          if (copy.adds != 0)
#pragma unroll
            for (int i = 0; i < kLines; ++i)
#pragma unroll
              for (int j = 0; j < kBatch; ++j) {
                const int at = x + j * together * copy.columns;
                const bool isPixel = j * together < left && line[i] != nullptr && isInside(at);
                numbers[i][j] = isPixel ? line[i][at * nextPixel] : 0.0F;
              }
#pragma unroll
          for (int i = 0; i < kLines; ++i)
#pragma unroll
            for (int j = 0; j < kBatch; ++j) {
              const int at = x + j * together * copy.columns;
              if (j * together >= left || line[i] == nullptr || !isInside(at)) continue;
              const bool isKnown = j * together < left + known - blocks;
              const float number =
                  isKnown ? from[i * kWarps * copy.columns + j * together * (inTile + 1)] : 0.0F;
              line[i][at * nextPixel] = copy.adds != 0 ? numbers[i][j] + number : number;
            }
        });
  }

  __device__ bool isInside(int x) const {
    return x >= 0 && x < copy.width;
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, kResident)
    ucudnnToBlocks(const BlockCopy copy) {
  __shared__ float memory[kTile];
  const Tile tile(copy, memory, copy.down);
  if (tile.lines == 0) return;
  for (int first = 0; first < copy.across; first += tile.most) {
    const int blocks = min(tile.most, copy.across - first);
    tile.readPixels(first, blocks);
    __syncthreads();
    tile.writeBlocks(first, blocks);
    __syncthreads();
  }
}

/// Where the tensor is higher or wider than the blocks, there are more of them that are 0.
extern "C" __global__ void __launch_bounds__(kThreads, kResident)
    ucudnnFromBlocks(const BlockCopy copy) {
  __shared__ float memory[kTile];
  const Tile tile(copy, memory, (copy.height + copy.padY + copy.rows - 1) / copy.rows);
  if (tile.lines == 0) return;
  const int across = (copy.width + copy.padX + copy.columns - 1) / copy.columns;
  for (int first = 0; first < across; first += tile.most) {
    const int known = tile.row < copy.down ? max(0, min(tile.most, copy.across - first)) : 0;
    tile.readBlocks(first, known);
    __syncthreads();
    tile.writePixels(first, min(tile.most, across - first), known);
    __syncthreads();
  }
}

extern "C" __global__ void ucudnnFiltersToBlocks(const FilterCopy copy) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int rest = thread;
  const auto take = [&](int size) {
    const int index = rest % size;
    rest /= size;
    return index;
  };
  const int column = take(copy.columns), row = take(copy.rows), channel = take(copy.channels);
  const int x = take(copy.across) * copy.columns + column;
  const int y = take(copy.down) * copy.rows + row;
  const int tapX = x - take(copy.shifts) * copy.stepX, tapY = y - take(copy.shifts) * copy.stepY;
  if (rest >= copy.count) return;
  const bool isTap = tapX >= 0 && tapX < copy.width && tapY >= 0 && tapY < copy.height;
  copy.blocks[thread] = isTap ? copy.filters[rest * copy.strides[0] + channel * copy.strides[1] +
                                             tapY * copy.strides[2] + tapX * copy.strides[3]]
                              : 0.0F;
}

extern "C" __global__ void ucudnnFiltersFromBlocks(const FilterCopy copy) {
  int rest = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const auto take = [&](int size) {
    const int index = rest % size;
    rest /= size;
    return index;
  };
  const int tapX = take(copy.width), tapY = take(copy.height), channel = take(copy.channels);
  if (rest >= copy.count) return;
  float sum = 0;
  for (int shiftY = 0; shiftY < copy.shifts; ++shiftY)
    for (int shiftX = 0; shiftX < copy.shifts; ++shiftX) {
      const int x = tapX + shiftX * copy.stepX, y = tapY + shiftY * copy.stepY;
      const int filter = (rest * copy.shifts + shiftY) * copy.shifts + shiftX;
      const int block = (filter * copy.down + y / copy.rows) * copy.across + x / copy.columns;
      const int number = (channel * copy.rows + y % copy.rows) * copy.columns + x % copy.columns;
      sum += copy.blocks[block * (copy.channels * copy.rows * copy.columns) + number];
    }
  float& target = copy.filters[rest * copy.strides[0] + channel * copy.strides[1] +
                               tapY * copy.strides[2] + tapX * copy.strides[3]];
  target = copy.adds != 0 ? target + sum : sum;
}
