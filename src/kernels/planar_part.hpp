// How planes.hpp cuts a convolution into parts that need less workspace, and what each is in
// planes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/block_copy.hpp"
#include "kernels/native.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// Equal tiles of x's channels, and bands of y's rows: one after another in the same workspace.
struct PlaneCut {
  int tiles, bands;
  std::string_view suffix;  ///< of a kernel's name

  /// Of y, in all bands but the last.
  int rowsOf(const Problem& problem) const noexcept {
    return (problem.ySizes[2] + bands - 1) / bands;
  }
};

// Of more tiles each has fewer channels than algorithms are fast on; of more bands, too many rows
// are in two of them.
constexpr PlaneCut kPlaneCuts[] = {{1, 1, "_planes"},
                                   {2, 1, "_planes_tiles=2"},
                                   {4, 1, "_planes_tiles=4"},
                                   {1, 2, "_planes_bands=2"},
                                   {1, 3, "_planes_bands=3"}};

/// Whether the problem, cut so, may be faster in planes. Of its values alone: cuDNN, which has no
/// descriptors of tensors of 2^31 elements, is not asked.
bool hasPlanes(const Problem& problem, const PlaneCut& cut) noexcept;

/// One of the parts. Tiles of the forward operation add up, and bands of backward data do where
/// they overlap: in the rows of x that several rows of y are computed from.
class PlanarPart {
 public:
  /// With so many rows of y. REQUIRES: hasPlanes.
  PlanarPart(const Problem& problem, const PlaneCut& cut, int rows) noexcept;

  /// In planes. Its y is a band of the caller's, or a copy.
  const Problem& problem() const noexcept { return planar_; }
  // Of the workspace: x, w, y if it is copied, and what the algorithm takes.
  std::size_t wPlace() const noexcept;
  std::size_t yPlace() const noexcept;
  std::size_t bytes() const noexcept;
  bool copiesY() const noexcept { return copiesY_; }

  // The copies of the part whose tensors these are, and whose band begins at so many rows of y.
  BlockCopy x(const ConvolutionPointers& pointers, int row) const noexcept;
  BlockCopy w(const ConvolutionPointers& pointers) const noexcept;
  BlockCopy y(const ConvolutionPointers& pointers, int row) const noexcept;
  /// Of x's rows: those that bands before have written, and the others. One may have no rows.
  std::pair<BlockCopy, BlockCopy> writtenAndNew(const ConvolutionPointers& pointers,
                                                int row) const noexcept;

  /// Moves a call's pointers from a tile to the next.
  void next(ConvolutionPointers& pointers) const noexcept;

 private:
  /// Of the caller's rows that are in planes from `from` to `to`, counted from the band's first.
  BlockCopy xRows(const ConvolutionPointers& pointers,
                  int row,
                  std::int64_t from,
                  std::int64_t to) const noexcept;

  Problem planar_;
  BlockCopy x_{}, w_{}, y_{};
  int rowsOfY_ = 0;  ///< in all bands
  bool copiesY_ = false;
};

/// A part of each height: of all bands but the last, and, if that is less high, of the last.
std::vector<PlanarPart> partsOf(const Problem& problem, const PlaneCut& cut);

}  // namespace ucudnn
