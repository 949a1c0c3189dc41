#include "planner/conversion.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ucudnn {
namespace {

/// Chooses what a query names as the plan's algorithm: the fastest undivided one within the plan's own workspace,
/// or else the one that needs the least.
void nameAlgorithm(Plan& plan, const std::vector<Measurement>& undivided) {
  plan.algorithm = plan.steps.front().kernel.algorithm;
  plan.algorithmBytes = plan.workspaceBytes;
  plan.algorithmDeterministic = plan.isDeterministic();
  if (!plan.isDivided() || undivided.empty()) return;
  const std::size_t granted = roundUpWorkspace(plan.workspaceBytes);
  const auto better = [&](const Measurement& a, const Measurement& b) {
    const bool aFits = a.workspaceBytes <= granted;
    const bool bFits = b.workspaceBytes <= granted;
    if (aFits != bFits) return aFits;
    return aFits ? a.timeMs < b.timeMs : a.workspaceBytes < b.workspaceBytes;
  };
  const Measurement& best = *std::min_element(undivided.begin(), undivided.end(), better);
  plan.algorithm = best.kernel.algorithm;
  plan.algorithmBytes = std::max(plan.workspaceBytes, best.workspaceBytes);
}

}  // namespace

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

CandidateTable candidates(const Measurements& measurements, bool deterministicOnly) {
  CandidateTable table;
  for (const auto& [batch, size] : measurements) {
    std::vector<Candidate>& list = table[batch];
    for (std::size_t i = 0; i < size.kernels.size(); ++i) {
      const Measurement& kernel = size.kernels[i];
      if (deterministicOnly && !kernel.deterministic) continue;
      list.push_back({static_cast<int>(i), kernel.timeMs, kernel.workspaceBytes});
    }
  }
  return table;
}

Measurements fromStored(Operation operation, const StoredMeasurements& stored) {
  Measurements measurements;
  for (const auto& [batch, size] : stored) {
    SizeMeasurements& found = measurements[batch];
    found.coveredBytes = size.coveredBytes;
    for (const StoredMeasurement& row : size.kernels)
      if (const auto kernel = kernelFromText(operation, row.kernel))
        found.kernels.push_back({*kernel, row.timeMs, row.workspaceBytes, row.deterministic});
  }
  return measurements;
}

StoredMeasurements toStored(Operation operation, const Measurements& measurements) {
  StoredMeasurements stored;
  for (const auto& [batch, size] : measurements) {
    StoredSize& row = stored[batch];
    row.coveredBytes = size.coveredBytes;
    for (const Measurement& m : size.kernels)
      row.kernels.push_back({toText(operation, m.kernel), m.timeMs, m.workspaceBytes, m.deterministic});
  }
  return stored;
}

void addMeasurements(SizeMeasurements& to, const SizeMeasurements& from) {
  to.coveredBytes = std::max(to.coveredBytes, from.coveredBytes);
  for (const Measurement& measurement : from.kernels) {
    const auto place = std::find_if(to.kernels.begin(), to.kernels.end(), [&](const Measurement& m) {
      return m.kernel == measurement.kernel;
    });
    if (place == to.kernels.end())
      to.kernels.push_back(measurement);
    else
      *place = measurement;
  }
}

std::shared_ptr<const Plan> buildPlan(const Problem& problem,
                                      std::size_t limitBytes,
                                      const Configuration& configuration,
                                      const Measurements& measurements) {
  auto plan = std::make_shared<Plan>();
  plan->problem = problem;
  plan->limitBytes = limitBytes;
  plan->workspaceBytes = configuration.workspaceBytes;
  plan->predictedMs = configuration.timeMs;
  for (const MicroBatches& group : configuration.microBatches) {
    const Measurement& m =
        measurements.at(group.batch).kernels.at(static_cast<std::size_t>(group.kernel));
    Problem part = problem.withBatch(group.batch);
    part.mathType = m.kernel.mathType;
    plan->steps.push_back({group.batch,
                           group.count,
                           m.kernel,
                           m.timeMs,
                           m.workspaceBytes,
                           m.deterministic,
                           std::make_unique<ProblemDescriptors>(part)});
  }
  const auto undivided = measurements.find(problem.batch());
  nameAlgorithm(*plan,
                undivided == measurements.end() ? std::vector<Measurement>{}
                                                : undivided->second.kernels);
  return plan;
}

}  // namespace ucudnn
