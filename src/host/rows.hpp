// Copies between a part of a tensor and a packed copy of it, as rows of bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "problem/problem.hpp"

namespace ucudnn {

/// The shape of a tensor, or of a part of one.
struct Layout {
  int dimensions = 0;
  Problem::Sizes sizes{};
  Problem::Strides strides{};  ///< in elements
  std::size_t elementBytes = 0;

  /// Elements overlap, or are one (a stride of 0).
  bool overlaps() const;
  std::size_t elements() const noexcept;
  std::size_t bytes() const noexcept { return elements() * elementBytes; }
  bool operator==(const Layout& other) const noexcept {
    return dimensions == other.dimensions && sizes == other.sizes && strides == other.strides &&
           elementBytes == other.elementBytes;
  }
};

Layout layoutOfX(const Problem& problem) noexcept;
Layout layoutOfW(const Problem& problem) noexcept;
Layout layoutOfY(const Problem& problem) noexcept;

/// Strides of a packed tensor of these sizes whose dimensions are in the tensor's order.
Problem::Strides packedLike(const Layout& tensor, const Problem::Sizes& sizes);

/// `height` rows of `width` bytes, as cudaMemcpy2D copies them. Offsets are in bytes.
struct Rows {
  std::size_t tensor = 0, slot = 0;  ///< where the first row begins
  std::size_t width = 0, height = 1;
  std::size_t tensorPitch = 0, slotPitch = 0;

  std::size_t bytes() const noexcept { return width * height; }
};

/// The rows of a box of `sizes` elements that begins at these offsets. REQUIRES: neither layout
/// overlaps. Empty for an empty box.
std::vector<Rows> rowsOf(const Problem::Sizes& sizes,
                         const Layout& tensor,
                         std::size_t tensorOffset,
                         const Problem::Strides& slotStrides,
                         std::size_t slotOffset);

}  // namespace ucudnn
