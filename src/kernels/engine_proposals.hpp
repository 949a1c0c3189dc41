// Which engines cuDNN's heuristics propose.
#pragma once

#include "kernels/operation_graph.hpp"

#if UCUDNN_HAS_ENGINES

#include <vector>

namespace ucudnn {

/// For the problem, of which `graph` is one: best first, each once. Throws Error.
std::vector<EngineConfiguration> engineProposals(const EngineDevice& device,
                                                 const Problem& problem,
                                                 const OperationGraph& graph);

}  // namespace ucudnn

#endif
