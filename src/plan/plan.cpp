#include "plan/plan.hpp"

#include <fmt/format.h>

namespace ucudnn {

std::string toText(const Plan& plan) {
  std::string text;
  for (const Plan::Step& step : plan.steps)
    text += fmt::format("{}{} x {} {}",
                        text.empty() ? "" : " + ",
                        step.count,
                        step.batch,
                        toText(plan.problem.operation, step.kernel));
  return text;
}

}  // namespace ucudnn
