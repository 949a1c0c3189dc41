// What runs until a problem is measured, where the call's own kernel lacks workspace: that kernel,
// on parts of the batch, or whatever fits.
#include <algorithm>
#include <chrono>
#include <iterator>

#include "planner/plan_builder.hpp"
#include "planner/planner.hpp"
#include "support/log.hpp"

namespace ucudnn {
namespace {

// An engine takes 20 us for any part. Parts that are estimated shorter than this, of which 10 us
// stand for a launch, would take little else: then there are few, or none.
constexpr double kShortestMs = 0.015;
constexpr int kFew = 4;

// What failed is not tried at each call, and what fails for good more and more seldom.
constexpr std::chrono::milliseconds kPartsRetryAfter{100};
constexpr int kMostDoublings = 20;  // to a day

/// Whether a split may run that nobody has measured.
bool mayRunInParts(const PlanRequest& request) {
  return request.own && request.withEngines() && request.suitsEngines && !request.withErrors() &&
         sizesFor(request.problem, request.settings->batchSizePolicy).size() > 1;
}

/// Puts together the parts of one kernel.
class Parts {
 public:
  Parts(const PlanRequest& request, PreparedKernels& prepared)
      : request_(request), prepared_(prepared), left_(request.problem.batch()) {}

  /// As many parts of the size as the rest of the batch has. False: one does not run within the
  /// limit. Throws Error.
  bool add(int batch) {
    const auto offer =
        prepared_.offer(batch, request_.own->kernel, request_.callsAt(batch), &failures_);
    if (!offer || offer->workspaceBytes > request_.limitBytes ||
        (request_.deterministic && !offer->deterministic))
      return false;
    configuration_.microBatches.push_back({batch, 0, left_ / batch, false});
    configuration_.workspaceBytes = std::max(configuration_.workspaceBytes, offer->workspaceBytes);
    measurements_[batch].kernels.push_back({*offer, {}});
    left_ %= batch;
    return true;
  }
  int left() const noexcept { return left_; }
  /// Whether cuDNN has not said what runs, so it may another time.
  bool failed() const noexcept { return failures_ > 0; }

  /// No time of it is known. Throws Error.
  std::shared_ptr<const Plan> plan() const {
    auto plan = std::make_shared<Plan>(
        *buildPlan(prepared_, request_, configuration_, Pace::kHost, measurements_));
    plan->measured = false;
    plan->predictedMs = 0;
    return plan;
  }

 private:
  const PlanRequest& request_;
  PreparedKernels& prepared_;
  int left_;
  int failures_ = 0;
  Configuration configuration_;
  Measurements measurements_;
};

/// The largest power of two that fits, and what is left of the batch. False: cuDNN can't run the
/// kernel so. Throws Error.
bool divide(const PlanRequest& request, Parts& parts) {
  const int miniBatch = request.problem.batch();
  // The workspace of most kernels grows with the batch, from the size that a filter takes.
  const std::size_t sampleBytes = request.own->workspaceBytes / static_cast<std::size_t>(miniBatch);
  const auto sizes = microBatchSizes(BatchSizePolicy::kPowerOfTwo, miniBatch);
  for (auto size = std::next(sizes.rbegin());; ++size) {
    if (size == sizes.rend()) return false;
    const bool isShort = estimatedMs(request.problem.withBatch(*size)) < kShortestMs;
    if (isShort && miniBatch > *size * kFew) return false;
    const bool mayFit = sampleBytes * static_cast<std::size_t>(*size) <= request.limitBytes;
    if (mayFit && parts.add(*size)) break;
  }
  return parts.left() == 0 || parts.add(parts.left());
}

/// The first kernel of a batch size that cuDNN offers within the limit, for all of the batch. Null:
/// there is none. Throws Error.
std::shared_ptr<const Plan> firstThatFits(const PlanRequest& request, int batch) {
  const Problem part = request.problem.withBatch(batch);
  const auto offers = offeredKernels(request.handle,
                                     part,
                                     ProblemDescriptors(part).get(),
                                     request.withEngines(),
                                     nullptr,
                                     request.callsAt(batch));
  for (const KernelOffer& offer : offers) {
    if (offer.workspaceBytes > request.limitBytes ||
        (request.deterministic && !offer.deterministic))
      continue;
    PlanRequest wanted = request;
    wanted.own = OwnKernel{offer.kernel, offer.workspaceBytes};
    PreparedKernels prepared(request.handle, request.problem);
    Parts parts(wanted, prepared);
    if (parts.add(batch) && (parts.left() == 0 || parts.add(parts.left()))) return parts.plan();
  }
  return nullptr;
}

/// Null: cuDNN can't run the kernel so. Throws Error.
std::shared_ptr<const Plan> makeParts(const PlanRequest& request) {
  PreparedKernels prepared(request.handle, request.problem);
  Parts parts(request, prepared);
  if (divide(request, parts)) return parts.plan();
  if (parts.failed()) throw Error(CUDNN_STATUS_INTERNAL_ERROR, "cuDNN does not say what runs");
  return nullptr;
}

}  // namespace

/// Another candidate's will do: that, too, cuDNN has proposed to the program. That one does not run
/// so says nothing of others.
bool OwnInParts::serves(const PlanRequest& request) const noexcept {
  if (plan == nullptr)
    return request.limitBytes <= limitBytes && request.own->kernel == kernel &&
           request.deterministic == deterministic && request.calls == calls;
  return request.limitBytes <= limitBytes && plan->workspaceBytes <= request.limitBytes &&
         (deterministic || !request.deterministic) && request.replay() == replay &&
         plan->of(kindOf(request.calls)) != nullptr;
}

std::shared_ptr<const Plan> Planner::anyThatFits(const PlanRequest& request) {
  if (!request.suitsEngines || request.withErrors()) return nullptr;
  const auto known = store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    std::optional<std::shared_ptr<const Plan>> plan;
    if (asked == nullptr) return plan;
    for (const AnyThatFits& any : asked->anyThatFits)
      if (any.serves(request)) plan = any.plan;
    return plan;
  });
  if (known) return *known;
  const PlanningTime time(statistics_.planningMicroseconds);
  AnyThatFits made{
      request.calls, request.deterministic, request.replay(), request.limitBytes, nullptr};
  const auto sizes = sizesFor(request.problem, request.settings->batchSizePolicy);
  for (auto size = sizes.rbegin(); size != sizes.rend() && !made.plan; ++size)
    made.plan = firstThatFits(request, *size);
  store_.use(request, [&](const Known&, KnownQuestion& asked) {
    auto& all = asked.anyThatFits;
    if (all.size() >= kMostInParts) all.erase(all.begin());
    all.push_back(made);
  });
  return made.plan;
}

std::shared_ptr<const Plan> Planner::ownInParts(const PlanRequest& request, Measuring measuring) {
  if (!mayRunInParts(request)) return nullptr;
  const auto known = store_.look(request, [&](const Known*, const KnownQuestion* asked) {
    std::optional<std::shared_ptr<const Plan>> plan;
    if (asked == nullptr) return plan;
    if (KnownQuestion::Clock::now() < asked->partsRetryAt) plan = nullptr;
    for (const OwnInParts& parts : asked->ownInParts)
      if (parts.serves(request) && (!plan || *plan == nullptr)) plan = parts.plan;
    return plan;
  });
  if (known) return *known;
  if (measuring == Measuring::kNever) return nullptr;
  const PlanningTime time(statistics_.planningMicroseconds);
  OwnInParts made{request.own->kernel,
                  request.calls,
                  request.deterministic,
                  request.replay(),
                  request.limitBytes,
                  nullptr};
  try {
    made.plan = makeParts(request);
  } catch (const Error& error) {
    logDebug("{} N={}: its own kernel does not run in parts: {}",
             request.problem.text(),
             request.problem.batch(),
             error.what());
    if (!isRefusal(error.status())) {  // it may run another time
      store_.use(request, [&](const Known&, KnownQuestion& asked) {
        const int doublings = std::min(asked.partsFailures++, kMostDoublings);
        asked.partsRetryAt = KnownQuestion::Clock::now() + kPartsRetryAfter * (1 << doublings);
      });
      return nullptr;
    }
  }
  if (made.plan != nullptr)
    logInfo("{} N={}: {}, not measured yet",
            request.problem.text(),
            request.problem.batch(),
            toText(*made.plan));
  store_.use(request, [&](const Known&, KnownQuestion& asked) {
    auto& parts = asked.ownInParts;
    if (parts.size() >= kMostInParts) parts.erase(parts.begin());
    parts.push_back(made);
  });
  return made.plan;
}

}  // namespace ucudnn
