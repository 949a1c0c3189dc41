// How planes.hpp cuts a convolution into parts that need less workspace, and the problem of each
// part in planes.
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

/// Equal tiles of x's channels, and bands of y's rows. They run one after another in the same
/// workspace.
struct PlaneCut {
  int tiles, bands;
  std::string_view suffix;  ///< of a kernel's name

  /// Rows of y in each band but the last.
  int rowsOf(const Problem& problem) const noexcept {
    return (problem.ySizes[2] + bands - 1) / bands;
  }
};

// With more tiles, each has fewer channels than algorithms are fast on. With more bands, too many
// rows are in two of them.
constexpr PlaneCut kPlaneCuts[] = {{1, 1, "_planes"},
                                   {2, 1, "_planes_tiles=2"},
                                   {4, 1, "_planes_tiles=4"},
                                   {1, 2, "_planes_bands=2"},
                                   {1, 3, "_planes_bands=3"}};

/// Whether the problem, cut so, may be faster in planes. Looks only at the problem's values: cuDNN
/// is not asked, because it has no descriptors of tensors of 2^31 elements.
bool hasPlanes(const Problem& problem, const PlaneCut& cut) noexcept;

/// One of the parts in planes. Tiles of the forward operation add up. Bands of backward data add up
/// where they overlap: in the rows of x that several rows of y are computed from.
class PlanarPart {
 public:
  /// `written`: rows of backward data's x that earlier bands have written. `copiesY`: y is packed.
  PlanarPart(const Part& part, std::int32_t written, bool copiesY) noexcept;

  const Problem& problem() const noexcept { return planar_; }
  /// In the whole's tensors.
  const Offsets& offsets() const noexcept { return offsets_; }
  const CopiedTensors& copies() const noexcept { return copies_; }
  /// Bytes of the workspace before the algorithm's.
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
  /// Copies x's rows in two: those that earlier bands have written, and the others. One may have no
  /// rows.
  std::pair<BlockCopy, BlockCopy> writtenAndNew(const void* tensor,
                                                const void* planes) const noexcept;

 private:
  Problem planar_;
  Offsets offsets_;
  CopiedTensors copies_;
  BlockCopy x_{}, w_{}, y_{};
  std::int32_t written_;
};

/// The parts in the order in which they run: bands of one height, then the last band if it is
/// lower. All parts of a run have the same problem. Empty: there are no planes.
std::vector<std::vector<PlanarPart>> runsOf(const Problem& problem, const PlaneCut& cut);

}  // namespace ucudnn
