// The engines of cuDNN's graph API as a source of kernels, beside its legacy algorithms.
#pragma once

#include <memory>

#include "kernels/operation_graph.hpp"
#include "kernels/source.hpp"

namespace ucudnn {

/// The source's place.
constexpr std::int32_t kEngines = 1;

#if UCUDNN_HAS_ENGINES
/// The source's offers for the problem on a device.
std::vector<KernelOffer> engineOffers(const EngineDevice& device,
                                      const Problem& problem,
                                      int* failures,
                                      Calls calls = Calls::kAll);
/// KernelSource::offerInBands on a device.
std::optional<KernelOffer> engineInBands(const EngineDevice& device,
                                         const Problem& problem,
                                         const OfferBounds& bounds,
                                         int* failures);
/// KernelSource::offerFirst on a device.
std::optional<KernelOffer> firstEngine(const EngineDevice& device,
                                       const Problem& problem,
                                       const OfferBounds& bounds,
                                       bool orNext,
                                       int* failures);
/// KernelSource::offerOnCopies on a device.
std::optional<KernelOffer> engineOnCopies(const EngineDevice& device,
                                          const Problem& problem,
                                          std::optional<Kernel> own,
                                          const OfferBounds& bounds,
                                          const AskKernel& ask);
/// KernelSource::firstOffers on a device.
std::vector<KernelOffer> firstEngines(const EngineDevice& device,
                                      const Problem& problem,
                                      std::size_t limitBytes,
                                      std::size_t most,
                                      Calls calls,
                                      int* failures);
/// KernelSource::variants on a device: other knobs and, last, other numbers of bands.
std::vector<std::vector<Kernel>> engineVariants(const EngineDevice& device,
                                                const Problem& problem,
                                                Kernel kernel);
#endif

/// From cuDNN 9.2 on; before, it has nothing to offer.
std::unique_ptr<KernelSource> makeEngineSource();

}  // namespace ucudnn
