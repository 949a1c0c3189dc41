#include "planner/candidates.hpp"

#include <algorithm>
#include <iterator>

#include "benchmark/timing_limits.hpp"
#include "kernels/algorithms.hpp"
#include "kernels/engines.hpp"
#include "kernels/planes.hpp"

namespace ucudnn {

namespace {

/// Kernels of an added source are candidates, whatever kernels the settings name. Kernels that
/// another question has found, and this one does not ask for, are not.
bool isAmong(const PlanRequest& request, Kernel kernel) noexcept {
  return isAsked(kernel.source, request.problem, request.withEngines()) &&
         !(request.settings->kernels == Kernels::kEngines &&
           (kernel.source == kAlgorithms || kernel.source == kPlanes));
}

/// Keeps the engine if an algorithm and an engine are about equally fast. An engine's call takes
/// the host a third of an algorithm's (ucudnn_hot_path_benchmark), and the host may set a program's
/// pace.
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

KernelErrors errorsFor(const PlanRequest& request, const Measurements& measurements) {
  return request.withErrors() ? largestErrors(measurements) : KernelErrors();
}

/// The candidates at one batch size. An undivided call's graph is one launch, which this one kernel
/// must pay for. An undivided kernel counts with the better of its two times, because a host that
/// runs ahead must not lose by a split.
std::vector<Candidate> candidatesAt(int batch,
                                    const PlanRequest& request,
                                    const std::vector<Measurement>& kernels,
                                    const KernelErrors& largest,
                                    bool accurate,
                                    Pace pace) {
  const Problem part = request.problem.withBatch(batch);
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
           !mayBePlanned(part, kernel.kernel) ||
           (request.calls == CallKind::kOther ? !kernel.anyCall : !isAmong(request, kernel.kernel));
  };
  std::vector<Candidate> list;
  list.reserve(kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (!isOut(kernels[i]))
      list.push_back({static_cast<int>(i), timeOf(kernels[i]), kernels[i].workspaceBytes});
  return preferEngines(list, kernels);
}

}  // namespace

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

std::optional<Candidate> fastestUndivided(const PlanRequest& request,
                                          const Measurements& measurements,
                                          Pace pace) {
  const int batch = request.problem.batch();
  const auto whole = measurements.find(batch);
  if (whole == measurements.end()) return std::nullopt;
  const KernelErrors largest = errorsFor(request, measurements);
  std::optional<Candidate> fastest;
  for (const Candidate& kernel :
       candidatesAt(batch, request, whole->second.kernels, largest, false, pace))
    if (kernel.workspaceBytes <= request.limitBytes &&
        (!fastest || kernel.timeMs < fastest->timeMs))
      fastest = kernel;
  return fastest;
}

}  // namespace ucudnn
