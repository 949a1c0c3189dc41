// The engines of cuDNN's graph API as a source of kernels, beside its legacy algorithms.
#pragma once

#include <memory>

#include "kernels/operation_graph.hpp"
#include "kernels/source.hpp"

namespace ucudnn {

/// The source's place.
constexpr std::int32_t kEngines = 1;

/// Bytes that x, w, y and the workspace of a call are aligned to for which engines are built.
constexpr std::int64_t kEngineAlignment = 16;

/// Whether engines can run on the memory: x, w and y are there, and all is aligned. What legacy
/// algorithms refuse, engines may read.
bool isMemoryForEngines(const ConvolutionPointers& pointers) noexcept;

/// Whether engines can run a call: alpha is 1, beta is 0 or 1, and the memory is for engines.
bool suitsEngines(const Problem& problem, const ConvolutionPointers& pointers) noexcept;

#if UCUDNN_HAS_ENGINES
/// What the source offers for the problem on a device.
std::vector<KernelOffer> engineOffers(const EngineDevice& device,
                                      const Problem& problem,
                                      int* failures);
#endif

/// From cuDNN 9.2 on; before, it has nothing to offer.
std::unique_ptr<KernelSource> makeEngineSource();

}  // namespace ucudnn
