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

/// What the engine needs for the calls. Empty: cuDNN does not have the configuration, what it
/// computes is not allowed, or it is outranked by `better`. `failures` as that of
/// KernelSource::offers. REQUIRES: the engine has the part's graphs for such calls.
std::optional<KernelOffer> offerOf(const Problem& problem,
                                   ConfiguredEngine& engine,
                                   Calls calls,
                                   int* failures,
                                   const std::vector<KernelOffer>& better = {});

}  // namespace ucudnn

#endif
