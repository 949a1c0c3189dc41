#include "planner/conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "benchmark/timing_limits.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"
#include "kernels/planes.hpp"
#include "planner/belief.hpp"
#include "support/alignment.hpp"

namespace ucudnn {
namespace {

/// Kernels of a source that was added are among them, however they are chosen. Those that another
/// question has found, and this one does not ask for, are not.
bool isAmong(const PlanRequest& request, Kernel kernel) noexcept {
  return isAsked(kernel.source, request.problem, request.withEngines()) &&
         !(request.settings->kernels == Kernels::kEngines &&
           (kernel.source == kAlgorithms || kernel.source == kPlanes));
}

/// Of two kernels that are about as fast the engine is kept: its call takes the host a third of an
/// algorithm's (ucudnn_hot_path_benchmark), and the host may set a program's pace.
std::vector<Candidate> preferEngines(const std::vector<Candidate>& list,
                                     const std::vector<Measurement>& kernels) {
  const auto kernelOf = [&](const Candidate& candidate) -> const Measurement& {
    return kernels[static_cast<std::size_t>(candidate.kernel)];
  };
  const auto isReplaced = [&](const Candidate& candidate) {
    if (!algorithmOf(kernelOf(candidate).kernel)) return false;
    KernelTraits traits = kernelOf(candidate);
    traits.anyCall = false;  // calls that suit no engine have a plan of their own
    return std::any_of(list.begin(), list.end(), [&](const Candidate& other) {
      return kernelOf(other).kernel.source == kEngines &&
             other.timeMs <= candidate.timeMs * kSplitGain &&
             canStandInFor(kernelOf(other), traits);
    });
  };
  std::vector<Candidate> kept;
  kept.reserve(list.size());
  std::remove_copy_if(list.begin(), list.end(), std::back_inserter(kept), isReplaced);
  return kept;
}

/// Of a kernel that makes up a plan alone.
bool paysToReplay(KernelTiming timing) noexcept {
  return (timing.deviceMs + kReplayMs) * kSplitGain <= timing.timeMs;
}

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

/// An error that is not measured again is the one of before.
Measurement withKnownError(Measurement measurement, double error) {
  if (measurement.error == kUnknownError) measurement.error = error;
  return measurement;
}

// For estimates only: what cuDNN's TF32 kernels reach on an H200 (misc/results/alexnet_*.json),
// half of its memory's bandwidth, and a launch.
constexpr double kMultiplyAddsPerMs = 5e10;
constexpr double kBytesPerMs = 2e9;
constexpr double kLeastMs = 0.01;

KernelErrors errorsFor(const PlanRequest& request, const Measurements& measurements) {
  return request.withErrors() ? largestErrors(measurements) : KernelErrors();
}

/// Of one batch size, as `candidates`. A graph of a single call has a launch for it alone. What is
/// undivided is compared by the better of both ways: a host that runs ahead must not lose by a
/// split.
std::vector<Candidate> candidatesAt(int batch,
                                    const PlanRequest& request,
                                    const std::vector<Measurement>& kernels,
                                    const KernelErrors& largest,
                                    bool accurate,
                                    Pace pace) {
  const auto timeOf = [&](const Measurement& kernel) {
    if (pace == Pace::kHost) return kernel.timeMs;
    if (batch < request.problem.batch()) return kernel.deviceMs;
    return paysToReplay(kernel) ? kernel.deviceMs + kReplayMs : kernel.timeMs;
  };
  const auto isOut = [&](const Measurement& kernel) {
    return (request.withErrors() &&
            errorOf(kernel, request.problem.operation, batch, largest) * kErrorSpread >
                request.settings->maxError) ||
           (request.deterministic && !kernel.deterministic) || (accurate && !kernel.accurate) ||
           (request.anyCall ? !kernel.anyCall : !isAmong(request, kernel.kernel));
  };
  std::vector<Candidate> list;
  list.reserve(kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (!isOut(kernels[i]))
      list.push_back({static_cast<int>(i), timeOf(kernels[i]), kernels[i].workspaceBytes});
  return preferEngines(list, kernels);
}

/// What the plan has been compared with.
void noteUndivided(Plan& plan,
                   const PlanRequest& request,
                   const Measurements& measurements,
                   Pace pace) {
  const int batch = plan.problem.batch();
  const auto whole = measurements.find(batch);
  if (whole == measurements.end()) return;
  const KernelErrors largest = errorsFor(request, measurements);
  for (const Candidate& kernel :
       candidatesAt(batch, request, whole->second.kernels, largest, false, pace))
    if (kernel.workspaceBytes <= request.limitBytes &&
        (plan.undividedMs == 0 || kernel.timeMs < plan.undividedMs)) {
      plan.undividedMs = kernel.timeMs;
      plan.undividedBytes = kernel.workspaceBytes;
    }
}

}  // namespace

std::vector<int> sizesFor(const Problem& problem, BatchSizePolicy policy) {
  const bool roundsSums =
      problem.operation == Operation::kBackwardFilter && isRounded(problem.wType);
  return microBatchSizes(roundsSums ? BatchSizePolicy::kUndivided : policy, problem.batch());
}

double estimatedMs(const Problem& problem) {
  const auto bytes = static_cast<double>(problem.xBytes() + problem.wBytes() + problem.yBytes());
  return kLeastMs + std::max(problem.multiplyAdds() / kMultiplyAddsPerMs, bytes / kBytesPerMs);
}

std::string toText(const QuestionKey& question) {
  std::string text = fmt::format("asked {}", toText(question.policy));
  if (question.kernels != Kernels::kLegacy)
    text += fmt::format(" kernels={}", toText(question.kernels));
  if (question.tuning != Tuning::kExhaustive)
    text += fmt::format(" tuning={}", toText(question.tuning));
  if (question.errors) text += " errors";
  if (question.borrows) text += " borrows";
  return text;
}

const Measurement& measurementOf(const MicroBatches& group, const Measurements& measurements) {
  return measurements.at(group.batch).kernels.at(static_cast<std::size_t>(group.kernel));
}

bool isDivided(const Configuration& configuration) noexcept {
  const auto& groups = configuration.microBatches;
  return groups.size() > 1 || (groups.size() == 1 && groups.front().count > 1);
}

bool paysToReplay(const Configuration& configuration, const Measurements& measurements) {
  return isDivided(configuration) ||
         paysToReplay(measurementOf(configuration.microBatches.front(), measurements));
}

double enqueuedMs(const Configuration& configuration, const Measurements& measurements) {
  double sum = 0;
  for (const MicroBatches& group : configuration.microBatches)
    sum += group.count * (measurementOf(group, measurements).timeMs + kLaunchMs);
  return sum;
}

CandidateTable candidates(const PlanRequest& request,
                          const Measurements& measurements,
                          int accurateBelow,
                          Pace pace) {
  const KernelErrors largest = errorsFor(request, measurements);
  CandidateTable table;
  for (const auto& [batch, size] : measurements)
    table[batch] = candidatesAt(batch, request, size.kernels, largest, batch < accurateBelow, pace);
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

StoredMeasurements toStored(const Problem& problem, const Measurements& measurements) {
  StoredMeasurements stored;
  for (const auto& [batch, size] : measurements) {
    StoredSize& row = stored[batch];
    for (const Measurement& m : size.kernels)
      row.kernels.push_back({toText(problem.operation, m.kernel),
                             m.timeMs,
                             m.workspaceBytes,
                             m.deterministic,
                             m.isReplayTimed ? m.deviceMs : 0,
                             isPossibleError(problem, m.error) ? m.error : 0});
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
      *place = withKnownError(measurement, place->error);
  }
}

void dropEngines(Measurements& measurements) {
  for (auto& [batch, size] : measurements) {
    std::vector<Measurement>& kernels = size.kernels;
    kernels.erase(std::remove_if(kernels.begin(),
                                 kernels.end(),
                                 [](const Measurement& m) { return m.kernel.source == kEngines; }),
                  kernels.end());
  }
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

std::shared_ptr<const Plan> buildPlan(const PlanRequest& request,
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
  PreparedKernels own(request.handle, problem);
  PreparedKernels& prepared = request.prepared != nullptr ? *request.prepared : own;
  double replayedMs = kReplayMs;
  for (const MicroBatches& group : configuration.microBatches) {
    const Measurement& m = measurementOf(group, measurements);
    replayedMs += group.count * m.deviceMs;
    const Calls calls = request.callsAt(group.batch);
    plan->steps.push_back(
        {m, m, group.batch, group.count, buildStep(prepared, group.batch, m.kernel, calls)});
    plan->steps.back().error = errorOf(m, problem.operation, group.batch, largest);
    plan->steps.back().borrows = group.borrows;
  }
  plan->anyCall = std::all_of(plan->steps.begin(), plan->steps.end(), [](const Plan::Step& step) {
    return step.anyCall && !step.borrows;
  });
  if (plan->enqueued && !plan->enqueued->anyCall) plan->anyCall = false;
  if (!plan->anyCall) plan->calls = request.calls;
  const Plan::Step& first = plan->steps.front();
  plan->divided = isDivided(configuration);
  plan->replayed = request.replay() != Replay::kNever && paysToReplay(configuration, measurements);
  if (plan->replayed && pace == Pace::kHost) plan->predictedMs = replayedMs;
  noteUndivided(*plan, request, measurements, plan->replayed ? Pace::kDevice : pace);
  if (!plan->divided) plan->callersAlgorithm = algorithmOf(first.kernel).value_or(-1);
  nameAlgorithm(*plan, request, measurements);
  return plan;
}

std::shared_ptr<const Plan> forAllCalls(PreparedKernels& kernels, const Plan& plan) {
  if (plan.borrows()) return nullptr;
  auto all = std::make_shared<Plan>(plan);
  all->id = nextPlanId();
  all->calls = Calls::kAll;
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
