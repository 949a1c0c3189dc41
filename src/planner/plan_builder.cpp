#include "planner/plan_builder.hpp"

#include <algorithm>
#include <utility>

#include "benchmark/timing_limits.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"
#include "planner/candidates.hpp"
#include "planner/named_algorithm.hpp"

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
  plan->limitBytes = request.limitBytes;
  plan->workspaceBytes =
      std::max(configuration.workspaceBytes, enqueued ? enqueued->workspaceBytes : 0);
  plan->predictedMs = configuration.timeMs;
  plan->enqueued = std::move(enqueued);
  const KernelErrors largest = largestErrors(measurements);
  double replayedMs = kReplayMs;
  for (const MicroBatches& group : configuration.microBatches) {
    const Measurement& m = measurementOf(group, measurements);
    replayedMs += group.count * m.deviceMs;
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
  plan->replayed = request.replay() != Replay::kNever && paysToReplay(configuration, measurements);
  if (plan->replayed && pace == Pace::kHost) plan->predictedMs = replayedMs;
  const Pace itsPace = plan->replayed ? Pace::kDevice : pace;
  if (const auto undivided = fastestUndivided(request, measurements, itsPace)) {
    plan->undividedMs = undivided->timeMs;
    plan->undividedBytes = undivided->workspaceBytes;
  }
  if (!plan->divided) plan->callersAlgorithm = algorithmOf(first.kernel).value_or(-1);
  nameAlgorithm(*plan, request, measurements);
  return plan;
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
