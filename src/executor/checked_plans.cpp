#include "executor/checked_plans.hpp"

#include <algorithm>
#include <limits>

#include "support/log.hpp"

namespace ucudnn {
namespace {

constexpr std::size_t kCannotRun = std::numeric_limits<std::size_t>::max();

std::size_t needOf(cudnnHandle_t handle, const Plan& plan) noexcept {
  std::size_t need = 0;
  for (const Plan::Step& step : plan.steps) {
    std::size_t bytes = 0;
    if (step.built == nullptr || step.built->workspaceSize(handle, &bytes) != CUDNN_STATUS_SUCCESS)
      return kCannotRun;
    if (!step.borrows)
      need = std::max(need, bytes - std::min(bytes, step.outputCopyBytes));
    else if (bytes > step.workspaceBytes)  // the output has room for no more
      return kCannotRun;
  }
  return need;
}

}  // namespace

bool CheckedPlans::accepts(cudnnHandle_t handle, const Plan& plan, std::size_t workspaceBytes) {
  if (plan.enqueued && !accepts(handle, *plan.enqueued, workspaceBytes)) return false;
  if (const std::size_t* const known = needs_.find(plan.id)) return *known <= workspaceBytes;
  const std::size_t need = needOf(handle, plan);
  if (need == kCannotRun)
    logInfo("cuDNN no longer has all kernels of {}: left to cuDNN", toText(plan));
  else if (need > plan.workspaceBytes)
    logInfo(
        "{} needs {} bytes of workspace, and not {} as measured: calls with less than that are "
        "left to cuDNN",
        toText(plan),
        need,
        plan.workspaceBytes);
  needs_[plan.id] = need;
  return need <= workspaceBytes;
}

void CheckedPlans::refuse(const Plan& plan) {
  needs_[plan.id] = kCannotRun;
}

}  // namespace ucudnn
