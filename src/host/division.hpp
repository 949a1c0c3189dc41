// Chooses tiles: the division whose pipeline is predicted to end first within the memory.
#pragma once

#include "host/schedule.hpp"

namespace ucudnn {

struct Division {
  Tiling tiling;
  std::size_t slotBytes = 0;
  std::size_t workspaceBytes = 0;  ///< of each tile's kernels
  double predictedMs = 0;

  std::size_t bytes() const noexcept { return slotBytes + workspaceBytes; }
};

/// Time and workspace of a tile's kernels.
struct TileKernels {
  /// Their time in ms, within a workspace.
  std::function<double(const Problem& tile, std::size_t workspaceBytes)> ms;
  /// The least workspace within which one runs, in bytes.
  std::function<std::size_t(const Problem& tile)> leastWorkspace;
};

/// Throws Error if no tile fits the budget; the message names the bytes that the smallest tiles
/// need. REQUIRES: the tensors of `whole` don't overlap.
Division chooseDivision(const Problem& whole,
                        const HostOperands& operands,
                        const Link& link,
                        std::size_t budgetBytes,
                        const TileKernels& kernels);

}  // namespace ucudnn
