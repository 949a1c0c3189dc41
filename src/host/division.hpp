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

/// The workspace of a problem that no kernel computes.
constexpr std::size_t kNoWorkspace = std::numeric_limits<std::size_t>::max();

/// More workspace than that, in bytes, makes no kernel of a tile faster.
std::size_t usefulWorkspace(const Problem& tile) noexcept;

/// Time and workspace of a tile's kernels.
struct TileKernels {
  /// Their time in ms, within a workspace.
  std::function<double(const Problem& tile, std::size_t workspaceBytes)> ms;
  /// The least workspace within which one runs, in bytes; kNoWorkspace: there is none.
  std::function<std::size_t(const Problem& tile)> leastWorkspace;
};

/// UCUDNN_DEVICE_MEMORY.
struct DeviceBudget {
  std::size_t bytes = 0;
  std::size_t otherBytes = 0;  ///< of it, for what is no tile

  std::size_t forTiles() const noexcept { return bytes > otherBytes ? bytes - otherBytes : 0; }
};

/// Throws Error if no tile fits the budget; the message names the bytes that are needed: within
/// these the same question has an answer. REQUIRES: the tensors of `whole` don't overlap.
Division chooseDivision(const Problem& whole,
                        const HostOperands& operands,
                        const Link& link,
                        const DeviceBudget& budget,
                        const TileKernels& kernels);

}  // namespace ucudnn
