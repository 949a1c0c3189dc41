// The algorithms of cuDNN's legacy convolution API: what clients name, and the first of the kernel
// sources.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/source.hpp"
#include "problem/activation.hpp"

namespace ucudnn {

/// The source's place: before any other.
constexpr std::int32_t kAlgorithms = 0;

/// The algorithm as a client names it; empty for kernels of other sources.
inline std::optional<int> algorithmOf(Kernel kernel) noexcept {
  return kernel.source == kAlgorithms ? std::optional<int>(kernel.id) : std::nullopt;
}

std::unique_ptr<KernelSource> makeAlgorithmSource();

/// Whether cuDNN calls the algorithm deterministic; true for one that it does not know.
bool isDeterministic(Operation operation, int algorithm) noexcept;

/// Whether the algorithm is one of Winograd's or Fourier's.
bool transforms(Operation operation, int algorithm) noexcept;

/// False: cuDNN's fused call does not take the algorithm, or the problem does not allow its
/// transform.
bool mayRun(const Problem& problem, int algorithm) noexcept;

/// False: cuDNN has no algorithm for the problem, but the graph API may have engines.
inline bool mayHaveAlgorithms(const Problem& problem,
                              const ConvolutionDescriptors& descriptors) noexcept {
  return areThere(descriptors) && !isOfGraphs(problem);
}

/// Whether Winograd's transforms are as accurate as other kernels of the math type. Not on filters
/// beyond 3x3: 5x5 has errors of 1e-3 on an H200, where TF32 itself has 3e-4 and others 2e-5.
bool isWinogradAccurate(const Problem& problem) noexcept;

/// Whether the algorithm is WINOGRAD_NONFUSED.
bool isWinogradNonFused(Operation operation, int algorithm) noexcept;

/// Whether the algorithm is as accurate as others of its math type. WINOGRAD_NONFUSED may not be.
bool isAccurate(const Problem& problem, int algorithm) noexcept;

/// The algorithms that cuDNN has for the problem that the descriptors describe; empty if it has
/// none. Asks cuDNN on the host; runs nothing. REQUIRES: descriptors have the problem's values.
/// `failures`, if not null, counts queries that failed for another reason than that cuDNN has no
/// such kernel.
std::vector<KernelOffer> offeredAlgorithms(cudnnHandle_t handle,
                                           const Problem& problem,
                                           const ConvolutionDescriptors& descriptors,
                                           int* failures = nullptr);

/// Whether one of these needs no more workspace, and is deterministic if that is asked for. Stops
/// at the first, so it takes a fraction of what cuDNN's heuristics take.
bool isOfferedWithin(cudnnHandle_t handle,
                     const Problem& problem,
                     const ConvolutionDescriptors& descriptors,
                     std::size_t workspaceBytes,
                     bool deterministic);

/// The algorithms that work according to cuDNN's heuristics, best first:
/// cudnnGetConvolution*Algorithm_v7. Runs nothing. Empty if cuDNN has no answer. The first is
/// cuDNN's choice without a workspace limit, among the algorithms whose transform the problem
/// allows.
std::vector<KernelOffer> rankedAlgorithms(cudnnHandle_t handle,
                                          const Problem& problem,
                                          const ConvolutionDescriptors& descriptors);

}  // namespace ucudnn
