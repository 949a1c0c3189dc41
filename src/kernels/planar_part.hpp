// How planes.hpp cuts a convolution into parts that need less workspace, and what each is in
// planes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/block_copy.hpp"
#include "kernels/copied_tensors.hpp"
#include "kernels/pixel_copies.hpp"
#include "problem/part.hpp"

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

/// One of the parts in planes. Tiles of the forward operation add up, and bands of backward data do
/// where they overlap: in the rows of x that several rows of y are computed from.
class PlanarPart {
 public:
  /// `written`: so many of backward data's rows of x are in bands before. `copiesY`: y is packed.
  PlanarPart(const Part& part, std::int32_t written, bool copiesY) noexcept;

  const Problem& problem() const noexcept { return planar_; }
  /// In the whole's tensors.
  const Offsets& offsets() const noexcept { return offsets_; }
  const CopiedTensors& copies() const noexcept { return copies_; }
  /// Of the workspace, before what the algorithm takes.
  std::size_t bytes() const noexcept { return roundUpToAlignment(copies_.bytes()); }

  // The copies between the part's tensors and its planes.
  BlockCopy x(const void* tensor, const void* planes) const noexcept {
    return between(x_, tensor, planes);
  }
  BlockCopy w(const void* tensor, const void* planes) const noexcept {
    return between(w_, tensor, planes);
  }
  BlockCopy y(const void* tensor, const void* planes) const noexcept {
    return between(y_, tensor, planes);
  }
  /// Of x's rows: those that bands before have written, and the others. One may have no rows.
  std::pair<BlockCopy, BlockCopy> writtenAndNew(const void* tensor,
                                                const void* planes) const noexcept;

 private:
  Problem planar_;
  Offsets offsets_;
  CopiedTensors copies_;
  BlockCopy x_{}, w_{}, y_{};
  std::int32_t written_;
};

/// The parts in the order in which they run: bands of one height, and, if the last is less high,
/// that one. All of a run have the same problem. Empty: there are no planes.
std::vector<std::vector<PlanarPart>> runsOf(const Problem& problem, const PlaneCut& cut);

}  // namespace ucudnn
