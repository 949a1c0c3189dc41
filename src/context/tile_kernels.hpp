// What is expected of a tile's kernels before they are measured.
#pragma once

#include "context/context.hpp"

namespace ucudnn {

/// The time of a tile's kernels in ms, as an H100's might be.
double tileMs(const Problem& tile) noexcept;

/// The same within a workspace: kernels copy their tensors, or are slow.
double tileMs(const Problem& tile, std::size_t workspaceBytes) noexcept;

/// The least workspace of cuDNN's algorithms, in bytes; kNoWorkspace: there is none. 0 where it
/// never has one: then an engine may run. Throws Error if cuDNN fails: a plan by half of the
/// answers would stay.
std::size_t leastTileWorkspace(cudnnHandle_t handle, const Settings& settings, const Problem& tile);

}  // namespace ucudnn
