#include "planner/conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "kernels/algorithms.hpp"
#include "support/alignment.hpp"

namespace ucudnn {
namespace {

/// Chooses what a query names as the plan's algorithm: the fastest undivided one that is as
/// deterministic as the plan (naming a deterministic algorithm at the call asks for a deterministic
/// plan) and runs within the plan's own workspace, or else needs the least.
void nameAlgorithm(Plan& plan, const std::vector<Measurement>& undivided) {
  const auto own = algorithmOf(plan.steps.front().kernel);
  plan.algorithm = own.value_or(-1);
  plan.algorithmBytes = plan.workspaceBytes;
  if ((!plan.isDivided() && own) || undivided.empty()) return;
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

// For estimates only: what cuDNN's TF32 kernels reach on an H200 (misc/results/alexnet_*.json),
// half of its memory's bandwidth, and a launch.
constexpr double kMultiplyAddsPerMs = 5e10;
constexpr double kBytesPerMs = 2e9;
constexpr double kShortestMs = 0.01;

}  // namespace

std::vector<int> sizesFor(const Problem& problem, BatchSizePolicy policy) {
  const bool roundsSums =
      problem.operation == Operation::kBackwardFilter &&
      (problem.wType == CUDNN_DATA_HALF || problem.wType == CUDNN_DATA_BFLOAT16);
  return microBatchSizes(roundsSums ? BatchSizePolicy::kUndivided : policy, problem.batch());
}

double estimatedMs(const Problem& problem) {
  const auto bytes = static_cast<double>(problem.xBytes() + problem.wBytes() + problem.yBytes());
  return kShortestMs + std::max(problem.multiplyAdds() / kMultiplyAddsPerMs, bytes / kBytesPerMs);
}

std::string questionText(const Problem& problem, BatchSizePolicy policy) {
  return fmt::format("{} asked {}", problem.text(), toText(policy));
}

CandidateTable candidates(const Measurements& measurements,
                          bool deterministicOnly,
                          int accurateBelow) {
  CandidateTable table;
  for (const auto& [batch, size] : measurements) {
    std::vector<Candidate>& list = table[batch];
    for (std::size_t i = 0; i < size.kernels.size(); ++i) {
      const Measurement& kernel = size.kernels[i];
      if (deterministicOnly && !kernel.deterministic) continue;
      if (batch < accurateBelow && !kernel.accurate) continue;
      list.push_back({static_cast<int>(i), kernel.timeMs, kernel.workspaceBytes});
    }
  }
  return table;
}

std::vector<Measurement> kernelsWithin(const Measurements& measurements,
                                       int batch,
                                       std::size_t limitBytes) {
  std::vector<Measurement> kernels;
  const auto size = measurements.find(batch);
  if (size == measurements.end()) return kernels;
  for (const Measurement& kernel : size->second.kernels)
    if (kernel.workspaceBytes <= limitBytes) kernels.push_back(kernel);
  return kernels;
}

StoredMeasurements toStored(Operation operation, const Measurements& measurements) {
  StoredMeasurements stored;
  for (const auto& [batch, size] : measurements) {
    StoredSize& row = stored[batch];
    for (const Measurement& m : size.kernels)
      row.kernels.push_back(
          {toText(operation, m.kernel), m.timeMs, m.workspaceBytes, m.deterministic, m.deviceMs});
  }
  return stored;
}

void addMeasurements(SizeMeasurements& to, const SizeMeasurements& from) {
  for (const Measurement& measurement : from.kernels) {
    const auto place =
        std::find_if(to.kernels.begin(), to.kernels.end(), [&](const Measurement& m) {
          return m.kernel == measurement.kernel;
        });
    if (place == to.kernels.end())
      to.kernels.push_back(measurement);
    else
      *place = measurement;
  }
}

std::shared_ptr<const Plan> buildPlan(cudnnHandle_t handle,
                                      const Problem& problem,
                                      std::size_t limitBytes,
                                      const Configuration& configuration,
                                      const Measurements& measurements,
                                      bool deterministicOnly) {
  auto plan = std::make_shared<Plan>();
  plan->problem = problem;
  plan->limitBytes = limitBytes;
  plan->workspaceBytes = configuration.workspaceBytes;
  plan->predictedMs = configuration.timeMs;
  for (const MicroBatches& group : configuration.microBatches) {
    const Measurement& m =
        measurements.at(group.batch).kernels.at(static_cast<std::size_t>(group.kernel));
    const Problem part = problem.withBatch(group.batch);
    plan->steps.push_back(
        {m,
         m,
         group.batch,
         group.count,
         buildKernel(handle, part, std::make_shared<const ProblemDescriptors>(part), m.kernel)});
  }
  const Plan::Step& first = plan->steps.front();
  plan->divided = plan->steps.size() > 1 || first.count > 1;
  if (!plan->divided) plan->callersAlgorithm = algorithmOf(first.kernel).value_or(-1);
  std::vector<Measurement> undivided = kernelsWithin(measurements, problem.batch(), limitBytes);
  const auto isOut = [&](const Measurement& m) {
    return !algorithmOf(m.kernel) || (deterministicOnly && !m.deterministic);
  };
  undivided.erase(std::remove_if(undivided.begin(), undivided.end(), isOut), undivided.end());
  nameAlgorithm(*plan, undivided);
  if (deterministicOnly && plan->divided && undivided.empty()) plan->algorithm = -1;
  return plan;
}

}  // namespace ucudnn
