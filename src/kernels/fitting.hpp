// Which of cuDNN's algorithms can stand in for one that does not fit the workspace of a call.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/algorithms.hpp"

namespace ucudnn {

enum class Determinism { kAny, kPreferred, kRequired };

/// Whether cuDNN has the algorithm for these descriptors, in so much workspace. Asks on the host.
bool fitsWorkspace(cudnnHandle_t handle,
                   Operation operation,
                   const ConvolutionDescriptors& descriptors,
                   int algorithm,
                   std::size_t workspaceBytes) noexcept;

/// What cuDNN would run undivided in so much workspace: of the algorithms that fit, the first in
/// the order of its heuristics, deterministic ones first where they are preferred, inaccurate ones
/// last. Empty: none fits. Asks on the host; runs nothing. REQUIRES: descriptors have the problem's
/// values. Throws std::bad_alloc.
std::optional<KernelOffer> algorithmThatFits(cudnnHandle_t handle,
                                             const Problem& problem,
                                             const ConvolutionDescriptors& descriptors,
                                             std::size_t workspaceBytes,
                                             Determinism determinism);

/// What GetWorkspaceSize must name for an algorithm where a plan of `planBytes` was made: a forward
/// convolution may become bias_activation_forward at the call, which without an activation has
/// IMPLICIT_PRECOMP_GEMM only. So that is given its own need, whatever the limit.
std::size_t bytesToName(cudnnHandle_t handle,
                        Operation operation,
                        const ConvolutionDescriptors& descriptors,
                        int algorithm,
                        std::size_t planBytes) noexcept;

}  // namespace ucudnn
