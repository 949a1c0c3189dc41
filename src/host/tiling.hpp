// How a convolution is divided into tiles that fit the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/rows.hpp"
#include "problem/part.hpp"

namespace ucudnn {

/// The tensors of a convolution, as ConvolutionDescriptors names them.
enum Tensor : std::size_t { kTensorX, kTensorW, kTensorY, kTensors };

/// The directions in which tiles are cut.
enum Axis : std::size_t {
  kSamples,
  kBand,  ///< along one spatial dimension of the output (of dy for backward filter)
  kOuts,  ///< groups if there are several, else filters
  kIns,   ///< channels of x; uncut if there are groups
  kAxes,
};
using TileIndex = std::array<std::int32_t, kAxes>;

Tensor outputTensorOf(Operation operation) noexcept;
/// The input of which neighbouring bands read some rows twice.
Tensor haloTensorOf(Operation operation) noexcept;
/// Whether the tensor's parts differ along the axis.
bool dependsOn(const Problem& problem, Tensor tensor, Axis axis) noexcept;
/// Whether tiles along the axis add to the same part of the output.
bool addsAlong(const Problem& problem, Axis axis) noexcept;
/// Elements along the axis. `spatial`: the dimension of bands.
std::int32_t sizeAlong(const Problem& problem, Axis axis, std::size_t spatial) noexcept;

/// Sizes of tiles, and how many of their parts are on the device at a time.
struct Tiling {
  TileIndex size{};  ///< of a tile; the last ones may be smaller
  std::size_t spatial = 0;
  bool bandsOutside = true;  ///< the order of the loops over what doesn't add
  std::array<int, kTensors> slots{1, 1, 1};
};

/// A part of a tensor, and the zeros around it in its slot.
struct TilePart {
  std::size_t offset = 0;              ///< in the whole tensor, in bytes
  Problem::Sizes sizes{};              ///< without zeros
  std::int32_t before = 0, after = 0;  ///< rows of zeros along the bands' dimension
};

/// A tile's problem, with packed strides, and its parts.
struct Tile {
  Problem problem;
  std::array<TilePart, kTensors> parts;
  bool adds = false;  ///< to what earlier tiles have written
};

/// Tiles of one division. All full tiles have the same problem, because the rows of zeros that a
/// padding stands for are in the slots. Immutable.
class Tiles {
 public:
  /// REQUIRES: sizes between 1 and the axis's; a multiple of the filter's step for bands of
  /// backward data.
  Tiles(const Problem& whole, const Tiling& tiling);

  const Problem& whole() const noexcept { return whole_; }
  const Tiling& tiling() const noexcept { return tiling_; }
  std::int32_t count(Axis axis) const noexcept { return counts_[axis]; }
  std::int64_t count() const noexcept;
  bool isCut(Axis axis) const noexcept { return counts_[axis] > 1; }
  /// Whether the tensor is cut, or has rows of zeros in its slots.
  bool isCut(Tensor tensor) const noexcept;
  /// The number of parts of a tensor.
  std::int64_t partsOf(Tensor tensor) const noexcept;

  Range range(Axis axis, std::int32_t index) const noexcept;
  Tile tile(const TileIndex& index) const;
  /// The rows of the halo tensor that a band reads, and the rows of zeros around them.
  struct BandRows {
    Range rows{};
    std::int32_t before = 0, after = 0, pad = 0;
    std::int32_t count() const noexcept { return before + rows.count + after; }
  };
  BandRows bandRows(std::int32_t index) const noexcept;

 private:
  Problem whole_;
  Tiling tiling_;
  TileIndex counts_{}, sizes_{};
};

}  // namespace ucudnn
