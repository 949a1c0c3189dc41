// Which engines cuDNN's heuristics propose.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <vector>

namespace ucudnn {

/// For the problem, of which `graph` is one: best first, each once. For calls that add, too, only
/// those that can. Throws Error.
std::vector<EngineConfiguration> engineProposals(const EngineDevice& device,
                                                 const Problem& problem,
                                                 const OperationGraph& graph,
                                                 Calls calls);

}  // namespace ucudnn

#endif
