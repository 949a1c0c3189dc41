// What engines are offered for a problem, whole and in parts.
#pragma once

#include "kernels/built_engine.hpp"

#if UCUDNN_HAS_ENGINES

#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/operation_graph.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// A part's graphs: of the first the output is overwritten, of the second added to.
/// bias_activation_forward has the first only, in which z is, and so have those that don't add.
/// Throws Error.
std::vector<OperationGraph> graphsOf(const EngineDevice& device, const EnginePart& part);

/// Empty: cuDNN does not have the configuration, what it computes is not allowed, or it is
/// outranked by `better`. `failures` as that of KernelSource::offers.
std::optional<KernelOffer> offerOf(const Problem& problem,
                                   ConfiguredEngine& engine,
                                   int* failures,
                                   const std::vector<KernelOffer>& better = {});

}  // namespace ucudnn

#endif
