#include "tool/offered_kernels.hpp"

#include <set>

#include "kernels/engine_calls.hpp"
#include "kernels/engine_proposals.hpp"
#include "kernels/engines.hpp"
#include "kernels/source.hpp"

namespace ucudnn::tool {

std::vector<KernelOffer> allKernels(cudnnHandle_t handle, const Problem& problem) {
  const ProblemDescriptors descriptors(problem);
  std::vector<KernelOffer> offers = offeredKernels(handle, problem, descriptors.get(), true);
#if UCUDNN_HAS_ENGINES
  if (!hasEngines(problem)) return offers;
  std::set<Kernel> known;
  for (const KernelOffer& offer : offers) known.insert(offer.kernel);
  PreparedKernels prepared(handle, problem);
  try {
    const OperationGraph graph({handle}, problem, 0, kEngineAlignment);
    for (const EngineConfiguration& value :
         engineProposals({handle}, problem, graph, Calls::kOverwriting)) {
      const Kernel kernel{idOf(value), problem.mathType, kEngines};
      if (!known.insert(kernel).second) continue;
      const auto offer = prepared.offer(problem.batch(), kernel, Calls::kOverwriting, nullptr);
      if (offer) offers.push_back(*offer);
    }
  } catch (const Error&) {  // the others are there
  }
#endif
  return offers;
}

}  // namespace ucudnn::tool
