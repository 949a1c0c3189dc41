#include "planner/plan_builder.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "benchmark/timing_limits.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"
#include "planner/candidates.hpp"
#include "planner/measured_kernels.hpp"
#include "support/alignment.hpp"

namespace ucudnn {

namespace {

std::shared_ptr<const BuiltKernel> buildStep(PreparedKernels& kernels,
                                             int batch,
                                             Kernel kernel,
                                             Calls calls) {
  try {
    return kernels.build(batch, kernel, calls);
  } catch (const Error& error) {
    if (!isRefusalToBuild(error.status())) throw;
    throw RefusedKernel(error, batch, kernel);
  }
}

}  // namespace

std::shared_ptr<const Plan> buildPlan(PreparedKernels& kernels,
                                      const PlanRequest& request,
                                      const Configuration& configuration,
                                      Pace pace,
                                      const Measurements& measurements,
                                      std::shared_ptr<const Plan> enqueued) {
  const Problem& problem = request.problem;
  auto plan = std::make_shared<Plan>();
  plan->problem = problem;
  plan->workspaceBytes =
      std::max(configuration.workspaceBytes, enqueued ? enqueued->workspaceBytes : 0);
  plan->enqueued = std::move(enqueued);
  const KernelErrors largest = largestErrors(measurements);
  for (const MicroBatches& group : configuration.microBatches) {
    const Measurement& m = measurementOf(group, measurements);
    const Calls calls = request.callsAt(group.batch);
    plan->steps.push_back(
        {m, m, group.batch, group.count, buildStep(kernels, group.batch, m.kernel, calls)});
    plan->steps.back().error = errorOf(m, problem.operation, group.batch, largest);
    plan->steps.back().borrows = group.borrows;
  }
  const bool runsAny =
      std::all_of(plan->steps.begin(), plan->steps.end(), [](const Plan::Step& step) {
        return step.anyCall && !step.borrows;
      });
  if (!runsAny || (plan->enqueued && plan->enqueued->runs != CallKind::kOther))
    plan->runs = std::min(request.calls, CallKind::kAdding);
  const Plan::Step& first = plan->steps.front();
  plan->divided = isDivided(configuration);
  const bool mayReplay = request.replay() != Replay::kNever;
  plan->replayed = mayReplay && paysToReplay(configuration, measurements);
  plan->predictedMs = predictedMs(configuration, pace, mayReplay, measurements);
  const Pace itsPace = plan->replayed ? Pace::kDevice : pace;
  if (const auto undivided = fastestUndivided(request, measurements, itsPace)) {
    plan->undividedMs = undivided->timeMs;
    plan->undividedBytes = undivided->workspaceBytes;
  }
  if (request.own)
    if (const auto* own = findKernel(measurements, problem.batch(), request.own->kernel))
      plan->ownMs = itsPace == Pace::kDevice ? own->deviceMs : own->timeMs;
  if (!plan->divided) plan->callersAlgorithm = algorithmOf(first.kernel).value_or(-1);
  nameAlgorithm(*plan, request, measurements);
  return plan;
}

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

std::shared_ptr<Plan> withGeneral(const Plan& plan, std::shared_ptr<const Plan> general) {
  auto both = std::make_shared<Plan>(plan);
  both->workspaceBytes = std::max(plan.workspaceBytes, general->workspaceBytes);
  both->algorithmBytes = std::max(plan.algorithmBytes, both->workspaceBytes);
  both->general = std::move(general);
  return both;
}

std::shared_ptr<const Plan> forAllCalls(PreparedKernels& kernels, const Plan& plan) {
  if (plan.borrows()) return nullptr;
  auto all = std::make_shared<Plan>(plan);
  all->id = nextPlanId();
  all->runs = std::max(plan.runs, CallKind::kAdding);
  if (plan.enqueued) all->enqueued = forAllCalls(kernels, *plan.enqueued);
  if (plan.enqueued && !all->enqueued) return nullptr;
  for (Plan::Step& step : all->steps) {
    if (step.kernel.source != kEngines) continue;
    std::size_t bytes = 0;
    step.built = kernels.build(step.batch, step.kernel, Calls::kAll);
    if (step.built->workspaceSize(nullptr, &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes > plan.workspaceBytes)
      return nullptr;
  }
  return all;
}

}  // namespace ucudnn
