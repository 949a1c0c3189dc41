#include "tool/plan_description.hpp"

#include <algorithm>

namespace ucudnn::tool {
namespace {

constexpr std::size_t kMostMicroBatches =
    1024;  // entries of a plan; one for each batch size at most

}  // namespace

std::optional<PlanDescription> describePlan(cudnnHandle_t handle,
                                            const Convolution& convolution,
                                            std::size_t limitBytes) {
  std::vector<ucudnnMicroBatches_t> entries(kMostMicroBatches);
  ucudnnPlan_t plan{};
  int count = 0;
  const cudnnStatus_t status = ucudnnGetConvolutionPlan(handle,
                                                        convolution.operation(),
                                                        convolution.x(),
                                                        convolution.w(),
                                                        convolution.convolution(),
                                                        convolution.y(),
                                                        limitBytes,
                                                        &plan,
                                                        static_cast<int>(entries.size()),
                                                        &count,
                                                        entries.data());
  if (status == CUDNN_STATUS_NOT_SUPPORTED) return std::nullopt;
  check(status, "ucudnnGetConvolutionPlan");
  entries.resize(std::min(static_cast<std::size_t>(count), entries.size()));
  PlanDescription description;
  description.workspaceBytes = plan.workspaceBytes;
  description.predictedMs = plan.predictedMs;
  description.replayed = plan.replayed != 0;
  for (const ucudnnMicroBatches_t& entry : entries) {
    description.configuration.push_back({entry.batch, entry.kernel, entry.count});
    if (description.replayed) continue;
    description.deviceMs += entry.count * entry.deviceMs;
    if (entry.deviceMs < entry.timeMs) description.hostPacedMs += entry.count * entry.timeMs;
  }
  // One launch enqueues all micro-batches, so that the host paces none of them.
  if (description.replayed) description.deviceMs = plan.predictedMs;
  return description;
}

}  // namespace ucudnn::tool
