#include "tool/plan_description.hpp"

#include <algorithm>

namespace ucudnn::tool {
namespace {

constexpr std::size_t kMostMicroBatches =
    1024;  // entries of a plan; one for each batch size at most
/// Larger than any, so that all are measured.
constexpr double kAnyError = 1e30;

}  // namespace

std::optional<PlanDescription> describePlan(cudnnHandle_t handle,
                                            const Convolution& convolution,
                                            std::size_t limitBytes) {
  std::vector<ucudnnMicroBatches_t> entries(kMostMicroBatches);
  entries.front().size = sizeof(entries.front());
  ucudnnPlan_t plan{};
  plan.size = sizeof(plan);
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
    const bool isKnown = entry.error >= 0 && (&entry == entries.data() || description.error);
    description.error = isKnown
                            ? std::optional(std::max(description.error.value_or(0), entry.error))
                            : std::nullopt;
    description.configuration.push_back(
        {entry.batch, entry.kernel, entry.count, entry.workspaceBytes > plan.workspaceBytes});
    if (description.replayed) continue;
    description.deviceMs += entry.count * entry.deviceMs;
    if (entry.deviceMs < entry.timeMs) description.hostPacedMs += entry.count * entry.timeMs;
  }
  // One launch enqueues all micro-batches, so that the host paces none of them.
  if (description.replayed) description.deviceMs = plan.predictedMs;
  return description;
}

std::vector<PlanDescription> describeAccuracy(UcudnnHandle_t handle,
                                              const Convolution& convolution,
                                              const ConvolutionOptions& options) {
  const auto allow = [&](double error) { check(handle.setMaxError(error), "ucudnnSetMaxError"); };
  // Asking for a plan that doesn't exist would log a warning; asking for a front does not.
  const auto isPossible = [&] {
    int count = 0;
    return ucudnnGetConvolutionParetoFront(handle,
                                           convolution.operation(),
                                           convolution.x(),
                                           convolution.w(),
                                           convolution.convolution(),
                                           convolution.y(),
                                           0,
                                           &count,
                                           nullptr) == CUDNN_STATUS_SUCCESS;
  };
  std::vector<PlanDescription> front;
  for (double error = kAnyError; allow(error), isPossible(); error = *front.back().error) {
    auto plan = describePlan(handle, convolution, options.limitBytes);
    if (!plan || !plan->error) break;
    // This plan is more accurate: it replaces the plans that are not faster.
    while (!front.empty() && front.back().predictedMs >= plan->predictedMs) front.pop_back();
    front.push_back(std::move(*plan));
  }
  allow(options.maxError);
  return front;
}

Arithmetic arithmeticToPlan(const ConvolutionOptions& options, const Layer& layer) {
  const bool hasErrors = options.accuracy || options.maxError > 0;
  const bool isSmall =
      automaticArithmetic(layer.multiplyAdds(), layer.mostElements()) == Arithmetic::kFull;
  return hasErrors && isSmall ? Arithmetic::kFull : Arithmetic::kOff;
}

}  // namespace ucudnn::tool
