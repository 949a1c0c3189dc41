#include "planner/named_algorithm.hpp"

#include <algorithm>
#include <tuple>

#include "kernels/algorithms.hpp"
#include "planner/measured_kernels.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

void nameAlgorithm(Plan& plan, const PlanRequest& request, const Measurements& measurements) {
  std::vector<Measurement> undivided =
      kernelsWithin(measurements, plan.problem.batch(), request.limitBytes);
  const auto isOut = [&](const Measurement& m) {
    return !algorithmOf(m.kernel) || (request.deterministic && !m.deterministic);
  };
  undivided.erase(std::remove_if(undivided.begin(), undivided.end(), isOut), undivided.end());
  const auto own = algorithmOf(plan.steps.front().kernel);
  plan.algorithm = own.value_or(-1);
  plan.algorithmBytes = plan.workspaceBytes;
  if (!plan.divided && own) return;
  if (undivided.empty()) {
    if (request.deterministic) plan.algorithm = -1;
    return;
  }
  const bool deterministic = plan.isDeterministic();
  const std::size_t granted = roundUpToAlignment(plan.workspaceBytes);
  const auto rank = [&](const Measurement& m) {
    const bool fits = m.workspaceBytes <= granted;
    const double cost = fits ? m.timeMs : static_cast<double>(m.workspaceBytes);
    return std::make_tuple(m.deterministic != deterministic, !fits, cost);
  };
  const Measurement& best = *std::min_element(
      undivided.begin(), undivided.end(), [&](const Measurement& a, const Measurement& b) {
        return rank(a) < rank(b);
      });
  plan.algorithm = best.kernel.id;
  plan.algorithmBytes = std::max(plan.workspaceBytes, best.workspaceBytes);
}

}  // namespace ucudnn
