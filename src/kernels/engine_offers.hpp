// The engines that are offered for a problem, whole and in parts.
#pragma once

#include "kernels/built_engine.hpp"

#if UCUDNN_HAS_ENGINES

#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/operation_graph.hpp"
#include "problem/problem.hpp"

namespace ucudnn {

/// The engine's needs for the calls. Empty if cuDNN does not have the configuration, if the problem
/// does not allow its arithmetic, or if `better` outranks it. `failures` as in
/// KernelSource::offers. REQUIRES: the engine has the part's graphs for such calls.
std::optional<KernelOffer> offerOf(const Problem& problem,
                                   ConfiguredEngine& engine,
                                   Calls calls,
                                   int* failures,
                                   const std::vector<KernelOffer>& better = {});

}  // namespace ucudnn

#endif
