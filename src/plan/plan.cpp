#include "plan/plan.hpp"

#include <algorithm>
#include <utility>

namespace ucudnn {

std::shared_ptr<Plan> withGeneral(const Plan& plan, std::shared_ptr<const Plan> general) {
  auto both = std::make_shared<Plan>(plan);
  both->workspaceBytes = std::max(plan.workspaceBytes, general->workspaceBytes);
  both->algorithmBytes = std::max(plan.algorithmBytes, both->workspaceBytes);
  both->general = std::move(general);
  return both;
}

}  // namespace ucudnn
