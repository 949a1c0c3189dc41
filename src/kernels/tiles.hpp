// How a convolution is cut along its filters. A kernel whose workspace holds a copy of the filter
// tensor needs that much at any batch size; a tile has only its share.
#pragma once

#include <cstddef>

#include "kernels/native.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// A problem as equal tiles, one after another: filters and channels of y are cut, and, where there
/// are groups, whole groups with their channels of x. cuDNN takes no filter tensor with gaps, so
/// its input channels stay whole, and tiles of backward data without groups add up.
struct Tiling {
  int tiles = 1;
  Problem tile;  ///< of each; strides are the whole's
  /// Bytes from a tile to the next. 0 for x: all tiles have the whole tensor.
  std::size_t xBytes = 0, wBytes = 0, yBytes = 0;

  /// REQUIRES: exists.
  Tiling(const Problem& problem, int tiles) noexcept;

  /// Whether the filters can be cut so, into tiles that begin at multiples of `alignment` bytes.
  /// Sums are not rounded to half or bfloat16 between tiles; bias and z are not cut.
  static bool exists(const Problem& problem, int tiles, std::size_t alignment) noexcept;

  bool addsUp() const noexcept {
    return tile.operation == Operation::kBackwardData && xBytes == 0 && tiles > 1;
  }
  /// Moves a call's pointers from a tile to the next.
  void next(ConvolutionPointers& pointers) const noexcept;
};

}  // namespace ucudnn
