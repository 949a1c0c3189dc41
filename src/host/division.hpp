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

/// The time of a tile's kernels in ms, within a workspace.
using TileTime = std::function<double(const Problem& tile, std::size_t workspaceBytes)>;

/// Throws Error if no tile fits the budget; the message names the bytes that the smallest tiles
/// need. REQUIRES: the tensors of `whole` don't overlap.
Division chooseDivision(const Problem& whole,
                        const HostOperands& operands,
                        const Link& link,
                        std::size_t budgetBytes,
                        const TileTime& tileTime);

}  // namespace ucudnn
