// The engines that cuDNN's heuristics propose.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <vector>

namespace ucudnn {

/// The proposals for the problem, of which `graph` is one graph: best first, each once. For calls
/// that add, only those that can add. Throws Error.
std::vector<EngineConfiguration> engineProposals(const EngineDevice& device,
                                                 const Problem& problem,
                                                 const OperationGraph& graph,
                                                 Calls calls);

}  // namespace ucudnn

#endif
