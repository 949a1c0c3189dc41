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

/// The algorithm that cuDNN would run undivided in so much workspace: the first that fits in the
/// order of cuDNN's heuristics. Deterministic ones come first if they are preferred, inaccurate
/// ones last. Empty if none fits. Asks on the host; runs nothing. REQUIRES: descriptors have the
/// problem's values. Throws std::bad_alloc.
std::optional<KernelOffer> algorithmThatFits(cudnnHandle_t handle,
                                             const Problem& problem,
                                             const ConvolutionDescriptors& descriptors,
                                             std::size_t workspaceBytes,
                                             Determinism determinism);

/// The bytes that GetWorkspaceSize must name for an algorithm if a plan of `planBytes` was made. A
/// forward convolution may become bias_activation_forward at the call, which has only
/// IMPLICIT_PRECOMP_GEMM without an activation. So that algorithm gets its own need, whatever the
/// limit.
std::size_t bytesToName(cudnnHandle_t handle,
                        Operation operation,
                        const ConvolutionDescriptors& descriptors,
                        int algorithm,
                        std::size_t planBytes) noexcept;

}  // namespace ucudnn
