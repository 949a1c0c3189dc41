#include "context/queries.hpp"

#include <algorithm>
#include <cstdint>

#include "kernels/descriptors.hpp"
#include "kernels/fitting.hpp"
#include "support/alignment.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// Some clients without a limit keep bytes / 4 in an int (misc/docs/CLIENTS.md, "At run time", 12).
constexpr std::size_t kMaximumDefaultLimit = (std::size_t{8} << 30) - kMemoryAlignment;

/// A time of -1 is unknown, as in the answers of cuDNN's heuristics.
AlgorithmPerformance entryOf(const KernelOffer& offer,
                             std::size_t memory,
                             double timeMs = -1) noexcept {
  return {offer.kernel.id,
          CUDNN_STATUS_SUCCESS,
          static_cast<float>(timeMs),
          memory,
          offer.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC,
          static_cast<cudnnMathType_t>(offer.kernel.mathType)};
}

}  // namespace

/// The limit of a client that states none. Unless somebody has set the default, it is no less than
/// what cuDNN's own choice needs, and for Find it is all free memory: a client must not get less
/// than plain cuDNN gives it.
std::size_t Queries::unstatedLimit(bool find) {
  Context::DefaultLimit& limit = context_.defaultLimits_[problem_];
  std::size_t& known = find ? limit.findBytes : limit.bytes;
  // The free memory may have changed since.
  if (known != 0 && !limit.memoryWasShort) return known;
  std::size_t freeBytes = 0;
  std::size_t totalBytes = 0;
  UCUDNN_CHECK_CUDA(cudaMemGetInfo(&freeBytes, &totalBytes));
  const Offers ranked = now().rankedOf(problem_, descriptors_);
  const std::size_t picked =
      ranked->empty() ? 0 : roundUpToAlignment(ranked->front().workspaceBytes);
  const std::size_t wanted =
      find ? kMaximumDefaultLimit : now().settings.defaultWorkspaceLimitBytes;
  std::size_t bytes = std::max(picked, std::min(wanted, freeBytes));
  if (now().settings.defaultWorkspaceLimitGiven)
    bytes = std::min(bytes, now().settings.defaultWorkspaceLimitBytes);
  limit.memoryWasShort = freeBytes < now().settings.defaultWorkspaceLimitBytes;
  known = now().capped(roundDownToAlignment(std::min(bytes, kMaximumDefaultLimit)));
  return known;
}

Snapshot::Route Queries::route() {
  const bool capturing = now().ownsWorkspace() && isCapturing(context_.handle_);
  return now().routeOf(problem_, descriptors_, layer_, capturing);
}

Measuring Queries::measuringFor(bool mayMeasure) const {
  return ucudnn::measuringFor(mayMeasure, isCapturing(context_.handle_));
}

std::vector<AlgorithmPerformance> Queries::algorithms(const AlgorithmQuery& query) {
  if (!isRead_) return {};
  const bool isNamed = query.limitBytes.has_value();
  if (route() != Snapshot::Route::kCallers) {
    // The limit holds once the workspace is the caller's again: without the total, or elsewhere.
    if (isNamed)
      context_.limits_.state(problem_, {roundDownToAlignment(*query.limitBytes), true, true});
    else
      context_.limits_.forget(problem_);
    return answerOwned(now().capped(query.limitBytes.value_or(SIZE_MAX)));
  }
  const std::size_t statedBytes =
      isNamed ? roundDownToAlignment(*query.limitBytes) : unstatedLimit(query.find);
  context_.limits_.state(problem_, {statedBytes, isNamed, isNamed || query.find});
  const std::size_t limitBytes = now().capped(statedBytes);
  PlanRequest wanted = now().queryFor(problem_, limitBytes, false);
  wanted.buffers = query.buffers;
  wanted.mayAllocate = query.buffers == nullptr;
  const PlanAnswer found = planner().answer(wanted, measuringFor(isNamed || query.find));
  if (found.plan && found.plan->algorithm >= 0) return answerFrom(*found.plan, wanted, query.most);
  return isNamed || query.find ? std::vector<AlgorithmPerformance>() : answerUnmeasured(limitBytes);
}

/// Our plan first, then cuDNN's own algorithms by time. The client reads no more than `most`.
std::vector<AlgorithmPerformance> Queries::answerFrom(const Plan& plan,
                                                      const PlanRequest& query,
                                                      int most) const {
  const auto mathType = static_cast<cudnnMathType_t>(query.problem.mathType);
  std::vector<AlgorithmPerformance> answer;
  answer.push_back({plan.algorithm,
                    CUDNN_STATUS_SUCCESS,
                    static_cast<float>(plan.predictedMs),
                    now().capped(roundUpToAlignment(plan.algorithmBytes)),
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

/// The answer of cuDNN's heuristics. Each algorithm has its own need, because nobody knows a
/// plan's.
std::vector<AlgorithmPerformance> Queries::answerUnmeasured(std::size_t limitBytes) const {
  const Offers ranked = now().rankedOf(problem_, descriptors_);
  std::vector<AlgorithmPerformance> answer;
  for (const KernelOffer& offer : *ranked) {
    const std::size_t bytes = roundUpToAlignment(offer.workspaceBytes);
    if (bytes > limitBytes || (now().settings.deterministic && !offer.deterministic)) continue;
    answer.push_back(entryOf(offer, bytes));
  }
  return answer;
}

/// The answer if μ-cuDNN owns the workspace. Measures nothing; an algorithm without workspace comes
/// first. Empty if there is none.
std::vector<AlgorithmPerformance> Queries::answerOwned(std::size_t limitBytes) const {
  const Offers offers = now().offersOf(problem_, descriptors_);
  const KernelOffer* const first = now().offerWithoutWorkspace(*offers);
  if (first == nullptr) return {};
  std::vector<AlgorithmPerformance> answer = {entryOf(*first, 0)};
  for (const KernelOffer& offer : *offers)
    if (&offer != first && offer.workspaceBytes <= limitBytes &&
        (offer.deterministic || !now().settings.deterministic))
      answer.push_back(entryOf(offer, offer.workspaceBytes));
  return answer;
}

/// The algorithm's own need. Two kinds of algorithms are told the plan's workspace instead: one
/// that a query has named for a plan, and one beyond a limit, because the plan runs in its place.
std::optional<std::size_t> Queries::workspaceBytes(int algorithm) {
  if (!isRead_) return std::nullopt;
  const Snapshot::Route route = this->route();
  // The fused call may need workspace: without an activation cuDNN has no other algorithm for it.
  if (route == Snapshot::Route::kOwned) return toName(descriptors_, algorithm, 0);
  const StatedLimit* const stated = context_.limits_.find(problem_);
  if (route == Snapshot::Route::kUnshared)
    return unplannedBytes(algorithm,
                          stated != nullptr && stated->isNamed ? stated->bytes : SIZE_MAX);
  StatedLimit limit = stated != nullptr ? *stated : StatedLimit{unstatedLimit(false), false, false};
  limit.bytes = now().capped(limit.bytes);
  const auto native = nativeBytes(algorithm);
  if (!native) return std::nullopt;
  const std::size_t own = roundUpToAlignment(*native);
  const bool isHard = limit.isNamed || now().settings.defaultWorkspaceLimitGiven;
  const std::size_t mostBytes = now().capped(isHard ? limit.bytes : SIZE_MAX);
  const auto plan = planFor(limit, isDeterministic(problem_.operation, algorithm));
  if (plan && (algorithm == plan->algorithm || own > mostBytes))
    return withinCap(algorithm,
                     roundUpToAlignment(toName(descriptors_, algorithm, plan->algorithmBytes)));
  return keepWithin(mostBytes, algorithm, own);
}

/// The plan for a call of such an algorithm within the limit. Null if nothing is known.
std::shared_ptr<const Plan> Queries::planFor(const StatedLimit& limit, bool deterministic) const {
  const Measuring measuring = measuringFor(limit.mayMeasure);
  auto plan =
      planner().answer(now().queryFor(problem_, limit.bytes, deterministic), measuring).plan;
  // A call within the limit runs anyway, if need be with another kernel.
  if (!plan && deterministic && !now().settings.deterministic)
    plan = planner().answer(now().queryFor(problem_, limit.bytes, false), measuring).plan;
  return plan;
}

/// cuDNN's need for an algorithm of a convolution that cannot do without the caller's workspace.
/// Empty if cuDNN's own answer is within the cap, or if it has none.
std::optional<std::size_t> Queries::unplannedBytes(int algorithm, std::size_t limitBytes) const {
  if (limitBytes == SIZE_MAX && !now().isCapped()) return std::nullopt;
  const auto native = nativeBytes(algorithm);
  return native ? std::optional(keepWithin(limitBytes, algorithm, *native)) : native;
}

std::optional<std::size_t> Queries::nativeBytes(int algorithm) const {
  std::size_t bytes = 0;
  if (nativeWorkspaceSize(context_.handle_, problem_.operation, descriptors_, algorithm, &bytes) !=
      CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  return bytes;
}

std::size_t Queries::toName(const ConvolutionDescriptors& descriptors,
                            int algorithm,
                            std::size_t bytes) const {
  return bytesToName(context_.handle_, problem_.operation, descriptors, algorithm, bytes);
}

/// No more than a limit that somebody has named, if cuDNN has anything within it. A call with less
/// than its algorithm needs runs another.
std::size_t Queries::keepWithin(std::size_t limitBytes, int algorithm, std::size_t bytes) const {
  limitBytes = now().capped(limitBytes);
  if (bytes <= limitBytes) return bytes;
  std::size_t least = SIZE_MAX;
  const Offers ranked = now().rankedOf(problem_, descriptors_);
  for (const KernelOffer& offer : *ranked)
    if (offer.deterministic || !now().settings.deterministic)
      least = std::min(least, offer.workspaceBytes);
  if (least == SIZE_MAX) return bytes;
  // Not rounded up, because the limit may be below the unit of rounding.
  const std::size_t within = std::max(limitBytes, least);
  return std::max(least, withinCap(algorithm, toName(descriptors_, algorithm, within)));
}

/// Names the cap in place of the fused call's need if a batch of one fits the cap: then a split
/// fits, too.
std::size_t Queries::withinCap(int algorithm, std::size_t bytes) const {
  const std::size_t cap = now().capped(bytes);
  if (bytes <= cap) return bytes;
  const ProblemDescriptors one(problem_.withBatch(1));
  return toName(one.get(), algorithm, 0) <= cap ? cap : bytes;
}

std::shared_ptr<const Plan> Queries::plan(std::size_t limitBytes) const {
  return planner().answer(now().queryFor(problem_, limitBytes, false), measuringFor(true)).plan;
}

Measurements Queries::candidates() const {
  return planner().measurements(now().request(problem_, SIZE_MAX, false), measuringFor(true));
}

std::vector<Configuration> Queries::front() const {
  return planner().front(now().queryFor(problem_, SIZE_MAX, false), measuringFor(true));
}

}  // namespace ucudnn
