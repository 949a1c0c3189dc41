// Copies of tensors to blocks of neighbouring pixels, and back: our only device code.
// cudnnTransformTensor can't pad so, and is too slow.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

namespace ucudnn {

/// A four-dimensional tensor, and its copy as blocks of rows x columns pixels. The copy is packed
/// as (samples, down, across, numbers). A block is the (channels, rows, columns) of its pixels,
/// with zeros behind them. The first block begins `padY` rows above the tensor and `padX` columns
/// before it.
struct BlockCopy {
  void* tensor;
  void* blocks;
  std::int64_t strides[4];  ///< of the tensor, in elements: samples, channels, y, x
  std::int32_t samples, channels, height, width;
  std::int32_t rows, columns, padY, padX;
  std::int32_t down, across;  ///< blocks
  std::int32_t numbers;       ///< in a block
  std::int32_t adds;          ///< fromBlocks: 1 adds to the tensor, 0 overwrites it
  std::int32_t numberBytes;   ///< 4: floats; 2: others, whose 0 is all zeros
};

/// Filters, and their copy for tensors of blocks. Each filter becomes shiftsY x shiftsX filters,
/// whose taps begin (0, stepY, 2 stepY, ...) rows and (0, stepX, ...) columns behind a block's
/// first. The copy is packed as (filters, shiftsY, shiftsX, down, across, numbers).
struct FilterCopy {
  void* filters;
  void* blocks;
  std::int64_t strides[4];  ///< of the filters, in elements: filters, channels, y, x
  std::int32_t count, channels, height, width;
  std::int32_t rows, columns, shiftsY, shiftsX, stepY, stepX;
  std::int32_t down, across;  ///< blocks
  std::int32_t numbers;       ///< in a block
  std::int32_t adds;          ///< fromBlocks: 1 adds to the filters, 0 overwrites them
  std::int32_t numberBytes;   ///< as above
  /// Numbers of a pixel in a block that is (rows, columns, pixels' numbers), with zeros behind a
  /// pixel's channels; 0: it is (channels, rows, columns).
  std::int32_t inPixel;
  /// Filters of a shift in a copy that is packed as (shiftsY, shiftsX, filters, ...), with zeros
  /// behind them; 0: it is packed as above.
  std::int32_t inShift;
  /// fromBlocks: 1: the blocks hold floats, the filters numbers of two bytes. Sums are rounded
  /// once.
  std::int32_t hasFloats;
  std::int32_t isBfloat16;  ///< if the blocks hold floats: 1; 0: half
};

/// Numbers of two bytes that are added up in float.
struct WideSum {
  const void* numbers;
  void* sums;               ///< floats
  std::int64_t count;       ///< a multiple of kSummedAtOnce
  std::int32_t adds;        ///< 1 adds to the sums, 0 overwrites them
  std::int32_t isBfloat16;  ///< 1; 0: half
};
/// Numbers that a thread adds.
constexpr int kSummedAtOnce = 8;

/// Copies that one launch can make.
constexpr int kMostCopies = 3;

/// Copies by one launch in which each pixel is a block. A thread block copies a tile.
struct PixelCopies {
  BlockCopy copies[kMostCopies];
  std::int32_t toBlocks[kMostCopies];  ///< 1; or 0: from them
  std::int32_t tiles[kMostCopies];     ///< all
  std::int32_t pixelTiles[kMostCopies], channelTiles[kMostCopies];
  std::int32_t numberBytes;  ///< of all
  std::int32_t sumTiles;     ///< 0: there is no sum. Only for numbers of two bytes
  WideSum sum;
};

/// Copies to and from blocks, in the order in which they were added, and a sum.
class CopyList {
 public:
  template <typename Copy>
  void add(const Copy& copy, bool toBlocks) noexcept {
    copies_[count_++] = {copy, toBlocks};
  }
  /// At most one sum, of numbers that no copy writes.
  void add(const WideSum& sum) noexcept { sum_ = sum; }
  struct Entry {
    std::variant<BlockCopy, FilterCopy> copy;
    bool toBlocks = false;
  };
  const Entry* begin() const noexcept { return copies_.data(); }
  const Entry* end() const noexcept { return copies_.data() + count_; }
  const std::optional<WideSum>& sum() const noexcept { return sum_; }

 private:
  std::array<Entry, kMostCopies> copies_{};
  std::size_t count_ = 0;
  std::optional<WideSum> sum_;
};

/// Numbers in a block.
constexpr int kMostInBlock = 256;
constexpr int kMostColumns = 32;
/// CUDA's limit in y and z.
constexpr int kMostThreadBlocks = 65535;

/// How the kernels are launched.
namespace block_copy {
constexpr int kLanes = kMostColumns, kWarps = 8, kThreads = kLanes * kWarps;
constexpr int kTile = 16 * kMostInBlock;  ///< numbers in a thread block's shared memory
// If each pixel is a block: a tile has more channels if there are few pixels, and more pixels if
// they have few channels.
constexpr int kTileNumbers = 2048, kFewPixels = 16;
// If two pixels of two bytes are moved at once.
constexpr int kPairNumbers = 4096;
}  // namespace block_copy

/// Whether block copies work here. Throws Error if that can't be found out now.
bool hasBlockCopies();

/// The part of a block beyond the tensor becomes 0. REQUIRES: at most kMostInBlock numbers and
/// kMostColumns columns in a block; a line of the tensor spans fewer than 2^31 numbers. Or: each
/// pixel is a block, and the blocks cover the tensor; it has up to kMostThreadBlocks samples and
/// channels, and a block has a multiple of four channels.
cudaError_t toBlocks(const BlockCopy& copy, cudaStream_t stream) noexcept;
cudaError_t toBlocks(const FilterCopy& copy, cudaStream_t stream) noexcept;
/// The part of the tensor beyond the last block counts as 0. The shifts of a filter are added up.
/// Numbers that are not floats are only copied: to add them, the blocks must hold the sums.
/// REQUIRES: filters that are not floats have one shift, or their blocks hold floats.
cudaError_t fromBlocks(const BlockCopy& copy, cudaStream_t stream) noexcept;
cudaError_t fromBlocks(const FilterCopy& copy, cudaStream_t stream) noexcept;

/// Makes all copies and the sum; none may read what another writes. If pixels are blocks, one
/// launch makes them, because a small copy takes no longer than its launch; else they run one after
/// another.
cudaError_t copyAll(const CopyList& copies, cudaStream_t stream) noexcept;

/// The same with a plane for each number of a block: packed as (samples, numbers, down, across),
/// without zeros behind a block's pixels. Only for floats.
cudaError_t toPlanes(const BlockCopy& copy, cudaStream_t stream) noexcept;
cudaError_t fromPlanes(const BlockCopy& copy, cudaStream_t stream) noexcept;

}  // namespace ucudnn
