// What queries are answered where each convolution has its own workspace.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "context/context.hpp"
#include "kernels/descriptors.hpp"
#include "kernels/fitting.hpp"
#include "support/alignment.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// Some clients without a limit keep bytes / 4 in an int (misc/CLIENTS.md, "At run time", 12).
constexpr std::size_t kMaximumDefaultLimit = (std::size_t{8} << 30) - kMemoryAlignment;

}  // namespace

AlgorithmPerformance entryOf(const KernelOffer& offer, std::size_t memory, double timeMs) noexcept {
  return {offer.kernel.id,
          CUDNN_STATUS_SUCCESS,
          static_cast<float>(timeMs),
          memory,
          offer.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,
          static_cast<cudnnMathType_t>(offer.kernel.mathType)};
}

/// The limit of a client that states none. As long as nobody has set the default, it is no less
/// than what cuDNN's own choice needs, and for Find all that is free: a client must not get less
/// than plain cuDNN gives it.
std::size_t Context::unstatedLimit(const Problem& problem,
                                   const ConvolutionDescriptors& descriptors,
                                   bool find) {
  DefaultLimit& limit = defaultLimits_[problem];
  std::size_t& known = find ? limit.findBytes : limit.bytes;
  // What was free may have changed since.
  if (known != 0 && !limit.memoryWasShort) return known;
  std::size_t freeBytes = 0;
  std::size_t totalBytes = 0;
  UCUDNN_CHECK_CUDA(cudaMemGetInfo(&freeBytes, &totalBytes));
  const Offers ranked = rankedOf(problem, descriptors);
  const std::size_t picked =
      ranked->empty() ? 0 : roundUpToAlignment(ranked->front().workspaceBytes);
  const std::size_t wanted = find ? kMaximumDefaultLimit : settings().defaultWorkspaceLimitBytes;
  std::size_t bytes = std::max(picked, std::min(wanted, freeBytes));
  if (settings().defaultWorkspaceLimitGiven)
    bytes = std::min(bytes, settings().defaultWorkspaceLimitBytes);
  limit.memoryWasShort = freeBytes < settings().defaultWorkspaceLimitBytes;
  known = capped(roundDownToAlignment(std::min(bytes, kMaximumDefaultLimit)));
  return known;
}

std::vector<AlgorithmPerformance> Context::algorithms(Operation operation,
                                                      const ConvolutionDescriptors& descriptors,
                                                      const AlgorithmQuery& query) {
  Problem problem;
  if (!readPlanned(operation, descriptors, problem)) return {};
  const bool isNamed = query.limitBytes.has_value();
  if (const Route route = routeOf(problem, descriptors, query.layer); route != Route::kCallers) {
    // It holds from when the workspace is the caller's again: without the total, or elsewhere.
    if (isNamed)
      limits_.state(problem, {roundDownToAlignment(*query.limitBytes), true, true});
    else
      limits_.forget(problem);
    return algorithmsInOwned(problem, descriptors, capped(query.limitBytes.value_or(SIZE_MAX)));
  }
  const std::size_t statedBytes = isNamed ? roundDownToAlignment(*query.limitBytes)
                                          : unstatedLimit(problem, descriptors, query.find);
  limits_.state(problem, {statedBytes, isNamed, isNamed || query.find});
  const std::size_t limitBytes = capped(statedBytes);
  PlanRequest wanted = queryFor(problem, limitBytes, false);
  wanted.buffers = query.buffers;
  const PlanAnswer found = planner().answer(wanted, measuringFor(isNamed || query.find));
  if (found.plan && found.plan->algorithm >= 0) return answerFrom(*found.plan, wanted, query.most);
  return isNamed || query.find ? std::vector<AlgorithmPerformance>()
                               : answerUnmeasured(problem, descriptors, limitBytes);
}

/// Ours first, then cuDNN's own by time: no more than `most` matter.
std::vector<AlgorithmPerformance> Context::answerFrom(const Plan& plan,
                                                      const PlanRequest& query,
                                                      int most) const {
  const auto mathType = static_cast<cudnnMathType_t>(query.problem.mathType);
  std::vector<AlgorithmPerformance> answer;
  answer.push_back({plan.algorithm,
                    CUDNN_STATUS_SUCCESS,
                    static_cast<float>(plan.predictedMs),
                    capped(roundUpToAlignment(plan.algorithmBytes)),
                    plan.isDeterministic() ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,
                    mathType});
  if (most == 1) return answer;
  std::vector<Measurement> undivided = planner().undivided(query);
  std::sort(undivided.begin(), undivided.end(), [](const Measurement& a, const Measurement& b) {
    return a.timeMs < b.timeMs;
  });
  for (const Measurement& m : undivided) {
    const auto algorithm = algorithmOf(m.kernel);
    const bool same = algorithm == answer.front().algorithm &&
                      m.deterministic == plan.isDeterministic() &&
                      roundUpToAlignment(m.workspaceBytes) == answer.front().memory;
    if (!algorithm || same || (query.deterministic && !m.deterministic)) continue;
    answer.push_back(entryOf(m, roundUpToAlignment(m.workspaceBytes), m.timeMs));
  }
  return answer;
}

/// What cuDNN's heuristics say: each needs what it needs, for nobody knows what a plan would.
std::vector<AlgorithmPerformance> Context::answerUnmeasured(
    const Problem& problem, const ConvolutionDescriptors& descriptors, std::size_t limitBytes) {
  const Offers ranked = rankedOf(problem, descriptors);
  std::vector<AlgorithmPerformance> answer;
  for (const KernelOffer& offer : *ranked) {
    const std::size_t bytes = roundUpToAlignment(offer.workspaceBytes);
    if (bytes > limitBytes || (settings().deterministic && !offer.deterministic)) continue;
    answer.push_back(entryOf(offer, bytes));
  }
  return answer;
}

/// What the algorithm itself needs; but that which a query has named for a plan is told what the
/// plan takes, and so is one beyond a limit: there, the plan runs in its place.
std::optional<std::size_t> Context::workspaceBytes(Operation operation,
                                                   const ConvolutionDescriptors& descriptors,
                                                   int algorithm,
                                                   LayerId layer) {
  Problem problem;
  if (!readProblem(operation, descriptors, problem)) return std::nullopt;
  if (!Planner::plans(problem)) return cappedBytes(problem, descriptors, algorithm);
  const Route route = routeOf(problem, descriptors, layer);
  if (route == Route::kUnshared) return bytesWithoutShare(problem, descriptors, algorithm);
  // The fused call may need it: cuDNN has no other algorithm for it without an activation.
  if (route == Route::kOwned) return bytesToName(handle_, operation, descriptors, algorithm, 0);
  const StatedLimit* const stated = limits_.find(problem);
  StatedLimit limit = stated != nullptr
                          ? *stated
                          : StatedLimit{unstatedLimit(problem, descriptors, false), false, false};
  limit.bytes = capped(limit.bytes);
  std::size_t own = 0;
  if (nativeWorkspaceSize(handle_, operation, descriptors, algorithm, &own) != CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  own = roundUpToAlignment(own);
  const bool isHard = limit.isNamed || settings().defaultWorkspaceLimitGiven;
  const std::size_t mostBytes = capped(isHard ? limit.bytes : SIZE_MAX);
  const auto plan = planFor(problem, limit, isDeterministic(operation, algorithm));
  if (plan && (algorithm == plan->algorithm || own > mostBytes))
    return bytesWithinCap(problem,
                          algorithm,
                          roundUpToAlignment(bytesToName(
                              handle_, operation, descriptors, algorithm, plan->algorithmBytes)));
  return keepWithin(mostBytes, problem, descriptors, algorithm, own);
}

/// What a call of such an algorithm runs within the limit. Null: nothing is known.
std::shared_ptr<const Plan> Context::planFor(const Problem& problem,
                                             const StatedLimit& limit,
                                             bool deterministic) {
  const Measuring measuring = measuringFor(limit.mayMeasure);
  auto plan = planner().answer(queryFor(problem, limit.bytes, deterministic), measuring).plan;
  // A call within the limit runs all the same, if need be with another kernel.
  if (!plan && deterministic && !settings().deterministic)
    plan = planner().answer(queryFor(problem, limit.bytes, false), measuring).plan;
  return plan;
}

std::optional<std::size_t> Context::cappedBytes(const Problem& problem,
                                                const ConvolutionDescriptors& descriptors,
                                                int algorithm) {
  std::size_t native = 0;
  if (!isCapped() ||
      nativeWorkspaceSize(handle_, problem.operation, descriptors, algorithm, &native) !=
          CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  return keepWithin(SIZE_MAX, problem, descriptors, algorithm, native);
}

/// What cuDNN needs for an algorithm of a convolution that cannot do without the caller's
/// workspace.
std::optional<std::size_t> Context::bytesWithoutShare(const Problem& problem,
                                                      const ConvolutionDescriptors& descriptors,
                                                      int algorithm) {
  std::size_t native = 0;
  const StatedLimit* const stated = limits_.find(problem);
  if (stated == nullptr || !stated->isNamed) return cappedBytes(problem, descriptors, algorithm);
  if (nativeWorkspaceSize(handle_, problem.operation, descriptors, algorithm, &native) !=
      CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  return keepWithin(stated->bytes, problem, descriptors, algorithm, native);
}

/// No more than a limit that somebody has named, if cuDNN has anything within it: a call in less
/// than its algorithm needs runs another.
std::size_t Context::keepWithin(std::size_t limitBytes,
                                const Problem& problem,
                                const ConvolutionDescriptors& descriptors,
                                int algorithm,
                                std::size_t bytes) {
  limitBytes = capped(limitBytes);
  if (bytes <= limitBytes) return bytes;
  std::size_t least = SIZE_MAX;
  const Offers ranked = rankedOf(problem, descriptors);
  for (const KernelOffer& offer : *ranked)
    if (offer.deterministic || !settings().deterministic)
      least = std::min(least, offer.workspaceBytes);
  if (least == SIZE_MAX) return bytes;
  // Not rounded up: the limit may be less than what sizes are rounded to.
  const std::size_t within = std::max(limitBytes, least);
  return std::max(
      least,
      bytesWithinCap(problem,
                     algorithm,
                     bytesToName(handle_, problem.operation, descriptors, algorithm, within)));
}

/// What the fused call may need (bytesToName) goes by the cap where a batch of one does: then a
/// split has it.
std::size_t Context::bytesWithinCap(const Problem& problem, int algorithm, std::size_t bytes) {
  if (bytes <= capped(bytes)) return bytes;
  const ProblemDescriptors one(problem.withBatch(1));
  const std::size_t leastBytes = bytesToName(handle_, problem.operation, one.get(), algorithm, 0);
  return leastBytes <= capped(bytes) ? capped(bytes) : bytes;
}

std::shared_ptr<const Plan> Context::describePlan(const Problem& problem, std::size_t limitBytes) {
  return planner().answer(queryFor(problem, limitBytes, false), measuringFor(true)).plan;
}

Measurements Context::describeCandidates(const Problem& problem) {
  return planner().measurements(request(problem, std::numeric_limits<std::size_t>::max(), false),
                                measuringFor(true));
}

std::vector<Configuration> Context::describeFront(const Problem& problem) {
  return planner().front(queryFor(problem, std::numeric_limits<std::size_t>::max(), false),
                         measuringFor(true));
}

}  // namespace ucudnn
