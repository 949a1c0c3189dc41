#include "plan/plan.hpp"

#include <fmt/format.h>

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

std::string toText(const Plan& plan) {
  std::string text;
  for (const Plan::Step& step : plan.steps)
    text += fmt::format("{}{} x {} {}{}",
                        text.empty() ? "" : " + ",
                        step.count,
                        step.batch,
                        toText(plan.problem.operation, step.kernel),
                        step.borrows ? " in its output" : "");
  return text;
}

}  // namespace ucudnn
