#include "tool/step_planner.hpp"

#include <algorithm>
#include <utility>

#include "tool/failure.hpp"

namespace ucudnn::tool {

std::vector<Layer> withBatch(std::vector<Layer> layers, int samples) {
  for (Layer& layer : layers) layer.batch = samples;
  return layers;
}

int commonBatch(const std::vector<Layer>& layers) {
  const int batch = layers.front().batch;
  const auto isOther = [&](const Layer& layer) { return layer.batch != batch; };
  if (std::any_of(layers.begin(), layers.end(), isOther))
    throw BadInput("layers differ in N: give one for all by --batch-size");
  return batch;
}

StepPlan planStep(cudnnHandle_t handle,
                  const std::vector<Layer>& layers,
                  const ConvolutionOptions& options,
                  std::size_t limitBytes,
                  int samples) {
  Network network(withBatch(layers, samples), options);
  const NetworkReport report = network.plan(handle, {Way::kReuse}, limitBytes * network.size());
  StepPlan plan;
  plan.ms = report.totals[static_cast<std::size_t>(Way::kReuse)]->iteration.predictedMs;
  for (const NetworkRow& row : report.rows)
    plan.workspaceBytes =
        std::max(plan.workspaceBytes,
                 row.choices[static_cast<std::size_t>(Way::kReuse)]->plan.workspaceBytes);
  return plan;
}

}  // namespace ucudnn::tool
